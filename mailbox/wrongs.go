package mailbox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// FieldErrors gathers what is wrong with the fields of a form or an answer. The zero wrongs is ready.
type FieldErrors struct {
	names []string
	why   map[string]string
}

// maxWrong bounds the characters of an error's message; its Fields have the whole.
const maxWrong = 1000

// add says one more thing about a field.
func (w *FieldErrors) add(name, why string) {
	if before, ok := w.why[name]; ok {
		w.why[name] = cut(before+"; "+why, 3*maxWhy)
		return
	}
	if w.why == nil {
		w.why = map[string]string{}
	}
	w.names = append(w.names, name)
	w.why[name] = cut(why, 3*maxWhy)
}

func (w *FieldErrors) has(name string) bool { _, ok := w.why[name]; return ok }

// sort puts the fields into the form's order, and those it does not have behind them by name.
func (w *FieldErrors) sort(find func(name string) (int, bool)) {
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

// err gives the one error that names every wrong field, or nil.
func (w *FieldErrors) err(code parley.Code) error {
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
	return &parley.Error{Code: code, Message: cut(text, maxWrong), Fields: maps.Clone(w.why)}
}

// shown makes text from outside fit to stand in a message: short, on one line, and with what cannot be
// seen escaped.
func shown(s string, limit int) string {
	s = strings.ToValidUTF8(cut(s, limit), "\uFFFD")
	if !strings.ContainsFunc(s, unseen) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unseen(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// quoted is shown within quotation marks.
func quoted(s string, limit int) string { return `"` + shown(s, limit) + `"` }

// cut keeps the first characters of s, and says so if that is not all.
func cut(s string, limit int) string {
	n := 0
	for i := range s {
		if n == limit {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
