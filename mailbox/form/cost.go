//go:build !client

package form

import (
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// costOf returns the cost of a schema with all schemas that it refers to, each counted once per use. It refuses cycles
// and schemas that cost too much. In seen, schemas in progress are nil, and finished ones have their costs.
func costOf(s *jsonschema.Schema, seen map[*jsonschema.Schema]*schemaCost) (schemaCost, string) {
	if l, ok := seen[s]; ok {
		if l == nil {
			return schemaCost{}, "the pattern refers to itself in a circle"
		}
		return *l, ""
	}
	if !strings.HasPrefix(s.Location, patternURL+"#") {
		return schemaCost{}, errOutside.Error()
	}
	seen[s] = nil
	l := ownCost(s)
	for _, sub := range below(s) {
		m, why := costOf(sub, seen)
		if why != "" {
			return schemaCost{}, why
		}
		l.schemas = atMost(l.schemas + m.schemas)
		l.checks = atMost(l.checks + m.checks)
		l.steps = atMost(l.steps + m.steps)
	}
	if l.schemas > maxPatternSchemas || l.steps > maxRegexpSteps {
		return schemaCost{}, tooMuchWork
	}
	seen[s] = &l
	return l, ""
}

// ownCost returns the cost of a schema by itself.
func ownCost(s *jsonschema.Schema) schemaCost {
	l := schemaCost{schemas: 1, checks: 1 + len(s.Required) + len(s.DependentRequired) + len(s.Dependencies)}
	if s.Enum != nil {
		for _, v := range s.Enum.Values {
			l.checks += parts(v)
		}
	}
	if s.Const != nil {
		l.checks += parts(*s.Const)
	}
	for _, names := range s.DependentRequired {
		l.checks += len(names)
	}
	for _, d := range s.Dependencies {
		if names, ok := d.([]string); ok {
			l.checks += len(names)
		}
	}
	if s.UniqueItems {
		l.checks += 10 // every item is hashed, and compared with those of the same hash
	}
	if s.MultipleOf != nil {
		l.checks += 10 // a division of long numbers
	}
	if s.Format != nil && s.Format.Name == "regex" {
		l.checks += 2000 // the value is compiled
	}
	regexps := []jsonschema.Regexp{s.Pattern}
	for re := range s.PatternProperties {
		regexps = append(regexps, re)
	}
	for _, re := range regexps {
		if b, ok := re.(boundedRegexp); ok {
			l.steps = atMost(l.steps + b.steps)
		}
	}
	return l
}

// parts returns the number of values in a JSON value, with itself.
func parts(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += parts(e)
		}
	case map[string]any:
		for _, e := range v {
			n += parts(e)
		}
	}
	return n
}

// below returns the schemas that a schema applies, with those that it refers to.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{
		s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties,
		s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema,
	}
	if s.DynamicRef != nil {
		all = append(all, s.DynamicRef.Ref)
	}
	all = slices.Concat(all, s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems)
	for _, m := range []map[string]*jsonschema.Schema{s.Properties, s.DependentSchemas} {
		for _, sub := range m {
			all = append(all, sub)
		}
	}
	for _, sub := range s.PatternProperties {
		all = append(all, sub)
	}
	for _, d := range s.Dependencies {
		if sub, ok := d.(*jsonschema.Schema); ok {
			all = append(all, sub)
		}
	}
	for _, x := range []any{s.AdditionalProperties, s.Items, s.AdditionalItems} {
		if sub, ok := x.(*jsonschema.Schema); ok {
			all = append(all, sub)
		}
	}
	all = slices.DeleteFunc(all, func(s *jsonschema.Schema) bool { return s == nil })
	slices.SortFunc(all, func(a, b *jsonschema.Schema) int { return strings.Compare(a.Location, b.Location) })
	return all // sorted, so that the same fault is reported each time
}
