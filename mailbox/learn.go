package mailbox

import (
	"slices"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// RecordOutcome takes in what became of a form that the mailbox has a copy of: that it was answered, or ended
// otherwise, or all the times that the mailbox's agent handed it on. One of the three is there.
type RecordOutcome struct {
	Form      capabilities.ID
	Answered  *events.FormAnswered
	Cancelled *events.FormCancelled
	Forwarded []events.FormForwarded

	home capabilities.ID // of another node, which brought it; zero from next door
}

// maxAhead is how far the clock of another node may be ahead for what it says of a form's end to be taken as it is: all
// who have the form are to see the same end.
const maxAhead = 24 * time.Hour

// dated returns the news of another node with no time in it that is far ahead of the clock here.
func (c RecordOutcome) dated(now capabilities.Time) RecordOutcome {
	dated := func(at capabilities.Time) capabilities.Time {
		if at > 0 && at <= now.Add(maxAhead) {
			return at
		}
		return now
	}
	if c.Answered != nil {
		c.Answered = new(*c.Answered)
		c.Answered.Date = dated(c.Answered.Date)
	}
	if c.Cancelled != nil {
		c.Cancelled = new(*c.Cancelled)
		c.Cancelled.Date = dated(c.Cancelled.Date)
	}
	c.Forwarded = slices.Clone(c.Forwarded)
	for i := range c.Forwarded {
		c.Forwarded[i].Date = dated(c.Forwarded[i].Date)
	}
	return c
}

func (c RecordOutcome) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if !c.home.IsZero() {
		c = c.dated(now)
	}
	m, err := s.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	if !c.home.IsZero() && f.From != c.home {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not asked by the one who brings its news", c.Form)
	}
	if f.From == s.ID { // here it is settled, and by SettleForm and Cancel alone
		return nil, parley.Refuse(parley.NotPermitted, "form %s was asked here", c.Form)
	}
	switch {
	case c.Answered != nil && c.Cancelled == nil && len(c.Forwarded) == 0:
		return c.answered(s, f)
	case c.Cancelled != nil && c.Answered == nil && len(c.Forwarded) == 0:
		return c.cancelled(f)
	case c.Cancelled == nil && c.Answered == nil && len(c.Forwarded) > 0:
		return c.forwarded(s, f)
	}
	return nil, parley.Refuse(parley.InvalidArgument, "the news of form %s has to be of one thing", c.Form)
}

func (c RecordOutcome) answered(s *State, f *Form) ([]events.Event, error) {
	if err := f.checkAnswered(c.Answered, s.ID); err != nil || !f.IsOpen() {
		return nil, err
	}
	if !c.home.IsZero() {
		return c.answeredAway(s)
	}
	evs := []events.Event{c.Answered}
	if c.Answered.By == s.ID { // what it gave away is on its books from now on
		evs = append(evs, granted(c.Answered.Grants)...)
	}
	return evs, nil
}

// answeredAway takes in the news from another node. What is sealed there is of no use here, and passes for
// nothing that was sealed here.
func (c RecordOutcome) answeredAway(s *State) ([]events.Event, error) {
	a := *c.Answered
	if err := s.checkGave(&a); err != nil {
		return nil, err
	}
	a.Values, _ = a.Values.Map(shutLeaf) // the function returns no error, so neither does Map
	return []events.Event{&a}, nil
}

// checkGave refuses news from another node of something given that is not on the agent's books: they were
// there before it left. Who holds what it has given away holds what stands in the news.
func (s *State) checkGave(a *events.FormAnswered) error {
	for _, g := range a.Grants {
		if own, ok := s.given.Get(g.ID); !ok || own.Ref() != g.Ref() || own.To != g.To || own.Message != a.Form {
			return parley.Refuse(parley.NotPermitted, "the news of form %s is of a grant that was not made", a.Form)
		}
	}
	given := func(r capabilities.Ref) bool {
		return slices.ContainsFunc(a.Grants, func(g capabilities.Grant) bool { return g.Ref() == r })
	}
	if !eachRef(a.Values, given) {
		return parley.Refuse(parley.NotPermitted, "the news of form %s brings what the agent has not given", a.Form)
	}
	return nil
}

// checkAnswered holds the news of an answer to what outcomeFor makes: the values are for their giver alone.
func (f *Form) checkAnswered(a *events.FormAnswered, holder capabilities.ID) error {
	mine := a.By == holder
	if a.Form != f.ID || a.By.IsZero() || a.Withheld == mine {
		return newsOfAnother(f)
	}
	if !mine {
		if !a.Values.IsNull() || len(a.Grants) > 0 {
			return newsOfAnother(f)
		}
		return nil
	}
	values, ok := a.Values.AsRecord()
	if !ok {
		return newsOfAnother(f)
	}
	if err := a.Values.Check(); err != nil {
		return err
	}
	return f.checkGrants(values, holder, a.Grants)
}

func newsOfAnother(f *Form) error {
	return parley.Refuse(parley.InvalidArgument, "this is no news of form %s for the agent that it came to", f.ID)
}

func (c RecordOutcome) cancelled(f *Form) ([]events.Event, error) {
	e := c.Cancelled
	known := []events.Reason{events.Cancelled, events.Declined, events.Expired, events.Superseded}
	if e.Form != f.ID || !slices.Contains(known, e.Reason) {
		return nil, newsOfAnother(f)
	}
	if err := checkText("a reason", e.Note, maxReason); err != nil || !f.IsOpen() {
		return nil, err
	}
	return []events.Event{e}, nil
}

func (c RecordOutcome) forwarded(s *State, f *Form) ([]events.Event, error) {
	var evs []events.Event
	for _, h := range c.Forwarded {
		if h.Form != f.ID || h.By != s.ID || h.To.IsZero() {
			return nil, newsOfAnother(f)
		}
		if slices.ContainsFunc(f.Forwarded, func(was events.FormForwarded) bool { return was.To == h.To && was.Via == h.Via }) {
			continue
		}
		if own, ok := s.given.Get(h.Via); !c.home.IsZero() && (!ok || own.Target != h.To || own.Message != h.Form) {
			return nil, parley.Refuse(parley.NotPermitted, "the news of form %s is of a handover that was not wanted", h.Form)
		}
		evs = append(evs, &h)
		if n := len(f.Forwarded) + len(evs); n > MaxHolders {
			return nil, parley.Refuse(parley.TooLarge, "the form was handed on %d times", n)
		}
	}
	return evs, nil
}

// RecordRevocation takes in that a grant which the agent was given is revoked.
type RecordRevocation struct {
	Grant capabilities.ID
	By    capabilities.ID
	Date  capabilities.Time

	outside bool // from another node
}

func (c RecordRevocation) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if c.Grant.IsZero() { // the parent of all that the agent gave of its own
		return nil, parley.Refuse(parley.InvalidArgument, "there is no grant without an ID")
	}
	if _, gone := s.revoked[c.Grant]; gone {
		return nil, nil
	}
	if _, own := s.given.Get(c.Grant); own {
		return nil, parley.Refuse(parley.NotPermitted, "grant %s is this agent's own to revoke", c.Grant)
	}
	if c.outside && !s.touches(c.Grant, c.By) {
		return nil, nil
	}
	if c.outside {
		c.Date = notAhead(c.Date, now)
	}
	return []events.Event{&events.CapabilityRevoked{Grant: c.Grant, By: c.By, Date: c.Date}}, nil
}

// touches reports whether a grant that another made has been any concern of the agent's: it can be reached by
// it, or was given something by it. Others could make any number up.
func (s *State) touches(grant, by capabilities.ID) bool {
	byIt := func(r capabilities.Ref) bool { return r.Grant == grant }
	if _, minted := s.minted.Get(grant); minted || len(s.given.Cut(grant)) > 0 {
		return true
	}
	for _, v := range s.names {
		if !eachRef(v, func(r capabilities.Ref) bool { return !byIt(r) }) {
			return true
		}
	}
	return slices.ContainsFunc(s.messages, func(m *Message) bool {
		if m.From() == s.ID && byIt(s.refTo(m)) {
			return true
		}
		if m.From() != by && (m.Form == nil || m.Form.Answered == nil || m.Form.Answered.By != by) {
			return false
		}
		return slices.ContainsFunc(s.carried(m), func(e edge) bool {
			return !eachRef(e.value, func(r capabilities.Ref) bool { return !byIt(r) })
		})
	})
}

// maxRefused is how many characters are kept of why a parcel was refused.
const maxRefused = 200

// RecordDelivery notes that parcels have arrived, or that the other would not have them. A receipt for what is no
// longer owed changes nothing.
type RecordDelivery struct {
	Items   []OutboxItem
	Refused string
}

func (c RecordDelivery) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	seqs := make([]uint64, 0, len(c.Items))
	var evs []events.Event
	for _, p := range c.Items {
		if _, owed := s.isQueued(p); !owed {
			continue
		}
		seqs = append(seqs, p.Seq)
		if e := s.unwanted(p, c.Refused, now); e != nil {
			evs = append(evs, e)
		}
	}
	if len(seqs) == 0 {
		return nil, nil
	}
	slices.Sort(seqs)
	arrived := &events.MessageDelivered{Items: slices.Compact(seqs), Refused: parley.Shown(c.Refused, maxRefused)}
	return append([]events.Event{arrived}, evs...), nil
}

// unwanted ends a form that the only one who could have answered it would not have.
func (s *State) unwanted(p OutboxItem, refused string, now capabilities.Time) events.Event {
	if refused == "" || p.Kind != events.OutboxCopy {
		return nil
	}
	m, err := s.form(p.Subject)
	if err != nil || !m.Form.IsOpen() || len(m.Form.Holders) != 1 {
		return nil
	}
	return &events.FormCancelled{Form: p.Subject, Reason: events.Declined, By: p.To, Note: "not accepted: " + parley.Shown(refused, maxRefused), Date: now}
}
