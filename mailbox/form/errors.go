package form

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
)

// fieldErrors collects what is wrong with the fields of a form or an answer. The zero value is ready to use.
type fieldErrors struct {
	names []string
	why   map[string]string
}

// maxWrong bounds the message of an error, in characters. Its Fields hold everything.
const maxWrong = 1000

// add notes something wrong with a field.
func (w *fieldErrors) add(name, why string) {
	if before, ok := w.why[name]; ok {
		w.why[name] = parley.Cut(before+"; "+why, 3*maxWhy)
		return
	}
	if w.why == nil {
		w.why = map[string]string{}
	}
	w.names = append(w.names, name)
	w.why[name] = parley.Cut(why, 3*maxWhy)
}

func (w *fieldErrors) has(name string) bool { _, ok := w.why[name]; return ok }

// sort sorts the fields in the form's order, followed by unknown fields by name.
func (w *fieldErrors) sort(find func(name string) (int, bool)) {
	if len(w.names) < 2 {
		return
	}
	at := func(name string) int {
		if i, ok := find(name); ok {
			return i
		}
		return MaxFields
	}
	slices.SortFunc(w.names, func(a, b string) int { return cmp.Or(cmp.Compare(at(a), at(b)), strings.Compare(a, b)) })
}

// err returns the one error that names every wrong field, or nil.
func (w *fieldErrors) err(code parley.Code) error {
	if len(w.names) == 0 {
		return nil
	}
	var whys []string
	for _, n := range w.names {
		whys = append(whys, n+": "+w.why[n])
	}
	text := strings.Join(whys, "; ")
	if len(whys) > 1 {
		text = fmt.Sprintf("%d fields are wrong: %s", len(whys), text)
	}
	return &parley.Error{Code: code, Message: parley.Cut(text, maxWrong), Fields: maps.Clone(w.why)}
}
