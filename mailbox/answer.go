package mailbox

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/passkey"
)

// QueueAnswer records an answer, a decline or the withdrawal of a vote in the agent's own log. It stays there until the
// form's home, on another node, has decided on it. It is used while the home is unreachable. It is also used for an
// answer with references, whose grants must first be recorded at their targets. Secret values are sealed. It has no
// effect if the form has ended by this very settlement, or if the vote is withdrawn already.
type QueueAnswer struct{ Answer SettleForm }

func (c QueueAnswer) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Answer.Form)
	if err != nil {
		return nil, err
	}
	if m.Form.Took(c.Answer) {
		return nil, nil
	}
	if err := mayDraft(s, m); err != nil {
		return nil, err
	}
	e := &events.AnswerQueued{
		Form: c.Answer.Form, Reason: c.Answer.Reason, Note: c.Answer.Note, Grants: c.Answer.Grants, Date: now, Answer: c.Answer.Answer, Revision: c.Answer.Revision,
	}
	if e.Reason == "" {
		e.Values = c.Answer.Masked()
	}
	evs := append(grantEvents(e.Grants), e)
	if c.Answer.Signed != nil {
		evs = slices.Insert(evs, 0, events.Event(c.Answer.Signed))
	}
	return evs, nil
}

// Masked returns the values of an answer as a record, with sealed values in place of secret ones.
func (c SettleForm) Masked() capabilities.Value {
	values := maps.Clone(c.Values)
	if values == nil {
		values = map[string]capabilities.Value{}
	}
	maps.Copy(values, c.Sealed)
	return capabilities.Record(values)
}

// mayDraft refuses a form that has ended, or has an answer of this agent queued.
func mayDraft(s *State, m *Message) error {
	if !m.Form.IsOpen() {
		return endedError(s, m)
	}
	if d := m.Form.Queued().Answer; d != nil {
		return Pending(m, d.Date)
	}
	return nil
}

// Pending returns the error for a form to which this agent's answer has been on its way since a time.
func Pending(m *Message, since capabilities.Time) error {
	e := parley.Refuse(parley.AnswerPending, "what this agent said to form %d at %s is on its way", m.Number, since).
		WithHint("the form is open until that arrives; parley await %d shows how it ends", m.Number)
	e.Fields = map[string]string{"form": m.ID().String()}
	return e
}

// SettleForm answers or declines a form at its home, for an agent of this node that may answer it. Reason is "" for an
// answer. DraftAnswer has checked the values, and the command owns them. Sealed has the sealed value of each secret
// field that is answered.
type SettleForm struct {
	Form   capabilities.ID
	By     capabilities.ID
	Reason events.Reason
	Note   string
	Values map[string]capabilities.Value
	Sealed map[string]capabilities.Value
	Grants []capabilities.Grant

	Revision uint64 // of the question that is answered; 0 for the question as it was asked

	Principal capabilities.ID // the host of By; it is not sent to another node
	Person    capabilities.ID // who answers as By, if that is another agent of this node; it is not sent to another node
	Second    bool            // Person wants this to count as a vote of By, beside one as another agent

	Mandate *parley.MandateTerms // that the answer gives; nil for none. It is not sent to another node

	Signed *events.DecisionSigned // by a passkey; nil for none. It is sent to another node if the form asks for it
	Use    UsePasskey             // of that passkey, by the answerer

	Statement passkey.Statement // of a Reply that is Unsigned: what a passkey would sign
	Wants     bool              // and whether it has to

	Draw uint32 // any number: whether a call that a reviewer allows is drawn for the agent's host follows from it

	// Answer is the settlement's own ID, if the form's home is on another node. The home may receive it several times,
	// and other settlements of the same agent too.
	Answer capabilities.ID

	rules []*events.RuleAdded // that settlements before it in the same commit make
}

// Delivery returns the command that brings a settlement to its home on another node, and the kind of its delivery. A
// settlement with the Reason Withdrawn is the withdrawal of the vote with its Answer.
func (c SettleForm) Delivery() (events.OutboxKind, Command) {
	if c.Reason == events.Withdrawn {
		return events.OutboxWithdrawal, WithdrawVote{Form: c.Form, By: c.By, Answer: c.Answer}
	}
	return events.OutboxAnswer, c
}

// SettleEach decides on several settlements at the forms' home, each as Decide does. It returns the events of those
// that are accepted, for one commit. It also returns the error of each, nil for an accepted one. A form is settled
// once.
func (s *State) SettleEach(several []SettleForm, now capabilities.Time, ids IDs) (evs []events.Event, refused []error) {
	refused = make([]error, len(several))
	seen := make(map[capabilities.ID]bool, len(several))
	var rules []*events.RuleAdded
	for i, c := range several {
		if seen[c.Form] {
			refused[i] = parley.Refuse(parley.InvalidArgument, "the form %s is decided twice in one call", c.Form)
			continue
		}
		c.rules = rules
		made, err := s.Decide(c, now, ids)
		if refused[i] = err; err != nil {
			continue
		}
		seen[c.Form] = true
		for _, e := range made {
			if added, ok := e.(*events.RuleAdded); ok {
				rules = append(rules, added)
			}
		}
		evs = append(evs, made...)
	}
	return evs, refused
}

// RemoteAnswer is a SettleForm from another node. Its values are checked here.
type RemoteAnswer struct {
	SettleForm

	Schema *form.Schema // of the form's fields, if they were compiled before
}

// Reply is an answer as an agent gives it.
type Reply struct {
	Form capabilities.FormRef
	parley.Answer

	Settlement capabilities.ID // its own ID, if it was given one; equal settlements may have the same
	Person     capabilities.ID // as in SettleForm
	Second     bool

	Schema *form.Schema // of the form's fields, if they were compiled before

	Risk     func(*parley.Permission) Risk // as in RequestApproval
	Unsigned bool                          // it is drafted for what a passkey would sign of it, and not sent
}

// DraftAnswer returns the settlement for a reply, and the form's home to send it to. It checks the reply as the home
// would.
func (s *State) DraftAnswer(r Reply, now capabilities.Time, ids IDs) (SettleForm, capabilities.ID, error) {
	m, err := s.answerable(r.Form)
	if err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	f := m.Form
	if err := checkClaimed(s, m, now-s.behind); err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	if r.Digest != "" && r.Digest != f.Digest() {
		return SettleForm{}, capabilities.ID{}, parley.Refuse(parley.InvalidArgument, "message %d asks about another call than the one that was shown", m.Number).
			WithHint("parley permit ls shows what waits")
	}
	if err := m.checkShown(r.Revision); err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	if err := cmp.Or(f.refuseEdit(r), f.refuseWords(r)); err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	schema, err := f.answerSchema(r.Schema)
	if err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	held := s.holder(capabilities.UseGive, now)
	claimed, err := held.claimEach(r.Values)
	if err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	var absent *PagedOut
	values, err := schema.ReadAndCheck(r.Texts, claimed, func(path string) (capabilities.Value, error) {
		v, err := held.at(path)
		if a, ok := errors.AsType[*PagedOut](err); ok {
			absent = a
		}
		return v, err
	})
	if absent != nil {
		return SettleForm{}, capabilities.ID{}, absent
	}
	if err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	if err := checkAnswerFiles(s, f.Fields, values); err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	for name := range r.Narrow {
		if _, answered := values[name]; !answered {
			return SettleForm{}, capabilities.ID{}, parley.Refuse(parley.InvalidArgument, "nothing is given in %s that could be narrowed", parley.Quoted(name, 80))
		}
	}
	if err := refuseRisky(m, &r, values); err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	var signed SettleForm
	if err := sign(s, &signed, f, &r, values); err != nil || r.Unsigned {
		return signed, f.From, err
	}
	d := delegation{s: s, to: f.From, message: f.ID, now: now, ids: ids}
	for _, field := range f.Fields { // equal answers make equal grants, in this order
		v, ok := values[field.Name]
		if !ok {
			continue
		}
		if f, narrow := r.Narrow[field.Name]; narrow {
			if v, err = narrowedAll(s, v, f); err != nil {
				return SettleForm{}, capabilities.ID{}, err
			}
		}
		if values[field.Name], err = d.give(field.Name, v); err != nil {
			return SettleForm{}, capabilities.ID{}, err
		}
	}
	if r.Mandate != nil && s.isRemote(f.From) {
		return SettleForm{}, capabilities.ID{}, parley.Refuse(parley.NotPermitted, "only the agent's host gives it a mandate, and that is on the agent's node")
	}
	c := SettleForm{Form: f.ID, By: s.ID, Values: values, Grants: d.grants, Answer: r.Settlement, Revision: f.answering(), Principal: s.Profile.Host, Person: r.Person, Second: r.Second, Mandate: r.Mandate, Signed: signed.Signed, Use: signed.Use}
	if c.Answer.IsZero() {
		c.Answer = answerID(s, f, ids)
	}
	return c, f.From, nil
}

// refuseRisky refuses an answer that makes a rule of a call of high risk, which allows it from then on unseen. A rule that denies is taken.
func refuseRisky(m *Message, r *Reply, values map[string]capabilities.Value) error {
	if m.Form.Kind != events.Approval || r.Risk == nil {
		return nil
	}
	if decision, _ := ReadDecision(capabilities.Record(values)); decision != Always || r.Risk(m.Form.Permission()).Level != HighRisk {
		return nil
	}
	return parley.Refuse(parley.InvalidAnswer, "a call of high risk can only be allowed once: no rule is made of it").WithHint("allow %d without --always", m.Number)
}

// answerID returns the ID of a new settlement; zero if the form's home is on this node.
func answerID(s *State, f *Form, ids IDs) capabilities.ID {
	if !s.isRemote(f.From) {
		return capabilities.ID{}
	}
	return ids()
}

// DraftDecline returns the settlement that declines a form, and the form's home. The revision, if set, is of the question
// that the answerer was shown.
func (s *State) DraftDecline(ref capabilities.FormRef, revision uint64, note string, ids IDs) (SettleForm, capabilities.ID, error) {
	m, err := s.answerable(ref)
	if err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	if err := m.checkShown(revision); err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	if err := checkText("a reason", note, maxReason); err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	c := SettleForm{Form: m.Form.ID, By: s.ID, Reason: events.Declined, Note: note, Answer: answerID(s, m.Form, ids), Revision: m.Form.answering(), Principal: s.Profile.Host}
	return c, m.Form.From, nil
}

// answerable returns an open form that this agent was asked.
func (s *State) answerable(ref capabilities.FormRef) (*Message, error) {
	m, err := s.Mail.FindForm(ref)
	if err != nil {
		return nil, err
	}
	if !m.Form.IsOpen() {
		return nil, m.Form.late(endedError(s, m), s.ID)
	}
	if err := mayDraft(s, m); err != nil {
		return nil, err
	}
	if !s.Mail.Received(m) {
		asked, err := s.Names.describe(m.Form.To)
		if err != nil {
			return nil, err
		}
		return nil, parley.Refuse(parley.NotPermitted, "only %s may answer form %d", asked, m.Number).
			WithHint("parley cancel %d takes it back", m.Number)
	}
	return m, s.Profile.checkActive()
}

func (c SettleForm) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	return c.settle(s, c.checked, now, ids)
}

func (c RemoteAnswer) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	evs, err := c.settle(s, c.check, now, ids)
	if len(evs) > 0 && c.Answer.IsZero() { // the answerer's node could not tell which of its answers it was
		return nil, parley.Refuse(parley.InvalidArgument, "the answer has no ID")
	}
	return evs, err
}

// checker returns the values of an answer as they are stored.
type checker func(f *Form) (map[string]capabilities.Value, error)

// settle returns the events of the settlement.
func (c SettleForm) settle(s *State, check checker, now capabilities.Time, ids IDs) ([]events.Event, error) {
	m, err := s.Mail.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	if err := checkHolder(f, s.ID, c.By); err != nil {
		return nil, err
	}
	if f.Took(c) {
		return nil, nil // its acknowledgement was lost
	}
	if err := f.checkOpen(c.By, now); err != nil {
		return nil, err
	}
	if f.isReviewed(c.By) {
		return c.reviewed(s, f, check, now, ids)
	}
	if isCut(f, c.By) {
		return nil, parley.Refuse(parley.NotPermitted, "the form was taken back from %s", c.By)
	}
	if err := f.checkClaim(c.By, now); err != nil {
		return nil, err
	}
	if err := c.checkVoter(s, f); err != nil {
		return nil, err
	}
	if err := f.checkRevision(c.Revision, "the form"); err != nil {
		return nil, err
	}
	if c.Reason != "" {
		if err := c.checkDecline(); err != nil {
			return nil, err
		}
		return c.counted(s, f, []events.Event{&events.FormCancelled{Form: c.Form, Reason: c.Reason, By: c.By, Note: c.Note, Date: now, Answer: c.Answer}}, now), nil
	}
	settled, err := c.answer(s, f, check, now, ids)
	if err != nil {
		return nil, err
	}
	if err := c.checkSigned(f); err != nil {
		return nil, err
	}
	counted := c.counted(s, f, settled, now)
	if c.Signed != nil {
		counted = slices.Insert(counted, 0, events.Event(c.Signed))
	}
	return counted, nil
}

// checkDecline refuses any other end than a decline. The home alone decides on those.
func (c SettleForm) checkDecline() error {
	if c.Reason != events.Declined {
		return parley.Refuse(parley.NotPermitted, "one who was asked may answer or decline, and this is %s", parley.Quoted(string(c.Reason), 40))
	}
	return checkText("a reason", c.Note, maxReason)
}

// answer returns the events of an answer.
func (c SettleForm) answer(s *State, f *Form, check checker, now capabilities.Time, ids IDs) ([]events.Event, error) {
	values, err := check(f)
	if err != nil {
		return nil, err
	}
	if s.isRemote(c.By) && !isGivenBy(capabilities.Record(values), c.By.Node) {
		return nil, parley.Refuse(parley.NotPermitted, "the answer brings what its giver's node has not given")
	}
	if err := f.checkGrants(values, c.By, c.Grants); err != nil {
		return nil, err
	}
	for _, field := range f.Fields {
		if _, given := values[field.Name]; !given || form.ControlOf(&field) != form.Secret {
			continue
		}
		sealed, ok := c.Sealed[field.Name]
		if !ok || !sealed.IsSealed() {
			return nil, parley.Refuse(parley.Internal, "secret field %s is not sealed", field.Name)
		}
		values[field.Name] = sealed
	}
	if err := f.checkApproval(values, now); err != nil {
		return nil, err
	}
	if err := form.CheckSize(values); err != nil { // sealing makes a value longer
		return nil, err
	}
	rule, err := c.standingRule(s, f, values, now, ids)
	if err != nil {
		return nil, err
	}
	mandate, err := c.given(s, f, values, now, ids)
	if err != nil {
		return nil, err
	}
	e := &events.FormAnswered{Form: c.Form, By: c.By, Values: capabilities.Record(values), Date: now, Grants: c.Grants, Answer: c.Answer}
	evs := []events.Event{e}
	if c.By == s.ID {
		evs = append(evs, grantEvents(c.Grants)...)
	}
	if f.Result != "" {
		evs = append(evs, &events.NameBound{Name: f.Result, Value: f.value(e.Values)})
	}
	for _, made := range []events.Event{rule, mandate} {
		if made != nil {
			evs = append(evs, made)
		}
	}
	return evs, nil
}

// checked returns the values as they are: DraftAnswer has checked them.
func (c SettleForm) checked(*Form) (map[string]capabilities.Value, error) { return c.Values, nil }

// check checks the values by the form's schema.
func (c RemoteAnswer) check(f *Form) (map[string]capabilities.Value, error) {
	schema, err := f.answerSchema(c.Schema)
	if err != nil {
		return nil, err
	}
	values, err := schema.Check(c.Values)
	if err == nil && c.Signed != nil {
		err = c.checkSignature(f, values)
	}
	return values, err
}

// checkGrants requires one grant of the answer for each capability in it, from the answerer to the asker. It refuses
// any other grant.
func (q *Question) checkGrants(values map[string]capabilities.Value, by capabilities.ID, grants []capabilities.Grant) error {
	var used []capabilities.ID
	for _, field := range q.Fields {
		if form.ControlOf(&field) != form.Reference {
			continue // no other field takes references
		}
		given := visitRefs(values[field.Name], func(ref capabilities.Ref) bool {
			i := slices.IndexFunc(grants, func(g capabilities.Grant) bool { return g.ID == ref.Grant })
			if !slices.Contains(used, ref.Grant) {
				used = append(used, ref.Grant)
			}
			return i >= 0 && grants[i].Ref() == ref.Bare() && q.takes(grants[i], by)
		})
		if !given {
			return parley.Refuse(parley.NotPermitted, "the capability in %s is not given by a grant of the answer", field.Name)
		}
	}
	if n := len(used); n != len(grants) {
		return parley.Refuse(parley.NotPermitted, "the answer has %d grants for %d capabilities", len(grants), n)
	}
	return nil
}

// takes reports whether an answer to the form can make a grant.
func (q *Question) takes(g capabilities.Grant, by capabilities.ID) bool {
	return !g.ID.IsZero() && g.By == by && g.To == q.From && g.Message == q.ID && g.Revoked == 0 &&
		len(g.Name) <= maxGrantName && utf8.ValidString(g.Name)
}

// Bounds of drafts.
const (
	maxDraft  = 64 << 10 // bytes of one
	maxDrafts = 128      // of a mailbox
)

// SaveDraft keeps the agent's unfinished answer to a form, in place of the one before, until the form ends. No values
// remove it. Values are those of DraftValues, with sealed ones for secret fields.
type SaveDraft struct {
	Form   capabilities.FormRef
	Values map[string]capabilities.Value
}

func (c SaveDraft) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.answerable(c.Form)
	if err != nil {
		return nil, err
	}
	e := &events.DraftSaved{Form: m.Form.ID, Revision: m.Form.answering(), Date: now}
	if len(c.Values) > 0 {
		e.Values = capabilities.Record(c.Values)
	}
	before := m.Form.Draft
	switch n := e.Values.Extent().Bytes; {
	case n > maxDraft:
		return nil, parley.Refuse(parley.TooLarge, "a draft of %d bytes is over the limit of %d", n, maxDraft)
	case before == nil && len(c.Values) == 0, before != nil && before.Values.Equal(e.Values):
		return nil, nil
	case before == nil && s.Mail.drafts >= maxDrafts:
		return nil, parley.Refuse(parley.TooLarge, "%d drafts are kept at most", maxDrafts)
	}
	return []events.Event{e}, nil
}

// DraftValues returns the texts of each field as lists, by name. It refuses with INVALID_ARGUMENT a text that no draft
// can have. So it does for a text of a field that the form lacks.
func (q *Question) DraftValues(texts []events.FieldText) (map[string]capabilities.Value, error) {
	lists := map[string][]string{}
	for _, t := range texts {
		if !slices.ContainsFunc(q.Fields, func(f events.Field) bool { return f.Name == t.Name }) {
			return nil, parley.Refuse(parley.InvalidArgument, "the form has no field %s", parley.Quoted(t.Name, 40))
		}
		if err := checkText("a draft", t.Text, maxDraft); err != nil {
			return nil, err
		}
		lists[t.Name] = append(lists[t.Name], t.Text)
	}
	values := map[string]capabilities.Value{}
	for name, list := range lists {
		values[name] = capabilities.Strings(list...)
	}
	return values, nil
}

// DraftTexts returns the texts of a draft in the order of the fields. It leaves out sealed ones.
func (q *Question) DraftTexts(values capabilities.Value) (texts []events.FieldText) {
	byName, _ := values.AsRecord()
	for _, field := range q.Fields {
		list, _ := byName[field.Name].AsList()
		for _, v := range list {
			if text, ok := v.AsString(); ok {
				texts = append(texts, events.FieldText{Name: field.Name, Text: text})
			}
		}
	}
	return texts
}

func (f fold) draftSaved(e *events.DraftSaved) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	if m.Form.Draft != nil {
		f.Mail.drafts--
	}
	if m.Form.Draft = e; e.Values.IsNull() {
		m.Form.Draft = nil
	} else {
		f.Mail.drafts++
	}
	f.Mail.marked = true
	return nil
}
