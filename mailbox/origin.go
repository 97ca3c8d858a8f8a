package mailbox

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"parley"
	"parley/events"
	"parley/mailbox/form"
)

// maxOrigin bounds the texts of an origin together, in bytes.
const maxOrigin = 16 << 10

// originKey is the key of a dialect's form: its session or its run, or else the asker's ID for it.
type originKey struct{ dialect, session, run, agent, id string }

func keyOf(o *events.Origin) originKey {
	k := originKey{dialect: o.Dialect, session: o.Session, run: o.Run, agent: o.Agent}
	if o.Session == "" && o.Run == "" {
		k.id = o.ID
	}
	return k
}

// AskedIn returns the origin of a form; nil if it has none. Each approval without an origin is of the dialect of
// approvals.
func (f *Form) AskedIn() *events.Origin {
	switch {
	case f.Origin != nil:
		return f.Origin
	case f.Kind == events.Approval:
		return &events.Origin{Dialect: string(events.Approval)}
	}
	return f.comment
}

// isOver reports whether a message is a form that is settled and dismissed.
func (m *Message) isOver() bool { return m.Form != nil && m.Dismissed && !m.Form.IsOpen() }

// originIndex lists the numbers of the forms of dialects, until they are settled and dismissed.
type originIndex map[originKey][]uint64

// add enters a form, and reports whether it belongs there. Received says whether the mailbox's agent received it.
func (x *originIndex) add(m *Message, received bool) bool {
	if m.isOver() {
		return false
	}
	o := m.Form.AskedIn()
	if o == nil || o.ID == "" && m.Form.Kind == events.Approval && !received { // it is not looked up in its asker's mailbox
		return false
	}
	if *x == nil {
		*x = originIndex{}
	}
	k := keyOf(o)
	(*x)[k] = append((*x)[k], m.Number)
	return true
}

// restore enters a form again that belongs there.
func (x *originIndex) restore(m *Message) {
	o := m.Form.AskedIn()
	if o == nil {
		return
	}
	if *x == nil {
		*x = originIndex{}
	}
	k := keyOf(o)
	if i, found := slices.BinarySearch((*x)[k], m.Number); !found {
		(*x)[k] = slices.Insert((*x)[k], i, m.Number)
	}
}

// drop removes a form that is settled and dismissed.
func (x originIndex) drop(m *Message) {
	if !m.isOver() {
		return
	}
	o := m.Form.AskedIn()
	if o == nil {
		return
	}
	k := keyOf(o)
	i, found := slices.BinarySearch(x[k], m.Number)
	if !found {
		return
	}
	if x[k] = slices.Delete(x[k], i, i+1); len(x[k]) == 0 {
		delete(x, k)
	}
}

// checkOrigin refuses an origin without a dialect, and with TOO_LARGE one with too much text.
func checkOrigin(o *events.Origin) error {
	if o == nil {
		return nil
	}
	if o.Dialect == "" {
		return parley.Refuse(parley.InvalidForm, "the form's origin has no dialect")
	}
	return checkText("what is asked", o.Dialect+o.ID+o.Session+o.Submit+o.Run+o.Agent, maxOrigin)
}

func sameOrigin(a, b *events.Origin) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func sizeOfOrigin(o *events.Origin) int {
	if o == nil {
		return 0
	}
	return 32 + len(o.Dialect) + len(o.ID) + len(o.Session) + len(o.Submit) + len(o.Run) + len(o.Agent)
}

// originComment is the prefix of the comment that held a form's origin before forms had a field for it. The comment is
// the whole pattern of the form's first field.
const originComment = "parley:"

// originInComment returns the origin in such a comment; nil if there is none.
func originInComment(e *events.FormRequested) *events.Origin {
	if e.Origin != nil || e.Kind != events.PlainForm || len(e.Fields) == 0 || !bytes.Contains(e.Fields[0].Pattern, []byte(originComment)) {
		return nil
	}
	var pattern map[string]json.RawMessage
	var comment string
	if json.Unmarshal(e.Fields[0].Pattern, &pattern) != nil || json.Unmarshal(pattern["$comment"], &comment) != nil || len(pattern) != 1 {
		return nil
	}
	text, ok := strings.CutPrefix(comment, originComment)
	var o events.Origin
	if !ok || json.Unmarshal([]byte(text), &o) != nil || o.Dialect == string(events.Approval) || checkOrigin(&o) != nil {
		return nil
	}
	return &o
}

// isAskedBy reports whether a request has the fields and the origin of the form. The origin may be in a comment.
func (f *Form) isAskedBy(a RequestForm) bool {
	if form.SameFields(a.fields(), f.Fields) && sameOrigin(a.Origin, f.Origin) {
		return true
	}
	if f.comment == nil || !sameOrigin(a.Origin, f.comment) {
		return false
	}
	fields := slices.Clone(f.Fields)
	fields[0].Pattern = nil
	return form.SameFields(a.fields(), fields)
}
