package gateway

import (
	"path"
	"strconv"
	"strings"
	"unicode"
)

// maxNumbered bounds how many names are tried for an agent that was given none.
const maxNumbered = 10_000

// nameAfter gives the nth name for an agent that runs a command: the program's, and from the second on a number.
func nameAfter(command []string, n int) string {
	name := "program"
	if len(command) > 0 {
		name = path.Base(strings.ReplaceAll(command[0], `\`, "/"))
	}
	name = strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r)) {
			return r
		}
		return '-'
	}, name)
	name = strings.Trim(name[:min(len(name), 64)], ".-_")
	if name == "" {
		name = "program"
	}
	if n > 1 {
		name += "-" + strconv.Itoa(n)
	}
	return name
}
