package origin

import "parley/events"

// Of returns the origin of a form; nil if it has none. Each approval without an origin is of the dialect of approvals.
func Of(e *events.FormRequested) *events.Origin {
	if e.Origin == nil && e.Kind == events.Approval {
		return &events.Origin{Dialect: string(events.Approval)}
	}
	return e.Origin
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
