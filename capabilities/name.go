package capabilities

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"parley/internal/fault"
)

// The special names. No agent can bind them.
const (
	NameSelf  = "@self"
	NameHost  = "@host"
	NameMail  = "@mail"
	NameNodes = "@nodes"
)

const (
	maxName      = 255 // characters
	maxPathParts = 16
)

// Path is the path of a value below the names of an agent: a name, then fields of records.
type Path []string

// Normal returns a text in normal form C, in which equal characters are equal bytes. What is compared is in this form:
// names, and the names and choices of fields. One that is typed or pasted as a letter with a separate accent is the same.
func Normal(s string) string { return norm.NFC.String(s) }

// String returns the names joined by slashes.
func (p Path) String() string { return strings.Join(p, "/") }

// CheckName refuses with INVALID_NAME text that cannot be bound as a name. A name has 1 to 255 characters of valid
// UTF-8, no "/", no NUL and no leading "@". It is not "." or "..", nor a spelling of a special name.
func CheckName(s string) error {
	why := ""
	switch {
	case s == "":
		why = "it is empty"
	case !utf8.ValidString(s):
		why = "it is not valid UTF-8"
	case utf8.RuneCountInString(s) > maxName:
		why = "it has more than 255 characters"
	case strings.ContainsAny(s, "/\x00"):
		why = "it holds a / or a NUL"
	case strings.HasPrefix(s, "@"):
		why = "names with a leading @ are special"
	case s == "." || s == "..":
		why = "it is a path's dot"
	case Special(s) != "":
		why = "it is a spelling of " + Special(s)
	default:
		return nil
	}
	return fault.Refuse(fault.InvalidName, "%.80q cannot be a name: %s", s, why)
}

// Special returns the special name that s spells, or "".
func Special(s string) string {
	switch s {
	case NameSelf, "SELF":
		return NameSelf
	case NameHost, "HOST":
		return NameHost
	case NameMail, NameNodes:
		return s
	}
	return ""
}

// ParsePath parses names separated by "/", at most 16 of them. The first may be special, and below @mail each part may
// begin with "@". It refuses with INVALID_NAME.
func ParsePath(s string) (Path, error) {
	parts := strings.Split(s, "/")
	if len(parts) > maxPathParts {
		return nil, fault.Refuse(fault.InvalidName, "a path of %d names is too long", len(parts))
	}
	if sp := Special(parts[0]); sp != "" {
		parts[0] = sp
	} else if err := CheckName(parts[0]); err != nil {
		return nil, err
	}
	for _, p := range parts[1:] {
		if p == "" || p == "." || p == ".." || utf8.RuneCountInString(p) > maxName || !utf8.ValidString(p) || strings.ContainsRune(p, 0) {
			return nil, fault.Refuse(fault.InvalidName, "%.80q cannot be part of a path", p)
		}
	}
	return Path(parts), nil
}
