package capabilities

import (
	"fmt"
	"strings"
	"time"
)

// Words says in one line all that a reference of a kind and a facet permits, for people. Moment writes a time. All edges say it by
// this, so that nobody gives more than they have read. What others have chosen in it, such as a path, is not escaped.
func (f Facet) Words(kind Kind, moment func(Time) string) string {
	parts := []string{f.verbs(kind)}
	if f.Below != "" && kind != KindSecret {
		parts = append(parts, "only below "+f.Below)
	}
	if f.Uses != 0 {
		parts = append(parts, f.UsesWords())
	}
	if f.Rate != (Rate{}) {
		parts = append(parts, "at most "+f.Rate.String())
	}
	if f.Until != 0 {
		parts = append(parts, "until "+moment(f.Until))
	}
	if f.Ask {
		parts = append(parts, "and the giver decides each use")
	}
	return strings.Join(parts, ", ")
}

// UsesWords says for how many uses the facet is, as in "3 uses".
func (f Facet) UsesWords() string {
	if f.Uses == 1 {
		return "1 use"
	}
	return fmt.Sprintf("%d uses", f.Uses)
}

// String returns the rate as in "2 in 1m".
func (r Rate) String() string {
	return fmt.Sprintf("%d in %s", r.Uses, Span(time.Duration(r.Seconds)*time.Second))
}

// verbs says what may be done, apart from how often and how long.
func (f Facet) verbs(kind Kind) string {
	if f.IsNothing() {
		return "nothing"
	}
	reads := f.Mode == ReadOnly
	switch kind {
	case KindFolder:
		if reads {
			return "list and read"
		}
		return "list, read and write"
	case KindFile:
		return "read"
	case KindSecret:
		return f.requests(reads)
	case KindTool:
		switch {
		case reads:
			return "list the tools"
		case f.Only == "":
			return "call all tools"
		}
		return "call " + listed(f.Only) + " only"
	}
	if f.Mode != Full {
		return string(f.Mode) + " only"
	}
	return "all"
}

// requests says which requests a secret may be used for.
func (f Facet) requests(reads bool) string {
	methods := f.Methods
	if reads {
		methods = common(methods, readingMethods)
	}
	text := "make " + listed(methods) + " requests"
	if methods == "" {
		text = "make requests"
	}
	if f.Only != "" {
		text += " to " + listed(f.Only)
	}
	if f.Below != "" {
		text += " below /" + f.Below
	}
	return text
}

// readingMethods are the methods that change nothing.
const readingMethods = "GET HEAD"

// IsReading reports whether a method of HTTP changes nothing.
func IsReading(method string) bool { return HasWord(readingMethods, method) }

// listed returns a list of words as people read it.
func listed(words string) string {
	all := strings.Fields(words)
	if len(all) < 2 {
		return words
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}
