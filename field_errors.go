package parley

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// FieldErrors collects what is wrong with the fields of a form or an answer. The zero value is ready to use.
type FieldErrors struct {
	names []string
	why   map[string]string
}

// maxFault bounds what is said of one field at once, in characters.
const maxFault = 200

// maxWrong bounds the message of an error, in characters. Its Fields hold everything.
const maxWrong = 1000

// Add notes something wrong with a field.
func (w *FieldErrors) Add(name, why string) {
	if before, ok := w.why[name]; ok {
		w.why[name] = Cut(before+"; "+why, 3*maxFault)
		return
	}
	if w.why == nil {
		w.why = map[string]string{}
	}
	w.names = append(w.names, name)
	w.why[name] = Cut(why, 3*maxFault)
}

// Has reports whether something is wrong with a field.
func (w *FieldErrors) Has(name string) bool { _, ok := w.why[name]; return ok }

// Sort sorts the fields in the form's order, followed by unknown fields by name.
func (w *FieldErrors) Sort(find func(name string) (int, bool)) {
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

// Err returns the one error that names every wrong field, or nil.
func (w *FieldErrors) Err(code Code) error {
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
	return &Error{Code: code, Message: Cut(text, maxWrong), Fields: maps.Clone(w.why)}
}
