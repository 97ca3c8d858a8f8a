//go:build !client

package form

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/capabilities"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of a pattern. They bound the work of checking.
const (
	maxPatternDepth   = 64   // of its JSON
	maxPatternSchemas = 1000 // schemas within it, each counted once per use
	maxRegexp         = 4096 // bytes of a regular expression
	maxRegexpSteps    = 5000 // states of all its regular expressions, counted once per use
	maxNumber         = 40   // characters of a number, which is parsed exactly
	maxExponent       = 400  // of a number
)

const (
	patternURL = "parley:///pattern"
	dialectURL = "https://json-schema.org/draft/2020-12/schema"
)

const tooMuchTogether = "the patterns of the form ask for too much work together"

// noLoader is a loader without schemas. A pattern must not refer to others.
type noLoader struct{}

var errOutside = errors.New("the pattern refers outside itself")

func (noLoader) Load(string) (any, error) { return nil, errOutside }

// compilePattern returns the compiled pattern, or why it is refused. It spends the budget of the form.
func compilePattern(raw json.RawMessage, left *patternBudget) (*pattern, string) {
	if n := len(raw); n > MaxPattern {
		return nil, fmt.Sprintf("a pattern of %d bytes is over the limit of %d", n, MaxPattern)
	}
	if !utf8.Valid(raw) {
		return nil, "the pattern is not valid UTF-8"
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		return nil, "the pattern is not JSON"
	}
	var found survey
	if why := found.wrong(doc, 0); why != "" {
		return nil, why
	}
	if doc, err = normalTexts(doc); err != nil {
		return nil, "the pattern holds " + err.Error()
	}
	if !left.take(len(raw), found) { // before the compiler runs
		return nil, tooMuchTogether
	}
	if _, isBool := doc.(bool); found.objects == 0 && !isBool {
		return nil, "the pattern is not a JSON Schema: want an object, true or false"
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compileRegexp)
	if err := c.AddResource(patternURL, doc); err != nil {
		return nil, notSchema(err)
	}
	schema, err := c.Compile(patternURL)
	if err != nil {
		return nil, notSchema(err)
	}
	l, why := costOf(schema, map[*jsonschema.Schema]*schemaCost{})
	if why != "" {
		return nil, why
	}
	return &pattern{check: checkBy(schema), size: len(raw), own: found, schemaCost: l}, ""
}

// checkBy returns the check of values by a schema.
func checkBy(schema *jsonschema.Schema) func(value []byte) string {
	return func(value []byte) string {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
		if err != nil {
			return notJSON
		}
		if doc, err = normalTexts(doc); err != nil {
			return "it holds " + err.Error()
		}
		if err := schema.Validate(doc); err != nil {
			if v, ok := err.(*jsonschema.ValidationError); ok {
				return reason(v)
			}
			return "it does not fit its pattern"
		}
		return ""
	}
}

// normalTexts returns JSON with all texts and names in normal form, so that a pattern compares and measures what is read the same
// alike, however it is spelled. What it is given is at most as deep as a value or a pattern may be, and may be changed. Two
// names that become one are an error, since only one of them would be checked.
func normalTexts(doc any) (any, error) {
	var err error
	switch doc := doc.(type) {
	case string:
		return capabilities.Normal(doc), nil
	case []any:
		for i := range doc {
			if doc[i], err = normalTexts(doc[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(doc)) {
			v, err := normalTexts(doc[name])
			if err != nil {
				return nil, err
			}
			normal := capabilities.Normal(name)
			if _, twice := doc[normal]; twice && normal != name {
				return nil, fmt.Errorf("the name %s twice", parley.Quoted(normal, maxFieldName))
			}
			delete(doc, name)
			doc[normal] = v
		}
	}
	return doc, nil
}

// wrong returns why a pattern's JSON must not be compiled, or "". It refuses "$id" and "$ref" also within constants and
// examples, where they would be data.
func (s *survey) wrong(doc any, depth int) string {
	if depth > maxPatternDepth {
		return fmt.Sprintf("the pattern is nested more than %d deep", maxPatternDepth)
	}
	switch doc := doc.(type) {
	case map[string]any:
		s.objects++
		for _, k := range slices.Sorted(maps.Keys(doc)) {
			if why := wrongReference(k, doc[k]); why != "" {
				return why
			}
			s.countRegexps(k, doc[k])
			if why := s.wrong(doc[k], depth+1); why != "" {
				return why
			}
		}
	case []any:
		for _, e := range doc {
			if why := s.wrong(e, depth+1); why != "" {
				return why
			}
		}
	case json.Number:
		return wrongNumber(string(doc))
	}
	if s.objects > maxPatternSchemas || s.steps > maxRegexpSteps {
		return tooMuchWork
	}
	return ""
}

const tooMuchWork = "the pattern asks for too much work"

func (s *survey) countRegexps(key string, v any) {
	var texts []string
	switch v := v.(type) {
	case string:
		if key == "pattern" {
			texts = []string{v}
		}
	case map[string]any:
		if key == "patternProperties" {
			texts = slices.Collect(maps.Keys(v))
		}
	}
	for _, text := range texts {
		if n, err := regexpSteps(text); err == nil { // the compiler reports the faults of the others
			s.steps = atMost(s.steps + n)
		}
	}
}

func wrongReference(key string, v any) string {
	s, ok := v.(string)
	if !ok {
		return ""
	}
	switch key {
	case "$id":
		return "the pattern has an $id, which patterns do not need"
	case "$schema":
		if strings.TrimSuffix(s, "#") != dialectURL {
			return "the pattern is of another $schema: want JSON Schema 2020-12"
		}
	case "$ref", "$dynamicRef", "$recursiveRef":
		if !strings.HasPrefix(s, "#") {
			return errOutside.Error()
		}
	}
	return ""
}

// wrongNumber refuses numbers whose exact value would fill the memory, such as 1e999999999.
func wrongNumber(n string) string {
	_, exp, ok := strings.Cut(strings.ToLower(n), "e")
	e, err := strconv.Atoi(exp)
	if len(n) > maxNumber || ok && (err != nil || max(e, -e) > maxExponent) {
		return "a number in the pattern is beyond bounds: " + parley.Shown(n, maxNumber)
	}
	return ""
}

// notSchema returns why the compiler refused a pattern.
func notSchema(err error) string {
	const not = "the pattern is not a JSON Schema"
	switch err := err.(type) {
	case *jsonschema.SchemaValidationError:
		if v, ok := errors.AsType[*jsonschema.ValidationError](err.Err); ok {
			return not + ": " + reason(v)
		}
	case *jsonschema.InvalidRegexError:
		return not + ": " + parley.Shown(err.Err.Error(), maxWhy)
	case *jsonschema.AnchorNotFoundError, *jsonschema.JSONPointerNotFoundError, *jsonschema.InvalidJsonPointerError:
		return "the pattern refers to a part that it does not have"
	case *jsonschema.LoadURLError:
		return errOutside.Error()
	}
	return not
}

// boundedRegexp is a regular expression with its number of states.
type boundedRegexp struct {
	*regexp.Regexp
	steps int
}

// compileRegexp compiles a regular expression of RE2, which matches in time linear in the text and the states. It
// counts the states first, since short expressions such as x{1000} have many.
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
		n = 1 + len(re.Rune)/64 // a class of many scripts is large
	}
	for _, sub := range re.Sub {
		n = atMost(n + states(sub))
	}
	if re.Op == syntax.OpRepeat {
		n = atMost(n * (1 + max(re.Min, re.Max)))
	}
	return n
}

// atMost bounds sums and products of costs, which would overflow.
func atMost(n int) int { return min(n, 1<<28) }
