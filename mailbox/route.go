package mailbox

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/vote"
)

// Bounds of routes.
const (
	maxSteps = 16                                  // reminders, and escalations
	maxDelay = events.Delay(10 * 366 * 86_400_000) // milliseconds
)

// route returns the route of a form for its recipient; nil if there is none.
func (a RequestForm) route(s *State, to capabilities.ID, now capabilities.Time) (*events.Route, error) {
	votes := a.votes()
	if votes == (votingRule{}) && len(a.Remind) == 0 && len(a.Escalate) == 0 && !a.Passkey {
		return nil, nil
	}
	if len(a.Remind) > maxSteps || len(a.Escalate) > maxSteps {
		return nil, parley.Refuse(parley.TooLarge, "a form has %d reminders and %d escalations at most", maxSteps, maxSteps)
	}
	r := &events.Route{Need: votes.need, NoVeto: votes.noVeto, NoSelf: votes.noSelf, Passkey: a.Passkey, Remind: slices.Clone(a.Remind)}
	slices.Sort(r.Remind)
	seen := []capabilities.ID{to, s.ID}
	for _, step := range a.Escalate {
		ref, err := s.holder(capabilities.UseAsk, now).reach(step.To)
		if err != nil {
			return nil, err
		}
		if ref.Facet.Uses != 0 && !ref.Grant.IsZero() { // the uses may be gone by then
			return nil, parley.Refuse(parley.NotPermitted, "a form cannot be escalated by a reference for %d uses", ref.Facet.Uses)
		}
		if slices.Contains(seen, ref.Target) {
			return nil, parley.Refuse(parley.InvalidArgument, "a form is escalated to another agent than its asker and its recipient, and once: not to %s", parley.Quoted(step.To, 80))
		}
		seen = append(seen, ref.Target)
		r.Escalate = append(r.Escalate, events.Escalation{After: step.After, To: ref.Target, Via: ref.Grant, Facet: ref.Facet})
	}
	slices.SortStableFunc(r.Escalate, func(a, b events.Escalation) int { return int(min(max(a.After-b.After, -1), 1)) })
	return r, checkDelays(r)
}

// checkDelays refuses a delay that no route has.
func checkDelays(r *events.Route) error {
	delays := slices.Clone(r.Remind)
	for _, e := range r.Escalate {
		delays = append(delays, e.After)
	}
	for _, d := range delays {
		if d <= 0 || d > maxDelay {
			return parley.Refuse(parley.InvalidArgument, "a reminder or escalation after %s: want more than none, and ten years at most", d)
		}
	}
	return nil
}

// sameRoute reports whether a request has the route of a form.
func (a RequestForm) sameRoute(s *State, r *events.Route) (bool, error) {
	votes := a.votes()
	if r == nil {
		return votes == (votingRule{}) && len(a.Remind) == 0 && len(a.Escalate) == 0 && !a.Passkey, nil
	}
	if votes != (votingRule{r.Need, r.NoVeto, r.NoSelf}) || a.Passkey != r.Passkey {
		return false, nil
	}
	remind := slices.Clone(a.Remind)
	slices.Sort(remind)
	if !slices.Equal(remind, r.Remind) || len(a.Escalate) != len(r.Escalate) {
		return false, nil
	}
	for _, step := range a.Escalate {
		to, err := s.Namespace().addressed(step.To)
		if err != nil {
			return false, err
		}
		if !slices.ContainsFunc(r.Escalate, func(e events.Escalation) bool { return e.To == to && e.After == step.After }) {
			return false, nil
		}
	}
	return true, nil
}

// reminded returns the number of reminders that were sent.
func (r *Recipients) reminded() uint32 {
	if r.Reminded() == nil {
		return 0
	}
	return r.Reminded().N
}

// steps returns the number of escalations that were made.
func (r *Recipients) steps() (n uint32) {
	for _, r := range r.Routed() {
		if r.Cause != events.Revoked {
			n = max(n, r.Step)
		}
	}
	return n
}

// NextReminder returns the time of the next reminder of an open form; 0 if there is none, or if it is known elsewhere.
func (f *Form) NextReminder() capabilities.Time {
	if n := int(f.reminded()); f.IsOpen() && f.Route != nil && n < len(f.Route.Remind) {
		return f.Route.Remind[n].After(f.Date)
	}
	return 0
}

// NextEscalation returns the next escalation of an open form. It reports false if there is none, or if it is known
// elsewhere.
func (f *Form) NextEscalation() (to capabilities.ID, at capabilities.Time, ok bool) {
	n := int(f.steps())
	if !f.IsOpen() || f.Route == nil || n >= len(f.Route.Escalate) {
		return to, 0, false
	}
	e := f.Route.Escalate[n]
	return e.To, e.After.After(f.Date), true
}

// routedTo returns the event that routed the form to an agent; nil if there is none.
func (r *Recipients) routedTo(id capabilities.ID) *events.FormRouted {
	i := slices.IndexFunc(r.Routed(), func(r events.FormRouted) bool { return r.To == id && r.Cause == events.Escalated })
	if i < 0 {
		return nil
	}
	return &r.Routed()[i]
}

// delayOf returns the delay of a step of the form's route; 0 if the route has no such step.
func (q *Question) delayOf(r *events.FormRouted) events.Delay {
	if q.Route == nil || r.Step == 0 || int(r.Step) > len(q.Route.Escalate) {
		return 0
	}
	return q.Route.Escalate[r.Step-1].After
}

// addRoute adds a step to the form, whether in the state or made again.
func (f *Form) addRoute(e *events.FormRouted) {
	passed := f.passed.edit()
	passed.Routed = append(passed.Routed, *e)
	if e.Cause == events.Escalated {
		f.addHolder(e.To)
	}
}

// copied returns the part of a route that those who may answer a form know; nil if that is nothing.
func copied(r *events.Route) *events.Route {
	if r == nil || vote.Needs(r) == 1 && !r.NoSelf && !r.Passkey {
		return nil
	}
	return &events.Route{Need: r.Need, NoVeto: r.NoVeto, NoSelf: r.NoSelf, Passkey: r.Passkey}
}

// RemindForms reminds those who may answer of the forms with a reminder that is due: once for all that have been due
// since the last. A form whose deadline has passed has none.
type RemindForms struct{}

func (RemindForms) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	var evs []events.Event
	for _, number := range s.Mail.passed(reminds, now) {
		f := s.Mail.live[number].Form
		if f.isExpired(now) {
			continue
		}
		e := &events.FormReminded{Form: f.ID, Date: now}
		for _, d := range f.Route.Remind {
			if d.After(f.Date) <= now {
				e.N++
			}
		}
		evs = append(evs, e)
	}
	return evs, nil
}

// isExpired reports whether the form's deadline has passed.
func (q *Question) isExpired(now capabilities.Time) bool { return q.Deadline != 0 && now >= q.Deadline }

// EscalateForms adds the agents to which forms are escalated now. A form whose deadline has passed is not escalated.
type EscalateForms struct{}

func (EscalateForms) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	var evs []events.Event
	for _, number := range s.Mail.passed(escalates, now) {
		f := s.Mail.live[number].Form
		if f.isExpired(now) {
			continue
		}
		holders := len(f.Holders)
		for i, step := range f.Route.Escalate {
			if uint32(i) < f.steps() || step.After.After(f.Date) > now {
				continue
			}
			e := &events.FormRouted{Form: f.ID, To: step.To, Via: step.Via, Cause: events.Escalated, Step: uint32(i + 1), Date: now}
			ref := capabilities.Ref{Target: step.To, Kind: capabilities.KindAgent, Facet: step.Facet, Grant: step.Via}
			if s.permit(ref, capabilities.UseAsk, now) != nil || f.mayAnswer(step.To) || holders >= MaxHolders {
				e.Cause = events.Unreachable
			} else {
				holders++
			}
			evs = append(evs, e)
		}
	}
	return evs, nil
}

// formReminded folds a reminder in. At the form's home, it is enqueued for every holder. A copy comes back unread.
func (f fold) formReminded(e *events.FormReminded) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	if e.N <= m.Form.reminded() {
		return fmt.Errorf("%w: reminder %d of form %s after %d", ErrNonsense, e.N, e.Form, m.Form.reminded())
	}
	m.Form.passed.edit().Reminded = e
	f.Mail.touch(m, f.Version)
	f.Mail.Index.entries.Note(m.Number, f.Version)
	if m.Form.From != f.ID {
		f.Mail.Index.setRead(m.Number, false)
		return nil
	}
	for _, h := range m.Form.Holders {
		f.Outbox.enqueue(events.OutboxReminder, e.Form, h)
	}
	return nil
}

// formRouted folds a step of a route in.
func (f fold) formRouted(e *events.FormRouted) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	known := e.Step <= m.Form.steps()
	if e.Cause == events.Revoked {
		known = e.Step == 0 || int(e.Step) > len(m.Form.Forwarded()) || m.Form.isTakenBack(int(e.Step)-1)
	}
	if m.Form.From != f.ID || known {
		return fmt.Errorf("%w: step %d of form %s after %d", ErrNonsense, e.Step, e.Form, m.Form.steps())
	}
	m.Form.addRoute(e)
	f.Mail.touch(m, f.Version)
	f.Mail.Index.entries.Note(m.Number, f.Version)
	if e.Cause != events.Escalated {
		return nil
	}
	f.Grants.addReply(e.To, e.Form, e.Date)
	f.enqueueCopy(m.Form, e.To)
	return nil
}

// enqueueCopy enqueues a form for an agent that may answer it from now on. The copy is of the form as it was asked.
func (f fold) enqueueCopy(form *Form, to capabilities.ID) {
	f.Outbox.enqueue(events.OutboxCopy, form.ID, to)
	if form.Amended() != nil {
		f.Outbox.enqueue(events.OutboxAmendment, form.ID, to)
	}
	if len(form.Votes().Standing) > 0 {
		f.Outbox.enqueue(events.OutboxVotes, form.ID, to)
	}
	if form.passed.get().Claims.Last != nil {
		f.Outbox.enqueue(events.OutboxClaim, form.ID, to)
	}
}

// RecordReminder records the latest reminder of a form in a copy of it. It comes from the form's home on this node. A
// reminder that is here already has no effect, nor one of a form that has ended.
type RecordReminder struct{ Reminder *events.FormReminded }

// RemoteReminder is a RecordReminder from another node. Home is its sender there.
type RemoteReminder struct {
	RecordReminder

	Home capabilities.ID
}

func (c RecordReminder) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Reminder.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.From == s.ID {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was asked here", m.Form.ID)
	}
	if !m.Form.IsOpen() || c.Reminder.N <= m.Form.reminded() {
		return nil, nil
	}
	if c.Reminder.N > maxSteps {
		return nil, parley.Refuse(parley.TooLarge, "a form is reminded of %d times at most", maxSteps)
	}
	return []events.Event{c.Reminder}, nil
}

func (c RemoteReminder) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Reminder.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.From != c.Home {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not asked by the one who reminds of it", m.Form.ID)
	}
	e := *c.Reminder
	e.Date = clampDate(e.Date, now)
	return RecordReminder{&e}.decide(s, now, ids)
}

// votingRule is the part of a route that says which answers settle a form. The zero value is the first answer.
type votingRule struct {
	need           uint32
	noVeto, noSelf bool
}

// votes returns the rule of a request. One for a single answer has no veto to leave out.
func (a RequestForm) votes() votingRule {
	r := votingRule{a.Need, a.Veto != nil && !*a.Veto, a.NoSelf}
	if a.Need <= 1 {
		r.need, r.noVeto = 0, false
	}
	return r
}

// checkVotes refuses a route that needs answers which cannot be given. A capability is given by one answer.
func checkVotes(kind events.FormKind, r *events.Route, fields []events.Field, noForward bool) error {
	need := vote.Needs(r)
	switch {
	case need == 1:
		return nil
	case need > MaxHolders:
		return parley.Refuse(parley.TooLarge, "a form needs %d answers at most, and not %d", MaxHolders, need)
	case noForward && 1+len(r.Escalate) < need:
		return parley.Refuse(parley.InvalidArgument, "the form needs %d answers, and at most %d could come", need, 1+len(r.Escalate)).
			WithHint("let it be forwarded, or escalate it to others")
	case kind == events.Request || slices.ContainsFunc(fields, func(f events.Field) bool { return form.ControlOf(&f) == form.Reference }):
		return parley.Refuse(parley.InvalidForm, "a form that asks for a capability needs one answer, and not %d", need)
	}
	return nil
}

// canDecide reports whether a vote on the form may have an outcome.
func (q *Question) canDecide(o events.VoteOutcome) bool {
	if q.Kind == events.Approval {
		return slices.Contains([]events.VoteOutcome{Deny, Once, Always, Never, events.VoteDeclined}, o)
	}
	return o == events.VoteAnswered || o == events.VoteDeclined
}

// principal returns the one whose vote an answer is: the host of the agent, or its node if that is another.
func (c SettleForm) principal(s *State) capabilities.ID {
	if p := s.Account.of(c.By); p != c.By || c.Principal.IsZero() {
		return p
	}
	return c.Principal
}

// checkVoter refuses an answer that does not count by the form's route.
func (c SettleForm) checkVoter(s *State, f *Form) error {
	switch {
	case vote.Needs(f.Route) > 1 && c.By == s.ID:
		return parley.Refuse(parley.NotPermitted, "the answer of the asker does not count")
	case f.Route != nil && f.Route.NoSelf && c.principal(s) == s.Profile.Host:
		return parley.Refuse(parley.NotPermitted, "answers by agents of the asker's own host do not count")
	case f.Votes().CastBy(c.By) >= vote.MostOf:
		return parley.Refuse(parley.TooLarge, "an agent votes %d times at most on one form", vote.MostOf)
	}
	return c.checkSecond(s, f)
}

// person returns who answers.
func (c SettleForm) person() capabilities.ID {
	if c.Person.IsZero() {
		return c.By
	}
	return c.Person
}

// checkSecond refuses a second vote of a person as another agent, unless that is wanted: it would count beside the first. The
// error has the IDs of both agents, for the person's own names.
func (c SettleForm) checkSecond(s *State, f *Form) error {
	if c.Second || vote.Needs(f.Route) == 1 || s.isRemote(c.By) {
		return nil
	}
	before := slices.IndexFunc(f.Votes().Standing, func(v events.VoteCast) bool {
		return (v.By == c.person() || v.Person == c.person()) && v.Principal != c.principal(s)
	})
	if before < 0 {
		return nil
	}
	e := parley.Refuse(parley.NotPermitted, "you have voted as another agent already")
	e.Fields = map[string]string{SecondVote: "one person has one vote, unless this says so", votedAs: f.Votes().Standing[before].By.String(), votesAs: c.By.String()}
	return e.WithHint("name the agent (--as), or give secondVote, to vote for another whom you stand for")
}

// principalOf returns the one as whom a mailbox's agent votes on the form: its host, or its node for a home on another.
func (f *Form) principalOf(s *State) capabilities.ID {
	if s.isRemote(f.From) {
		return capabilities.ID{Node: s.ID.Node}
	}
	return SettleForm{By: s.ID, Principal: s.Profile.Host}.principal(s)
}

// CountsBeside reports whether a vote on the form counts beside one of a mailbox's agent. Only a home on the same node tells its
// agents apart.
func (f *Form) CountsBeside(s *State, v events.VoteCast) bool {
	return !s.isRemote(f.From) && v.Principal != f.principalOf(s)
}

// SecondVote is the field of the error that refuses a second vote.
const SecondVote = "secondVote"

// The fields of that error with the agents as whom the person has voted, and votes.
const votedAs, votesAs = "votedAs", "votesAs"

// Voters returns the agents in the error that refuses a second vote: as whom the person has voted, and as whom now.
func Voters(refused *parley.Error) []capabilities.ID {
	var ids []capabilities.ID
	for _, field := range []string{votedAs, votesAs} {
		if id, err := capabilities.ParseID(refused.Fields[field]); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// NameVoters returns the error that refuses a second vote with names for the agents in it.
func NameVoters(refused *parley.Error, before, now string) *parley.Error {
	e := parley.Refuse(refused.Code, "you have voted as %s already, and this votes as %s", before, now)
	e.Fields = map[string]string{SecondVote: refused.Fields[SecondVote]}
	e.Hint = refused.Hint
	return e
}

// counted returns the events of a settlement, or of the vote that it is if the form needs more.
func (c SettleForm) counted(s *State, f *Form, settled []events.Event, now capabilities.Time) []events.Event {
	if vote.Needs(f.Route) == 1 {
		return settled
	}
	v := events.VoteCast{Form: f.ID, By: c.By, Principal: c.principal(s), Revision: f.Revision(), Digest: f.QuestionDigest(), Date: now, Answer: c.Answer, Person: c.Person}
	if c.Person == c.By {
		v.Person = capabilities.ID{}
	}
	var values capabilities.Value
	if a, ok := settled[0].(*events.FormAnswered); ok {
		values = a.Values
	}
	v.Outcome, v.Note = f.voteOf(c.Reason, c.Note, values)
	if f.settles(v, s.Profile.Host) {
		return settled
	}
	return []events.Event{&v}
}

// settles reports whether a vote ends the form, which needs several. Without the agent's host, others do not allow its
// call: the host may deny it alone, and has to agree.
func (f *Form) settles(v events.VoteCast, host capabilities.ID) bool {
	ends := f.Votes().Settles(f.Route, v, f.left(v))
	switch {
	case f.Kind != events.Approval:
		return ends
	case vote.Denies(v.Outcome):
		return ends || v.By == host
	}
	return ends && f.isAgreed(host, v.By, v.Outcome)
}

// QuestionDigest returns the digest of the question as it is now, or of the call that an approval shows. That a passkey is asked for is
// a part of what is shown.
func (q *Question) QuestionDigest() events.Hash {
	if q.Kind == events.Approval {
		return q.Permission().Hash()
	}
	e := events.FormAmended{Title: q.Title, Description: q.Description, Fields: q.Fields}
	sum := e.QuestionDigest()
	if q.AsksPasskey() {
		sum = sha256.Sum256(append(sum[:], "passkey"...))
	}
	return sum
}

// AsksPasskey reports whether the form's asker wants answers to be signed with a passkey.
func (q *Question) AsksPasskey() bool { return q.Route != nil && q.Route.Passkey }

// Waiting returns the agents whose vote is still to come, at the form's home. One that has handed the form on is not
// waited for, though it may answer. An approval waits for the agent's host, whom it was put to, all the same.
func (f *Form) Waiting() []capabilities.ID {
	return slices.DeleteFunc(slices.Clone(f.Holders), func(h capabilities.ID) bool {
		voted := func(v events.VoteCast) bool { return isRemote(h, f.From.Node) && v.By.Node == h.Node }
		return h == f.From || isCut(f, h) || slices.ContainsFunc(f.Votes().Standing, voted) || f.Votes().Of(h) != nil || hasHandedOn(f, h)
	})
}

// hasHandedOn reports whether an agent leaves the form to those to whom it forwarded it. Forwards that were taken back are
// none, and an approval stays with the agent that was asked.
func hasHandedOn(f *Form, id capabilities.ID) bool {
	if f.Kind == events.Approval && id == f.To {
		return false
	}
	for i, e := range f.Forwarded() {
		if e.By == id && !f.isTakenBack(i) {
			return true
		}
	}
	return false
}

// left returns the number of principals whose votes may still come beside one, with those of steps to come. Agents of this
// node are taken for one each: their hosts are not known here before they answer.
func (f *Form) left(v events.VoteCast) int {
	n := 0
	if f.Route != nil {
		n = len(f.Route.Escalate) - int(f.steps())
	}
	seen := map[capabilities.ID]bool{v.Principal: true}
	for _, h := range f.Waiting() {
		p := h
		if isRemote(h, f.From.Node) {
			p = capabilities.ID{Node: h.Node}
		}
		if h != v.By && !seen[p] {
			seen[p] = true
			n++
		}
	}
	return n
}
