package origin

import (
	"bytes"
	"encoding/json"
	"strings"

	"parley/events"
)

// Of returns the origin of a form; nil if it has none. Each approval without an origin is of the dialect of approvals.
// The origin in a comment counts for any other form: see InComment.
func Of(e *events.FormRequested, comment *events.Origin) *events.Origin {
	switch {
	case e.Origin != nil:
		return e.Origin
	case e.Kind == events.Approval:
		return &events.Origin{Dialect: string(events.Approval)}
	}
	return comment
}

// Same reports whether two origins are equal. They may be nil.
func Same(a, b *events.Origin) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Text returns all texts of an origin, one after the other.
func Text(o *events.Origin) string {
	return o.Dialect + o.ID + o.Session + o.Submit + o.Run + o.Agent
}

// Size returns the memory that an origin takes, in bytes. That of nil is 0.
func Size(o *events.Origin) int {
	if o == nil {
		return 0
	}
	return 32 + len(o.Dialect) + len(o.ID) + len(o.Session) + len(o.Submit) + len(o.Run) + len(o.Agent)
}

// inComment is the prefix of the comment that held a form's origin before forms had a field for it. The comment is the
// whole pattern of the form's first field.
const inComment = "parley:"

// InComment returns the origin in such a comment; nil if there is none. Its texts may be of any size.
func InComment(e *events.FormRequested) *events.Origin {
	if e.Origin != nil || e.Kind != events.PlainForm || len(e.Fields) == 0 || !bytes.Contains(e.Fields[0].Pattern, []byte(inComment)) {
		return nil
	}
	var pattern map[string]json.RawMessage
	var comment string
	if json.Unmarshal(e.Fields[0].Pattern, &pattern) != nil || json.Unmarshal(pattern["$comment"], &comment) != nil || len(pattern) != 1 {
		return nil
	}
	text, ok := strings.CutPrefix(comment, inComment)
	var o events.Origin
	if !ok || json.Unmarshal([]byte(text), &o) != nil || o.Dialect == string(events.Approval) {
		return nil
	}
	return &o
}
