package mailbox

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// boundedRegexp knows how many states it has.
type boundedRegexp struct {
	*regexp.Regexp
	steps int
}

// compileRegexp reads a regular expression of RE2, which matches in time linear in the text and in the
// states. The states are bounded before any is made, since x{1000} is short and long.
func compileRegexp(s string) (jsonschema.Regexp, error) {
	steps, err := regexpSteps(s)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	return boundedRegexp{re, steps}, nil
}

func regexpSteps(s string) (int, error) {
	if len(s) > maxRegexp {
		return 0, fmt.Errorf("it has more than %d bytes", maxRegexp)
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return 0, errors.New(strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	n := states(tree)
	if n > maxRegexpSteps {
		return n, errors.New("it is too large")
	}
	return n, nil
}

func states(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	if re.Op == syntax.OpCharClass {
		n = 1 + len(re.Rune)/64 // a class of letters of all scripts takes room
	}
	for _, sub := range re.Sub {
		n = atMost(n + states(sub))
	}
	if re.Op == syntax.OpRepeat {
		n = atMost(n * (1 + max(re.Min, re.Max)))
	}
	return n
}

// atMost keeps sums and products of loads, each of them small, from overflowing.
func atMost(n int) int { return min(n, 1<<28) }
