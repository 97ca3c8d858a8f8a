package mailbox

import (
	"slices"
	"strconv"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/vote"
)

// Of several who may answer a form, one claims it: the others see that it is on it, and until when. The form's home decides, and tells all
// who have the form:
//
//	a form to ops, a group of ann and bob     FormForwarded to both
//	bob claims it for half an hour            FormClaimed by bob, at the home and in each copy
//	ann answers                               CLAIMED: bob is on it
//	ann takes it over                         FormClaimed by ann, which was bob's
//	ann answers                               FormAnswered
//
// A claim ends by its time, by its release, and with the claimer's answer. It is no vote and no authority: who could not answer before still
// cannot. Only between the members of a group does it hold anybody up, and only until they take it over. It never holds up a call's decision,
// a deadline or the asker.

// Bounds of claims.
const (
	leastClaim  = 60_000         // milliseconds
	longestWork = 24 * 3_600_000 // milliseconds
	maxClaims   = 32             // by one agent of one form
)

// Claims are those of a form.
type Claims struct {
	Last *events.FormClaimed // nil before the first, and behind the answer of its claimer
	By   []capabilities.ID   // of each claim that was made, at the home; in a copy its agent, once it has claimed the form
}

// Claim returns the claim that is standing at a time; nil for none.
func (f *Form) Claim(now capabilities.Time) *events.FormClaimed {
	c := f.passed.get().Claims.Last
	if c == nil || c.Until <= now || !f.IsOpen() {
		return nil
	}
	return c
}

// isForOne reports whether the form is one to a group of which one member answers.
func isForOne(f *Form) bool {
	if vote.Needs(f.Route) > 1 || f.Kind == events.Approval {
		return false
	}
	return slices.ContainsFunc(f.Forwarded(), func(h events.FormForwarded) bool { return h.Because.Cause == events.Member }) ||
		slices.ContainsFunc(f.Steps.List(), func(s events.CopyStep) bool { return s.Cause == events.Member })
}

// checkClaim refuses with CLAIMED an answer to a form that another member of the group is on.
func (f *Form) checkClaim(by capabilities.ID, now capabilities.Time) error {
	c := f.Claim(now)
	if c == nil || c.By == by || !isForOne(f) || len(f.Holders) > 0 && !f.mayAnswer(c.By) { // only the home has holders
		return nil
	}
	return claimed("another agent", "NUMBER", c, now)
}

// checkClaimed is checkClaim for the agent's own copy, in its own words.
func checkClaimed(s *State, m *Message, now capabilities.Time) error {
	if err := m.Form.checkClaim(s.ID, now); err == nil {
		return nil
	}
	return claimedBy(s, m, m.Form.Claim(now), now)
}

// claimedBy returns the error of a form that another is on, with the agent's own name and number.
func claimedBy(s *State, m *Message, c *events.FormClaimed, now capabilities.Time) error {
	who, err := s.Names.describe(c.By)
	if err != nil {
		return err
	}
	return claimed(who, strconv.FormatUint(m.Number, 10), c, now)
}

// ClaimForm claims a form at its home, for an agent that may answer it, or without Until ends its claim. With TakeOver it takes over the
// claim of another. It refuses with CLAIMED what another is on.
type ClaimForm struct {
	Form     capabilities.ID
	By       capabilities.ID
	Until    capabilities.Time
	TakeOver bool
}

// RemoteClaimForm is a ClaimForm from another node.
type RemoteClaimForm struct{ ClaimForm }

// DraftClaim returns the command that claims a form, or without until ends the claim, and the form's home.
func DraftClaim(s *State, ref capabilities.FormRef, until capabilities.Time, takeOver bool, now capabilities.Time) (ClaimForm, capabilities.ID, error) {
	m, err := s.answerable(ref)
	if err != nil {
		return ClaimForm{}, capabilities.ID{}, err
	}
	if c := m.Form.Claim(now); c != nil && c.By != s.ID && !takeOver {
		return ClaimForm{}, capabilities.ID{}, claimedBy(s, m, c, now)
	}
	return ClaimForm{Form: m.Form.ID, By: s.ID, Until: until, TakeOver: takeOver}, m.Form.From, nil
}

// claimed says for how long and not until when: its readers are in several time zones.
func claimed(who, number string, c *events.FormClaimed, now capabilities.Time) error {
	left := c.Until.Std().Sub(now.Std()).Round(time.Minute)
	return parley.Refuse(parley.Claimed, "%s is on the form for %d min more", who, max(1, int(left.Minutes()))).
		WithHint(`take it over first: "Take it over" on its page, or parley claim %s --take-over`, number)
}

func (c ClaimForm) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	if err := checkHolder(f, s.ID, c.By); err != nil {
		return nil, err
	}
	if err := f.checkOpen(c.By, now); err != nil {
		return nil, err
	}
	stands := f.Claim(now)
	if stands != nil && !f.mayAnswer(stands.By) {
		stands = nil // it was taken back from who is on it
	}
	switch {
	case !f.mayAnswer(c.By):
		return nil, parley.Refuse(parley.NotPermitted, "the form was taken back from the agent that claims it")
	case stands != nil && stands.By != c.By && !c.TakeOver:
		return nil, claimed("another agent", "NUMBER", stands, now)
	case c.Until == 0 && (stands == nil || stands.By != c.By):
		return nil, nil
	case c.Until == 0:
		return []events.Event{&events.FormClaimed{Form: c.Form, By: c.By, Date: now}}, nil
	case c.Until < now+leastClaim/2 || c.Until > now+longestWork: // one for a minute was on its way for a while
		return nil, parley.Refuse(parley.InvalidArgument, "a form is claimed for a minute at least, and 24 hours at most")
	case stands != nil && stands.By == c.By && stands.Until == c.Until:
		return nil, nil
	}
	made := 0
	for _, by := range f.passed.get().Claims.By {
		if by == c.By {
			made++
		}
	}
	if made >= maxClaims {
		return nil, parley.Refuse(parley.TooLarge, "a form is claimed by one agent %d times at most", maxClaims)
	}
	e := &events.FormClaimed{Form: c.Form, By: c.By, Until: c.Until, Date: now}
	if stands != nil && stands.By != c.By {
		e.Was = stands.By
	}
	return []events.Event{e}, nil
}

func (c RemoteClaimForm) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if c.Until != 0 { // it was for so long when it was made
		c.Until = min(max(c.Until, now+leastClaim), now+longestWork)
	}
	return c.ClaimForm.decide(s, now, ids)
}

// QueueClaim records the claim of a form whose home is on another node in the agent's own log, until the home has decided on it.
type QueueClaim struct{ Claim ClaimForm }

func (c QueueClaim) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Claim.Form)
	if err != nil {
		return nil, err
	}
	if err := mayDraft(s, m); err != nil {
		return nil, err
	}
	if q := m.Form.Queued().Claim; q != nil {
		return nil, parley.Refuse(parley.AnswerPending, "a claim of form %d is on its way", m.Number)
	}
	return []events.Event{&events.ClaimQueued{Form: c.Claim.Form, Until: c.Claim.Until, TakeOver: c.Claim.TakeOver, Date: now}}, nil
}

// RecordClaim records the last claim of a form in a copy of it. It comes from the form's home.
type RecordClaim struct{ Claim events.FormClaimed }

// RemoteClaim is a RecordClaim from another node. Home is its sender there.
type RemoteClaim struct {
	RecordClaim

	Home capabilities.ID
}

func (c RecordClaim) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Claim.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.From == s.ID {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was asked here", c.Claim.Form)
	}
	if last := m.Form.passed.get().Claims.Last; !m.Form.IsOpen() || last != nil && *last == c.Claim {
		return nil, nil
	}
	return []events.Event{&c.Claim}, nil
}

func (c RemoteClaim) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Claim.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.From != c.Home {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not asked by the one who tells of its claim", c.Claim.Form)
	}
	if c.Claim.By.IsZero() || c.Claim.Until < 0 {
		return nil, parley.Refuse(parley.InvalidArgument, "a claim of form %s that cannot be one", c.Claim.Form)
	}
	own, err := s.confirmOwn(c, nil)
	if err != nil {
		return nil, err
	}
	e := own.(RemoteClaim).Claim
	if e.By == c.Home && e.Until == 0 && m.Form.Claim(now) == nil {
		return nil, nil
	}
	e.Date, e.Until = clampDate(e.Date, now), min(e.Until, now+longestWork)
	return RecordClaim{e}.decide(s, now, ids)
}

// claimFor returns the last claim of a form, for who may answer it.
func (f *Form) claimFor() Command {
	c := RecordClaim{events.FormClaimed{Form: f.ID, By: f.From}} // the claimer has voted since
	if last := f.passed.get().Claims.Last; last != nil {
		c.Claim = *last
	}
	return c
}

// queuedClaim returns the claim that the agent queued.
func (f *Form) queuedClaim(by capabilities.ID) (Command, error) {
	q := f.Queued().Claim
	if q == nil {
		return nil, parley.Refuse(parley.Internal, "outbox item of a claim of form %s, which has none", f.ID)
	}
	return ClaimForm{Form: f.ID, By: by, Until: q.Until, TakeOver: q.TakeOver}, nil
}

func formClaimed(f fold, e *events.FormClaimed) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	c := m.Form.passed.get().Claims
	c.Last = e
	home := m.Form.From == f.ID
	if home && e.Until != 0 {
		c.By = append(slices.Clone(c.By), e.By)
	}
	m.Form.passed.edit().Claims = c
	f.Mail.touch(m, f.Version)
	if home {
		for _, h := range m.Form.Holders {
			f.Outbox.enqueue(events.OutboxClaim, e.Form, h)
		}
	}
	return nil
}

func claimQueued(f fold, e *events.ClaimQueued) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	f.Mail.touch(m, f.Version)
	m.Form.queued.edit().Claim = e
	if c := m.Form.passed.get().Claims; !slices.Contains(c.By, f.ID) {
		c.By = append(slices.Clone(c.By), f.ID)
		m.Form.passed.edit().Claims = c
	}
	f.Outbox.enqueue(events.OutboxClaiming, e.Form, m.Form.From)
	return nil
}

// dropClaims forgets the claims of a form that has ended. One that nothing else has become of is as if there had been none.
func dropClaims(f *Form) {
	p := f.passed.part
	if p == nil {
		return
	}
	if p.Claims = (Claims{}); p.Forwarded == nil && p.Routed == nil && p.Reminded == nil && p.Signed == nil {
		f.passed.part = nil
	}
}

// endClaim ends the claim of an agent that has answered, as a vote.
func endClaim(f *Form, by capabilities.ID) {
	if c := f.passed.get().Claims.Last; c != nil && c.By == by {
		f.passed.edit().Claims.Last = nil
	}
}

// claimDecided drops the claim that waits, which the home has decided on.
func (f fold) claimDecided(p OutboxItem, refused string) {
	m, err := f.Mail.form(p.Subject)
	if err != nil || m.Form.Queued().Claim == nil {
		return
	}
	f.Mail.touch(m, f.Version)
	queued := m.Form.queued.edit()
	if queued.Claim = nil; refused != "" {
		queued.Refused = refused
	}
}
