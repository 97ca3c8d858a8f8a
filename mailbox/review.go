package mailbox

import (
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/rule"
)

// A review is the first of two looks at a call. The approval is one form of the asker, put to its host as any. Until the review has ended
// the host has no copy, and the reviewer has one, which takes fewer answers:
//
//	FormRequested ReviewAsked               the reviewer gets a copy
//	ReviewEnded(allowed) FormAnswered       it was within its bounds: the host gets a copy that has ended
//	ReviewEnded(handed on, late, …)         the host gets an open copy, and the reviewer's is superseded
//
// A reviewer is never one of several that agree: what it says ends its review, and is no vote.

// Review is the policy by which calls that no rule decides go to a reviewer before the agent's host.
const Review = "review"

// Bounds of reviews, in milliseconds.
const (
	leastReview   = events.Delay(1000)
	defaultReview = events.Delay(60_000)
	longestReview = events.Delay(3_600_000)
)

// Risk is what may go wrong if a call is made.
type Risk struct {
	Level  RiskLevel
	Secret bool // its input seems to have a secret in it
}

// RiskLevel is how much may go wrong.
type RiskLevel uint8

// The levels of risk.
const (
	NoRisk RiskLevel = iota // none that is known
	SomeRisk
	HighRisk
)

// risk returns what may go wrong with the call: all, if nobody can say.
func (c *RequestApproval) risk() Risk {
	if c.Risk == nil {
		return Risk{Level: HighRisk, Secret: true}
	}
	return c.Risk(&c.Permission)
}

// Reviewing is the review of an approval, in the mailboxes that know of it: of its asker, its reviewer and its host.
type Reviewing struct {
	Asked *events.ReviewAsked // nil where it is not known, or there is no review
	Ended *events.ReviewEnded // nil while it lasts, or where that is not known
}

// IsOpen reports whether the review is under way.
func (r *Reviewing) IsOpen() bool { return r.Asked != nil && r.Ended == nil }

// By returns the reviewer; zero if there is no review.
func (r *Reviewing) By() (id capabilities.ID) {
	switch {
	case r.Ended != nil:
		return r.Ended.Reviewer
	case r.Asked != nil:
		return r.Asked.Reviewer
	}
	return id
}

// hasDecided reports whether a review that has ended has decided the call.
func hasDecided(e *events.ReviewEnded) bool {
	return e != nil && (e.How == events.ReviewAllowed || e.How == events.ReviewDenied)
}

// Review returns the review of an approval. It must not be changed.
func (f *Form) Review() *Reviewing { return f.review.get() }

// isReviewed reports whether an agent reviews the approval at this moment.
func (f *Form) isReviewed(by capabilities.ID) bool {
	r := f.Review()
	return r.IsOpen() && r.Asked.Reviewer == by
}

// isDecidedByReview reports whether the answer of the approval is its reviewer's.
func (f *Form) isDecidedByReview() bool {
	return f.Answered != nil && !f.Answered.By.IsZero() && f.Answered.By == f.Review().By()
}

// Reviewer returns the terms of the agent's policy of review; nil if it has another.
func (l *Rules) Reviewer() *events.ReviewerSet { return l.reviewer }

// reviewerSet returns the event that sets the policy of review.
func (c SetPolicy) reviewerSet(s *State) (*events.ReviewerSet, error) {
	t := c.Review
	switch {
	case t == nil || c.Reviewer.IsZero():
		return nil, noReviewer()
	case c.Reviewer == s.ID:
		return nil, parley.Refuse(parley.InvalidArgument, "an agent does not review its own calls")
	case c.Reviewer == s.Profile.Host:
		return nil, parley.Refuse(parley.InvalidArgument, "the agent's host decides after the review, and does not review")
	case s.isRemote(c.Reviewer):
		return nil, parley.Refuse(parley.InvalidArgument, "a reviewer is an agent of the same node")
	case t.Sample > 100:
		return nil, parley.Refuse(parley.InvalidArgument, "a sample is of 0 to 100 of a hundred calls, and not of %d", t.Sample)
	case t.Wait != 0 && (t.Wait < leastReview || t.Wait > longestReview):
		return nil, parley.Refuse(parley.InvalidArgument, "a call waits from a second to an hour for its reviewer, and not %s", t.Wait)
	case len(t.Rules) > maxMandateRules:
		return nil, parley.Refuse(parley.TooLarge, "a reviewer has %d rules at most", maxMandateRules)
	}
	e := &events.ReviewerSet{Reviewer: c.Reviewer, Sample: t.Sample, Cautious: t.Cautious, Wait: t.Wait}
	if e.Wait == 0 {
		e.Wait = defaultReview
	}
	for i := range t.Rules {
		some, err := mandateRules(&parley.Permission{}, &t.Rules[i])
		if err != nil {
			return nil, err
		}
		e.Rules = append(e.Rules, some...)
	}
	return e, nil
}

// noReviewer returns the error for the policy of review without a reviewer.
func noReviewer() error {
	return parley.Refuse(parley.InvalidArgument, "who reviews? this policy names a reviewer").WithHint("parley agent policy AGENT review --by REVIEWER")
}

// sameReviewer reports whether two settings are alike.
func sameReviewer(a, b *events.ReviewerSet) bool {
	return a != nil && b != nil && a.Reviewer == b.Reviewer && a.Sample == b.Sample && a.Cautious == b.Cautious && a.Wait == b.Wait &&
		slices.EqualFunc(a.Rules, b.Rules, func(a, b events.MandateRule) bool { return a.Tool == b.Tool && rule.Equal(&a.Covers, &b.Covers) })
}

// mayAllow reports whether a reviewer may allow a call.
func mayAllow(r *events.ReviewerSet, c *RequestApproval, risk RiskLevel, call *rule.Reading) bool {
	if risk >= HighRisk || r.Cautious && risk > NoRisk || c.several() || c.Passkey {
		return false
	}
	if len(r.Rules) == 0 {
		return true
	}
	var matched []rule.Standing
	for i := range r.Rules {
		if one := &r.Rules[i]; one.Tool == "" || one.Tool == c.Tool {
			matched = append(matched, rule.Standing{Covers: &one.Covers, Allow: true})
		}
	}
	return call.Decide(matched).Allow
}

// reviewAsked returns the event that puts an approval to the agent's reviewer first; none if nobody reviews it. A call that can only be
// denied, or has a secret in it, goes to the host at once.
func (c *RequestApproval) reviewAsked(s *State, asked *events.FormRequested, call *rule.Reading, now capabilities.Time) []events.Event {
	r := s.Rules.reviewer
	if r == nil || c.DenyOnly || c.Each || asked.To != s.Profile.Host {
		return nil
	}
	if route := asked.Route; route != nil && slices.ContainsFunc(route.Escalate, func(e events.Escalation) bool { return e.To == r.Reviewer }) {
		return nil // it is one of those who vote
	}
	risk := c.risk()
	if risk.Secret {
		return nil
	}
	return []events.Event{&events.ReviewAsked{
		Form: asked.ID, Reviewer: r.Reviewer, MayAllow: mayAllow(r, c, risk.Level, call), Sample: r.Sample, Until: r.Wait.After(now),
	}}
}

// reviewed returns the events of what a reviewer says. What it may not decide is its opinion.
func (c SettleForm) reviewed(s *State, f *Form, check checker, now capabilities.Time, ids IDs) ([]events.Event, error) {
	asked := f.Review().Asked
	e := &events.ReviewEnded{Form: f.ID, Reviewer: c.By, How: events.ReviewHandedOn, Note: c.Note, Date: now}
	if now >= asked.Until { // EndReviews has not run yet
		e.How, e.Note = events.ReviewLate, ""
		return []events.Event{e}, nil
	}
	if c.Reason != "" {
		return []events.Event{e}, c.checkDecline()
	}
	settled, err := c.answer(s, f, check, now, ids)
	if err != nil {
		return nil, err
	}
	answered := settled[0].(*events.FormAnswered)
	decision, reason := ReadDecision(answered.Values)
	if err := checkText("a reason", reason, maxReason); err != nil {
		return nil, err
	}
	e.Note = reason
	switch {
	case decision == Deny && reason == "":
		return nil, wrongField(reasonField, "a reviewer denies with a reason")
	case decision == Deny:
		e.How = events.ReviewDenied
	case decision != Once:
		return nil, parley.Refuse(parley.NotPermitted, "a reviewer decides on this call alone").WithHint("decide %s or %s, or decline to leave it to the host", Once, Deny)
	case !asked.MayAllow:
		e.How = events.ReviewBeyond
	case c.Draw%100 < asked.Sample:
		e.How = events.ReviewSampled
	default:
		e.How = events.ReviewAllowed
	}
	if !hasDecided(e) {
		return []events.Event{e}, nil
	}
	values := map[string]capabilities.Value{decisionField: capabilities.String(decision)}
	if reason != "" {
		values[reasonField] = capabilities.String(reason)
	}
	answered.Values = capabilities.Record(values) // nothing else is a reviewer's to say
	return []events.Event{e, answered}, nil
}

// endReviews returns the events that end all reviews of the agent's approvals.
func endReviews(s *State, how events.ReviewEnd, now capabilities.Time) (evs []events.Event) {
	for n := range s.Mail.asks.approvals.From(0) {
		if f := s.Mail.live[n].Form; f.Review().IsOpen() {
			evs = append(evs, &events.ReviewEnded{Form: f.ID, Reviewer: f.Review().Asked.Reviewer, How: how, Date: now})
		}
	}
	return evs
}

// EndReviews ends the reviews whose time has passed. The hosts decide then.
type EndReviews struct{}

func (EndReviews) decide(s *State, now capabilities.Time, _ IDs) (evs []events.Event, err error) {
	for _, number := range s.Mail.passed(reviews, now) {
		if f := s.Mail.live[number].Form; !f.isExpired(now) {
			evs = append(evs, &events.ReviewEnded{Form: f.ID, Reviewer: f.Review().Asked.Reviewer, How: events.ReviewLate, Date: now})
		}
	}
	return evs, nil
}

// reviewCopy returns the copy of an approval for its reviewer: it takes two decisions and a reason, and offers no rules.
func reviewCopy(f *Form) Command {
	c, told := *f.asAsked(), *f.Review().Asked
	strip(&c)
	call := *c.Call
	call.Offers = nil
	c.To, c.Call, c.Fields, c.Route, c.NoForward, told.Sample = told.Reviewer, &call, approvalFields(withoutRule), nil, true, 0
	return AcceptDelivery{Form: &c, with: []events.Event{&told}}
}

// afterReview returns what a copy has beside the form, for another than the reviewer: how the review has ended, and its answer if that
// decided the call.
func (f *Form) afterReview() (evs []events.Event) {
	ended := f.Review().Ended
	if ended == nil {
		return nil
	}
	e := *ended
	evs = append(evs, &e)
	if f.isDecidedByReview() {
		a := *f.Answered
		a.Withheld = true
		evs = append(evs, &a)
	}
	return evs
}

// Superseded returns the end of a reviewer's copy where the host decides; nil where that has not come about, and for any other agent.
func (f *Form) Superseded(reviewer capabilities.ID) *events.FormCancelled {
	e := f.Review().Ended
	if e == nil || hasDecided(e) || e.Reviewer != reviewer {
		return nil
	}
	return &events.FormCancelled{Form: f.ID, Reason: events.Superseded, By: f.From, Note: reviewWords[e.How], Date: e.Date}
}

// reviewWords say to a reviewer why the agent's host decides.
var reviewWords = map[events.ReviewEnd]string{
	events.ReviewHandedOn: "handed on to the agent's host",
	events.ReviewBeyond:   "handed on to the agent's host with your opinion: you may not allow this call",
	events.ReviewSampled:  "handed on to the agent's host with your opinion, as some calls are",
	events.ReviewLate:     "the time for the review has passed: the agent's host decides",
	events.ReviewRevoked:  "the review was ended: the agent's host decides",
}

// putToReview has the reviewer in place of those that the form was put to, at its home.
func (f *Form) putToReview(e *events.ReviewAsked, self capabilities.ID) {
	if f.review.edit().Asked = e; f.From == self {
		f.Holders = []capabilities.ID{e.Reviewer}
	}
}

// endReview has the host in place of the reviewer, at the form's home, if it is still to decide.
func (f *Form) endReview(e *events.ReviewEnded, self capabilities.ID) {
	f.review.edit().Ended = e
	if f.From != self || hasDecided(e) {
		return
	}
	f.Holders = slices.DeleteFunc(slices.Clone(f.Holders), func(id capabilities.ID) bool { return id == e.Reviewer })
	f.addHolder(f.To)
}

// setReviewer sets the policy of review.
func (l *Rules) setReviewer(e *events.ReviewerSet) { l.policy, l.reviewer = Review, e }

// reviewAsked folds in that a form is reviewed. At its home, its copy goes to the reviewer, and not to the host.
func reviewAsked(f fold, e *events.ReviewAsked) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	if m.Form.Kind != events.Approval || m.Form.Review().Asked != nil {
		return ErrNonsense
	}
	m.Form.putToReview(e, f.ID)
	f.Mail.touch(m, f.Version)
	f.Mail.Index.entries.Note(m.Number, f.Version)
	if m.Form.From != f.ID {
		return nil
	}
	f.Outbox.dropCopy(e.Form, m.Form.To)
	f.Grants.addReply(e.Reviewer, e.Form, f.at)
	f.Outbox.enqueue(events.OutboxCopy, e.Form, e.Reviewer)
	f.Mail.timers.addReview(m.Number, m.Form)
	return nil
}

// reviewEnded folds the end of a review in. At the form's home, the host gets a copy; in that it says how it came.
func reviewEnded(f fold, e *events.ReviewEnded) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	isHome := m.Form.From == f.ID
	if m.Form.Review().Ended != nil || isHome && !m.Form.isReviewed(e.Reviewer) {
		return ErrNonsense
	}
	m.Form.endReview(e, f.ID)
	f.Mail.touch(m, f.Version)
	f.Mail.Index.entries.Note(m.Number, f.Version)
	if !isHome {
		return nil
	}
	f.shownChanged()
	f.enqueueCopy(m.Form, m.Form.To)
	if !hasDecided(e) && e.How != events.ReviewUnreachable { // its copy is before this in the outbox, if it has none yet
		f.Outbox.enqueue(events.OutboxOutcome, e.Form, e.Reviewer)
	}
	return nil
}
