package right

import (
	"bytes"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Outcomes that a right may name, beside the decisions of an approval.
const (
	Answer  = "answer"
	Decline = "decline"
)

// Bounds of a ledger.
const (
	MaxOpen  = 4096 // rights to answer open forms
	MaxForm  = 64   // of one form
	MaxShare = 8    // that derive from one right, at any depth
	maxOver  = 1024 // rights that are revoked, or to answer forms that have ended: kept to tell late users what happened
)

// Right is a right to answer a form.
type Right struct {
	events.AnswerGranted
	Ended   bool // the form has ended
	Counted bool // the last use counts, as a vote
}

// ID returns the ID of the right's grant.
func (r *Right) ID() capabilities.ID { return r.Grant.ID }

// Form returns the form's ID.
func (r *Right) Form() capabilities.ID { return r.Grant.Message }

// May reports whether the right names an outcome.
func (r *Right) May(outcome string) bool { return slices.Contains(r.Outcomes, outcome) }

// isOver reports whether the right can never be used again: it was revoked, or the form has ended.
func (r *Right) isOver() bool { return r.Ended || r.Grant.Revoked != 0 }

// permits refuses with NOT_PERMITTED a right that is revoked, spent or past its end.
func (r *Right) permits(now capabilities.Time) error {
	if r.Grant.Revoked != 0 {
		return parley.Refuse(parley.NotPermitted, "the right to answer was revoked at %s", r.Grant.Revoked)
	}
	return r.Grant.Facet.Permits(capabilities.UseGive, now, r.Used)
}

// Ledger is a list of rights, oldest first. The zero Ledger is empty.
type Ledger struct {
	rights []*Right
	byID   map[capabilities.ID]*Right
}

// Restore adds a right as it was.
func (l *Ledger) Restore(r Right) {
	if l.byID == nil {
		l.byID = map[capabilities.ID]*Right{}
	}
	l.rights = append(l.rights, &r)
	l.byID[r.ID()] = &r
}

// Set adds a right, or records a use of it.
func (l *Ledger) Set(e *events.AnswerGranted) {
	if r := l.byID[e.Grant.ID]; r != nil {
		r.Used, r.Last, r.Counted = e.Used, e.Last, false
		return
	}
	l.Restore(Right{AnswerGranted: *e})
}

// Get returns a right. It refuses with NOT_PERMITTED an ID of none.
func (l *Ledger) Get(id capabilities.ID) (*Right, error) {
	if r := l.byID[id]; r != nil {
		return r, nil
	}
	return nil, parley.Refuse(parley.NotPermitted, "there is no right to answer %s", id).WithHint("parley grants lists them")
}

// All returns the rights, oldest first.
func (l *Ledger) All() []Right {
	all := make([]Right, len(l.rights))
	for i, r := range l.rights {
		all[i] = *r
	}
	return all
}

// Open returns the rights to answer forms that have not ended, oldest first.
func (l *Ledger) Open() []Right {
	return slices.DeleteFunc(l.All(), func(r Right) bool { return r.Ended })
}

// Room refuses with QUOTA_EXCEEDED another right to answer a form if there are too many.
func (l *Ledger) Room(form capabilities.ID) error {
	open, same := 0, 0
	for _, r := range l.rights {
		if r.isOver() {
			continue
		}
		open++
		if r.Form() == form {
			same++
		}
	}
	if open >= MaxOpen || same >= MaxForm {
		return parley.Refuse(parley.QuotaExceeded, "there are %d rights to answer this form, and %d in all", same, open).WithHint("parley revoke ends one")
	}
	return nil
}

// Narrow limits a new right to what its parent permits. It refuses with NOT_PERMITTED an outcome that the parent does
// not name. So it does for a parent of another form or without a use left; with QUOTA_EXCEEDED one whose share is used
// up.
func (l *Ledger) Narrow(e *events.AnswerGranted, now capabilities.Time) error {
	if e.Grant.Parent.IsZero() {
		return nil
	}
	parent, err := l.Get(e.Grant.Parent)
	if err != nil {
		return err
	}
	if parent.Form() != e.Grant.Message || parent.Revision != e.Revision {
		return parley.Refuse(parley.NotPermitted, "the right %s is to answer another question", parent.ID())
	}
	for _, r := range l.chain(parent) {
		if err := r.permits(now); err != nil {
			return err
		}
		if l.derived(r) >= MaxShare {
			return parley.Refuse(parley.QuotaExceeded, "%d rights derive from the right %s", MaxShare, r.ID()).
				WithHint("whoever made it may end one with parley revoke, or give another right")
		}
	}
	if len(e.Outcomes) == 0 {
		e.Outcomes = slices.Clone(parent.Outcomes)
	}
	for _, o := range e.Outcomes {
		if !parent.May(o) {
			return parley.Refuse(parley.NotPermitted, "the right %s does not permit %s", parent.ID(), parley.Quoted(o, 40))
		}
	}
	e.Grant.Facet = parent.Grant.Facet.Narrow(e.Grant.Facet)
	return nil
}

// Check returns the right whose secret has a digest. It refuses with UNAUTHENTICATED any other.
func (l *Ledger) Check(id capabilities.ID, digest []byte) (*Right, error) {
	r := l.byID[id]
	if r == nil || !bytes.Equal(r.Digest, digest) { // digests need no comparison in constant time
		return nil, parley.Refuse(parley.Unauthenticated, "the link is not good, or is too old")
	}
	return r, nil
}

// Use returns the events of using a right for an outcome. The mark is equal for equal answers, and not empty. Repeating the
// last answer is the same use, and has no events: it may be sent again if its reply was lost. It refuses with NOT_PERMITTED.
func (l *Ledger) Use(r *Right, outcome, mark string, now capabilities.Time) ([]events.Event, error) {
	if !r.May(outcome) {
		return nil, parley.Refuse(parley.NotPermitted, "the right to answer does not permit %s", parley.Quoted(outcome, 40))
	}
	if mark != "" && r.Last == mark && r.Grant.Revoked == 0 && (r.Grant.Facet.Until == 0 || now < r.Grant.Facet.Until) {
		return nil, nil
	}
	var evs []events.Event
	for _, each := range l.chain(r) {
		if err := each.permits(now); err != nil {
			return nil, err
		}
		used := each.AnswerGranted
		used.Used++
		used.Last = mark
		evs = append(evs, &used)
	}
	return evs, nil
}

// chain returns a right and those that it derives from.
func (l *Ledger) chain(r *Right) (all []*Right) {
	for ; r != nil; r = l.byID[r.Grant.Parent] {
		all = append(all, r)
	}
	return all
}

// derived returns how many rights derive from a right, at any depth. Those that were revoked don't count.
func (l *Ledger) derived(from *Right) (n int) {
	below := map[capabilities.ID]bool{from.ID(): true}
	for _, r := range l.rights { // a right comes after its parent
		if !r.Grant.Parent.IsZero() && below[r.Grant.Parent] {
			below[r.ID()] = true
			if r.Grant.Revoked == 0 {
				n++
			}
		}
	}
	return n
}

// Revoke marks a right as revoked, with all derived from it. It reports whether there is such a right. The oldest rights
// that are over are dropped when there are many.
func (l *Ledger) Revoke(id capabilities.ID, at capabilities.Time) bool {
	if l.byID[id] == nil {
		return false
	}
	ended := map[capabilities.ID]bool{id: true}
	for _, r := range l.rights { // a right comes after its parent
		if ended[r.ID()] || ended[r.Grant.Parent] {
			ended[r.ID()] = true
			if r.Grant.Revoked == 0 {
				r.Grant.Revoked = at
			}
		}
	}
	l.trim()
	return true
}

// Count notes that an answer to a form has counted, as a vote: that of the last use, if none has since. Another one takes
// its place, and the use is over: it is not repeated.
func (l *Ledger) Count(form capabilities.ID) {
	for _, r := range l.rights {
		if r.Form() == form {
			if r.Counted {
				r.Last = ""
			}
			r.Counted = r.Last != ""
		}
	}
}

// Discount notes that the vote on a form was taken back. The use that led to it is over.
func (l *Ledger) Discount(form capabilities.ID) {
	for _, r := range l.rights {
		if r.Form() == form {
			r.Last, r.Counted = "", false
		}
	}
}

// End notes that a form has ended. The oldest rights that are over are dropped when there are many.
func (l *Ledger) End(form capabilities.ID) {
	for _, r := range l.rights {
		r.Ended = r.Ended || r.Form() == form
	}
	l.trim()
}

// trim drops the oldest rights that are over, beyond maxOver. What derives from a right is over when the right is.
func (l *Ledger) trim() {
	over := 0
	for _, r := range l.rights {
		if r.isOver() {
			over++
		}
	}
	if over <= maxOver {
		return
	}
	l.rights = slices.DeleteFunc(l.rights, func(r *Right) bool {
		if over <= maxOver || !r.isOver() {
			return false
		}
		over--
		delete(l.byID, r.ID())
		return true
	})
}
