//go:build !client

package form

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"parley"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// violation is one fault that a pattern finds, and its place in the value.
type violation struct{ at, why string }

// reason returns the first three violations by their place, on one line. Equal values give equal text. It quotes only
// names of the value.
func reason(e *jsonschema.ValidationError) string {
	const most = 3
	found := violations(e)
	var whys []string
	for i, f := range found {
		if i == most {
			whys = append(whys, fmt.Sprintf("and %d more", len(found)-most))
			break
		}
		if f.at != "" {
			f.why = "at " + parley.Shown(f.at, 60) + ": " + f.why
		}
		whys = append(whys, f.why)
	}
	return parley.Cut(strings.Join(whys, "; "), maxWhy)
}

// violations returns the leaves of an error, each once and the outer ones first. They are sorted, since the fields of a
// record have no order.
func violations(e *jsonschema.ValidationError) []violation {
	at := strings.Join(e.InstanceLocation, "/")
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return alternatives(e, at)
	case *kind.PropertyNames: // its place is wrong: the library shares it with its siblings
		return []violation{{why: "invalid name " + parley.Quoted(k.Property, 40)}}
	case *kind.Not, *kind.Contains, *kind.MinContains:
		return []violation{{at, plainly(k)}}
	}
	if len(e.Causes) == 0 {
		return []violation{{at, plainly(e.ErrorKind)}}
	}
	var all []violation
	for _, c := range e.Causes {
		all = append(all, violations(c)...)
	}
	slices.SortFunc(all, func(a, b violation) int {
		return cmp.Or(cmp.Compare(len(a.at), len(b.at)), strings.Compare(a.at, b.at), strings.Compare(a.why, b.why))
	})
	return slices.Compact(all)
}

// alternatives returns one violation for several schemas of which one has to accept the value. Schemas for another type
// are left out if one is for the type of the value.
func alternatives(e *jsonschema.ValidationError, at string) []violation {
	var near, far []string
	for _, c := range e.Causes {
		for _, f := range violations(c)[:1] {
			if f.at == at && strings.HasPrefix(f.why, "want ") {
				far = append(far, f.why)
				continue
			}
			if below := strings.TrimPrefix(strings.TrimPrefix(f.at, at), "/"); below != "" {
				f.why = "at " + parley.Shown(below, 60) + ": " + f.why
			}
			near = append(near, f.why)
		}
	}
	if len(near) == 0 {
		near = far
	}
	if len(near) == 0 {
		return []violation{{at, plainly(e.ErrorKind)}}
	}
	slices.Sort(near)
	near = slices.Compact(near)
	return []violation{{at, strings.Join(near[:min(3, len(near))], ", or ")}}
}

// plainly returns the fault that one keyword found.
func plainly(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return "want " + typeNames(k.Want)
	case *kind.Enum:
		return "not one of: " + constants(k.Want)
	case *kind.Const:
		return "want " + constants([]any{k.Want})
	case *kind.Minimum:
		return "at least " + exactly(k.Want)
	case *kind.Maximum:
		return "at most " + exactly(k.Want)
	case *kind.ExclusiveMinimum:
		return "more than " + exactly(k.Want)
	case *kind.ExclusiveMaximum:
		return "less than " + exactly(k.Want)
	case *kind.MultipleOf:
		return "a multiple of " + exactly(k.Want)
	case *kind.MinLength:
		return "at least " + count(k.Want, "character")
	case *kind.MaxLength:
		return "at most " + count(k.Want, "character")
	case *kind.Pattern:
		return "does not match " + parley.Shown(k.Want, 80)
	case *kind.Format:
		return wrongFormat(k)
	case *kind.MinItems:
		return "at least " + count(k.Want, "item")
	case *kind.MaxItems:
		return "at most " + count(k.Want, "item")
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are the same", min(k.Duplicates[0], k.Duplicates[1])+1, max(k.Duplicates[0], k.Duplicates[1])+1)
	case *kind.Contains, *kind.MinContains:
		return "too few items of the kind asked for"
	case *kind.MaxContains:
		return "too many items of the kind asked for"
	case *kind.MinProperties:
		return "at least " + count(k.Want, "entry")
	case *kind.MaxProperties:
		return "at most " + count(k.Want, "entry")
	case *kind.Required:
		return "missing: " + some(k.Missing)
	case *kind.DependentRequired:
		return "missing: " + some(k.Missing)
	case *kind.Dependency:
		return "missing: " + some(k.Missing)
	case *kind.AdditionalProperties:
		return "not known: " + some(slices.Sorted(slices.Values(k.Properties)))
	case *kind.OneOf:
		return "fits more than one of the choices"
	case *kind.Not:
		return "not allowed"
	case *kind.FalseSchema:
		return "nothing is allowed here"
	}
	return "does not fit"
}

// wrongFormat returns the fault of a format, with its cause for a regular expression.
func wrongFormat(k *kind.Format) string {
	if k.Want == "regex" {
		return "not a regular expression: " + parley.Shown(k.Err.Error(), 80)
	}
	return "not a valid " + parley.Shown(k.Want, 40)
}

func typeNames(types []string) string {
	people := map[string]string{
		"boolean": "true or false", "integer": "a whole number", "number": "a number",
		"string": "text", "array": "a list", "object": "a record", "null": "nothing",
	}
	var names []string
	for _, t := range types {
		names = append(names, cmp.Or(people[t], t))
	}
	return strings.Join(names, " or ")
}

func constants(vs []any) string {
	var texts []string
	for _, v := range vs[:min(len(vs), 11)] {
		switch v.(type) {
		case nil:
			texts = append(texts, "null")
		case []any:
			texts = append(texts, "a certain list")
		case map[string]any:
			texts = append(texts, "a certain record")
		default:
			texts = append(texts, fmt.Sprint(v))
		}
	}
	return some(texts)
}

// some returns up to ten names as a list.
func some(names []string) string {
	const most = 10
	var texts []string
	for i, n := range names {
		if i == most {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, parley.Shown(n, 40))
	}
	return strings.Join(texts, ", ")
}

func exactly(r *big.Rat) string {
	if f, _ := r.Float64(); !r.IsInt() || r.Num().BitLen() > 63 {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return r.Num().String()
}

func count(n int, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case strings.HasSuffix(what, "y"):
		what = strings.TrimSuffix(what, "y") + "ie"
	}
	return fmt.Sprintf("%d %ss", n, what)
}
