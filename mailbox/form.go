package mailbox

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/origin"
	"parley/mailbox/vote"
)

// Form is a form in a mailbox: at its home, or a copy. Each part has the methods that need no other part.
type Form struct {
	Question
	Recipients
	Outcome

	Draft *events.DraftSaved // the agent's own unfinished answer; nil if there is none

	votes     rare[vote.Tally]
	queued    rare[Queued]
	questions rare[[]uint64]
	review    rare[Reviewing]
}

// Questions returns the numbers of the messages with which those who may answer the form have asked back, and to which its asker
// has not replied yet, oldest first. Only the form's home has them.
func (f *Form) Questions() []uint64 { return *f.questions.get() }

// maxQuestions bounds Questions: of more, the newest are kept.
const maxQuestions = 16

// newForm returns an open form.
func newForm(e *events.FormRequested) *Form {
	return &Form{Question: Question{FormRequested: e}}
}

// Votes returns the votes on a form that needs several, but for the one that settled it. They must not be changed.
func (f *Form) Votes() *vote.Tally { return f.votes.get() }

// Queued returns what is on its way to the form's home. It must not be changed.
func (f *Form) Queued() *Queued { return f.queued.get() }

// Recipients are the agents that a form was put to, and how they received it.
type Recipients struct {
	Holders []capabilities.ID // at the form's home: the agents that may answer, in the order in which they received it

	passed rare[passed]
}

// passed is how a form went on from its first recipient.
type passed struct {
	Forwarded []events.FormForwarded
	Routed    []events.FormRouted
	Reminded  *events.FormReminded
	Claims    Claims
	Signed    *events.DecisionSigned
}

// Forwarded returns the forwards of the form, in their order.
func (r *Recipients) Forwarded() []events.FormForwarded { return r.passed.get().Forwarded }

// Routed returns the steps of the form's route so far. Only its home has them.
func (r *Recipients) Routed() []events.FormRouted { return r.passed.get().Routed }

// Reminded returns the last reminder; nil if there is none.
func (r *Recipients) Reminded() *events.FormReminded { return r.passed.get().Reminded }

// Outcome is the end of a form.
type Outcome struct {
	Answered *events.FormAnswered  // nil unless the form was answered
	Ended    *events.FormCancelled // nil unless it ended otherwise
	Settled  uint64                // the mailbox's version after its end; 0 while it is open
}

// IsOpen reports whether the form has not ended.
func (o *Outcome) IsOpen() bool { return o.Answered == nil && o.Ended == nil }

// mayAnswer reports whether an agent may settle the form. It is known at the form's home alone.
func (f *Form) mayAnswer(by capabilities.ID) bool {
	return slices.Contains(f.Holders, by) && !isCut(f, by)
}

// checkHolder refuses an agent that did not receive the form, at its home.
func checkHolder(f *Form, home, by capabilities.ID) error {
	if f.From == home && f.Review().Ended != nil && f.Review().By() == by && !slices.Contains(f.Holders, by) {
		return parley.Refuse(parley.AlreadyCancelled, "the review has ended, and the agent's host decides")
	}
	if f.From != home || !slices.Contains(f.Holders, by) {
		return parley.Refuse(parley.NotPermitted, "form %s was not put to %s", f.ID, by)
	}
	return nil
}

// addHolder adds an agent that may answer the form. One from which it was taken back may have it again.
func (r *Recipients) addHolder(id capabilities.ID) {
	if !slices.Contains(r.Holders, id) {
		r.Holders = append(r.Holders, id)
	}
}

// Schema compiles the form's fields. It fails only if the log is damaged: all fields compiled when the form was
// accepted. The state keeps no schema, because compiled patterns take many times the memory of their text.
func (q *Question) Schema() (*form.Schema, error) {
	c, err := form.CompileAccepted(q.Fields)
	if err != nil {
		return nil, fmt.Errorf("form %s: %w", q.ID, err)
	}
	return c, nil
}

// NeedsAnswer reports whether an open form waits for the answer of the mailbox's agent, which received it: neither the agent has
// voted nor another that its vote would only replace, as one of the same host, and it has no answer on its way.
func (f *Form) NeedsAnswer(s *State) bool {
	if !f.IsOpen() || f.Queued().Answer != nil {
		return false
	}
	votes := f.Votes().Standing
	if len(votes) == 0 {
		return true
	}
	own := f.principalOf(s)
	return !slices.ContainsFunc(votes, func(v events.VoteCast) bool { return v.By == s.ID || v.Principal == own })
}

// answerSchema returns the schema that an answer has to fit. It is made of compiled, or without that of the form's
// fields. A request is answered with any value that has a name.
func (q *Question) answerSchema(compiled *form.Schema) (*form.Schema, error) {
	if compiled == nil {
		var err error
		if compiled, err = q.Schema(); err != nil {
			return nil, err
		}
	}
	if q.Kind == events.Request {
		compiled = compiled.AnyValue()
	}
	return compiled, nil
}

// value returns the values of an answer as one value: the capability itself for a request, a record otherwise.
func (q *Question) value(values capabilities.Value) capabilities.Value {
	if q.Kind == events.Request {
		if r, ok := values.AsRecord(); ok {
			return r[requestField]
		}
	}
	return values
}

// EndedBy reports whether the form was ended by the settlement with an ID.
func (o *Outcome) EndedBy(answer capabilities.ID) bool {
	switch {
	case answer.IsZero():
		return false
	case o.Answered != nil:
		return o.Answered.Answer == answer
	}
	return o.Ended != nil && o.Ended.Answer == answer
}

// Took reports whether a settlement has had its effect: it ended the form, is a vote that was cast, or took one back.
func (f *Form) Took(c SettleForm) bool {
	if c.Reason == events.Withdrawn {
		return f.Votes().IsWithdrawn(c.By, c.Answer)
	}
	return f.EndedBy(c.Answer) || f.Votes().Knows(c.Answer)
}

// endedForOthers returns the error for a form that ended, as it is shown to other agents. It has none of this agent's
// numbers and names.
func (o *Outcome) endedForOthers() error {
	return o.endedError("the form", func(id capabilities.ID) (string, error) { return id.String(), nil })
}

// endedBy returns the agent that ended the form; zero if its time did.
func (o *Outcome) endedBy() capabilities.ID {
	switch {
	case o.Answered != nil:
		return o.Answered.By
	case o.Ended.Reason == events.Expired:
		return capabilities.ID{}
	}
	return o.Ended.By
}

func (o *Outcome) endedError(what string, called func(capabilities.ID) (string, error)) error {
	by, err := called(o.endedBy())
	if err != nil {
		return err
	}
	if a := o.Answered; a != nil {
		return parley.Refuse(parley.AlreadyAnswered, "%s was answered by %s at %s", what, by, a.Date)
	}
	e := o.Ended
	switch e.Reason {
	case events.Declined:
		return parley.Refuse(parley.AlreadyDeclined, "%s was declined by %s at %s", what, by, e.Date)
	case events.Expired:
		return parley.Refuse(parley.AlreadyExpired, "%s expired at %s", what, e.Date)
	}
	return parley.Refuse(parley.AlreadyCancelled, "%s was %s by %s at %s", what, e.Reason, by, e.Date)
}

// Existing is an earlier form, or the value of a name, that a repeated request refers to.
type Existing struct {
	Message *Message
	Value   capabilities.Value
}

// FindExisting returns the form of an earlier, equal request: by its key, or by the name that its answer has or awaits.
// It refuses with INVALID_ARGUMENT a key or name of another question. Equal questions may differ in their deadlines;
// the first deadline stays.
func (a RequestForm) FindExisting(s *State) (Existing, bool, error) {
	if m, err := s.Mail.underKey(&s.Mail.Keys.asked, a.Key); m != nil || err != nil {
		if err == nil {
			err = a.sameAs(s, m, "key", a.Key)
		}
		return Existing{Message: m}, m != nil, err
	}
	if a.Name == "" {
		return Existing{}, false, nil
	}
	if v, ok, err := s.Names.get(a.Name); ok || err != nil {
		return Existing{Value: v}, ok, err
	}
	if n, ok := s.Mail.asks.results[capabilities.Normal(a.Name)]; ok {
		m := s.Mail.live[n]
		return Existing{Message: m}, true, a.sameAs(s, m, "name", a.Name)
	}
	return Existing{}, false, nil
}

// sameAs refuses a request that differs from the form under its key or name. An amended form may be requested as it was
// asked, and as it is now.
func (a RequestForm) sameAs(s *State, m *Message, what, name string) error {
	to, err := m.To(), error(nil)
	if m.Behind == nil || capabilities.Normal(m.Behind.Path) != capabilities.Normal(a.To) {
		if to, err = s.Namespace().addressed(a.To); err != nil {
			return err
		}
	}
	same, err := a.sameRoute(s, m.Form.Route)
	if err != nil {
		return err
	}
	if !same {
		return keyConflict(m, what, name, []string{"the route"})
	}
	differs := a.differences(s, m.Form, m.Form.asAsked(), to)
	if len(differs) > 0 && m.Form.Amended() != nil {
		differs = a.differences(s, m.Form, m.Form.FormRequested, to)
	}
	return keyConflict(m, what, name, differs)
}

// differences returns the parts in which a request to an agent differs from a form. It compares with the form as it was
// asked, or is now.
func (a RequestForm) differences(s *State, f *Form, e *events.FormRequested, to capabilities.ID) (differs []string) {
	note := func(part string, same bool) {
		if !same {
			differs = append(differs, part)
		}
	}
	note("recipient", to == f.To)
	note("kind", a.Kind == f.Kind)
	title, description := "title", "description"
	if a.Kind == events.Approval && f.Kind == events.Approval {
		title, description = "tool", "input"
	}
	note(title, titleOf(a.Kind, a.Title) == e.Title)
	note(description, a.Description == e.Description)
	asked := Question{FormRequested: e}
	note("fields", asked.isAskedBy(a) || a.Kind == events.Approval && f.Kind == events.Approval) // the rules offered depend on the parts above
	if now, then := a.call, e.Call; now != nil && then != nil {
		note("folder", now.Folder == then.Folder)
		note("reason", now.Reason == then.Reason)
		note("part", now.Part == then.Part)
		note("session", now.Session == then.Session)
		note("use", (now.Use == nil) == (then.Use == nil)) // by the key of the use; the names in it may have changed since
	}
	note("editable", a.Kind != events.Approval || !f.isForHost(s) || vote.Needs(f.Route) > 1 || a.editable == IsEditable(f.Fields))
	note("decisions", a.Kind != events.Approval || len(a.Fields) == 0 || len(a.Fields[0].Options) == len(f.Fields[0].Options))
	note("noForward", a.NoForward == f.NoForward)
	note("name", a.Name == "" || capabilities.Normal(a.Name) == f.Result)
	return differs
}

// isForHost reports whether the agent asked its host.
func (f *Form) isForHost(s *State) bool { return f.To == s.Profile.Host }

// keyConflict refuses with INVALID_ARGUMENT a key or name that is used again for something else.
func keyConflict(m *Message, what, name string, differs []string) error {
	if len(differs) == 0 {
		return nil
	}
	return parley.Refuse(parley.InvalidArgument, "the %s %s stands for message %d, which differs in: %s", what, parley.Quoted(name, 80), m.Number, strings.Join(differs, ", ")).
		WithHint("give what is new a %s of its own", what)
}

// AskedIn returns the origin of a form; nil if it has none: see origin.Of.
func (q *Question) AskedIn() *events.Origin { return origin.Of(q.FormRequested) }

// maxOrigin bounds the texts of an origin together, in bytes.
const maxOrigin = 16 << 10

// checkOrigin refuses an origin without a dialect, and with TOO_LARGE one with too much text.
func checkOrigin(o *events.Origin) error {
	if o == nil {
		return nil
	}
	if o.Dialect == "" {
		return parley.Refuse(parley.InvalidForm, "the form's origin has no dialect")
	}
	return checkText("what is asked", origin.Text(o), maxOrigin)
}

// isAskedBy reports whether a request has the fields and the origin of the form.
func (q *Question) isAskedBy(a RequestForm) bool {
	return form.SameFields(a.fields(), q.Fields) && origin.Same(a.Origin, q.Origin)
}

// requestField is the one field of a request.
const requestField = "value"

// RequestForm sends a form. To is a path, ID or locator. A Request ignores Fields.
type RequestForm struct {
	parley.Form
	Kind events.FormKind

	Schema *form.Schema // of Fields, if they were compiled before

	call     *events.Call // of an approval: what it has beside the tool and its input
	editable bool         // of an approval: it may be allowed with another input
}

func (a RequestForm) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if _, ok, err := a.FindExisting(s); ok || err != nil {
		return nil, err
	}
	if err := a.checkWords(now); err != nil {
		return nil, err
	}
	schema, err := a.compile()
	if err != nil {
		return nil, err
	}
	to, err := s.holder(capabilities.UseAsk, now).reach(a.To)
	request, err := a.promised(s, err)
	if err != nil {
		return nil, err
	}
	if request != nil {
		to = capabilities.Ref{Target: request.Form.Promise, Kind: capabilities.KindPromise}
	}
	route, err := a.route(s, to.Target, now)
	if err == nil {
		err = checkVotes(a.Kind, route, schema.Fields(), a.NoForward)
	}
	if err != nil {
		return nil, err
	}
	e := &events.FormRequested{
		Number: s.Mail.Index.Len(), ID: ids(), Promise: ids(), Resolver: ids(),
		From: s.ID, To: to.Target, Via: to.Grant, Facet: events.Narrowed(to.Facet), Kind: a.Kind,
		Title: titleOf(a.Kind, a.Title), Description: a.Description, Fields: schema.Fields(),
		Deadline: a.Deadline, NoForward: a.NoForward, Date: now, Key: a.Key, Result: a.Name, Origin: a.Origin, Route: route,
		Asker: s.Profile.called(),
	}
	if a.Kind == events.Approval {
		e.Call = a.call
		e.Call.Decider = s.Profile.Host
	}
	if request != nil {
		queued, err := queueBehind(s, e.ID, request, a.To, sizeOfForm(e), now)
		return []events.Event{queued, e}, err
	}
	return []events.Event{e}, nil
}

// promised returns the request for whose answer the form is, if the error is that its recipient is not known yet. Otherwise it returns
// the error.
func (a RequestForm) promised(s *State, err error) (*Message, error) {
	if err == nil || a.Kind == events.Approval { // a call is asked of whom the agent knows
		return nil, err
	}
	request, err := promisedAt(s, a.To, err)
	if err == nil && len(a.Remind)+len(a.Escalate) > 0 {
		err = parley.Refuse(parley.InvalidArgument, "nobody is reminded of a form, nor is it escalated, while it waits for the answer of form %d", request.Number)
	}
	return request, err
}

// compile returns the schema of the form.
func (a RequestForm) compile() (*form.Schema, error) {
	fields := a.fields()
	if err := checkKind(a.Kind, fields, false); err != nil {
		return nil, err
	}
	if a.Kind == events.Approval {
		if err := CheckInput(a.Title, a.Description); err != nil {
			return nil, err
		}
	}
	if a.Schema != nil && a.Kind == events.PlainForm {
		return a.Schema, nil
	}
	return form.Compile(fields)
}

// fields returns the fields of the form. All requests have the same.
func (a RequestForm) fields() []events.Field {
	if a.Kind == events.Request {
		return []events.Field{{Name: requestField, Label: "Capability", Type: events.Capability, Required: true}}
	}
	return a.Fields
}

// checkKind refuses with INVALID_FORM an unknown kind, and fields that do not fit their kind. An approval that was
// asked here may offer rules.
func checkKind(kind events.FormKind, fields []events.Field, here bool) error {
	switch kind {
	case events.PlainForm:
		return nil
	case events.Approval:
		if isApproval(fields, here) {
			return nil
		}
		return parley.Refuse(parley.InvalidForm, "an approval has the fields %q and %q, as all of them have", decisionField, reasonField)
	case events.Request:
		if len(fields) == 1 && fields[0].Name == requestField && fields[0].Type == events.Capability {
			return nil
		}
		return parley.Refuse(parley.InvalidForm, "a request has the one field %q, for a capability", requestField)
	}
	return parley.Refuse(parley.InvalidForm, "unknown kind of form %s", parley.Quoted(string(kind), 40))
}

// sameQuestion reports whether two fields ask the same in the same words.
func sameQuestion(a, b events.Field) bool {
	return a.Name == b.Name && a.Label == b.Label && a.Type == b.Type && a.Required == b.Required && slices.Equal(a.Options, b.Options) &&
		a.Default.IsNull() && a.Help == "" && a.Placeholder == "" && a.Example.IsNull() && len(a.Pattern) == 0
}

// checkFormWords checks the bounds of a form's description and title. The description of an approval is an input.
func checkFormWords(kind events.FormKind, description, title string) error {
	if description == "" {
		return parley.Refuse(parley.InvalidForm, "a form needs a description")
	}
	most := maxDescription
	if kind == events.Approval {
		most = maxInput
	}
	if err := checkText("a description", description, most); err != nil {
		return err
	}
	return checkText("a title", title, maxTitle)
}

func (a RequestForm) checkWords(now capabilities.Time) error {
	if err := checkFormWords(a.Kind, a.Description, a.Title); err != nil {
		return err
	}
	if err := checkOrigin(a.Origin); err != nil {
		return err
	}
	if err := checkText("a key", a.Key, maxKey); err != nil {
		return err
	}
	if a.Deadline != 0 && a.Deadline <= now {
		return parley.Refuse(parley.InvalidArgument, "the deadline %s has passed", a.Deadline)
	}
	if a.Name != "" {
		return capabilities.CheckName(a.Name)
	}
	return nil
}

// CancelForm cancels a form that the agent asked.
type CancelForm struct {
	Form   capabilities.FormRef
	Reason string
}

func (c CancelForm) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Mail.FindForm(c.Form)
	if err != nil {
		return nil, err
	}
	if err := checkText("a reason", c.Reason, maxReason); err != nil {
		return nil, err
	}
	if m.Form.From != s.ID {
		asker, err := partyOf(s, m.Form, m.Form.From)
		if err != nil {
			return nil, err
		}
		return nil, parley.Refuse(parley.NotPermitted, "only %s, who asked it, may cancel form %d", asker, m.Number).
			WithHint("parley decline %d says no to it", m.Number)
	}
	if !m.Form.IsOpen() {
		return nil, endedError(s, m)
	}
	return []events.Event{&events.FormCancelled{
		Form: m.Form.ID, Reason: events.Cancelled, By: s.ID, Note: c.Reason, Date: now,
	}}, nil
}

// endedError returns the error for a form that ended, as it is shown to the agent itself: what it has ended is ended "by you".
func endedError(s *State, m *Message) error {
	return m.Form.endedError(fmt.Sprintf("form %d", m.Number), func(id capabilities.ID) (string, error) {
		if id == s.ID {
			return "you", nil
		}
		return partyOf(s, m.Form, id)
	})
}

// partyOf returns an agent that a form speaks of as error messages show it. The asker, where the reader has no name for it, is called what it
// calls itself.
func partyOf(s *State, f *Form, id capabilities.ID) (string, error) {
	name, err := s.Names.Of(id)
	if said := parley.Called(f.Asker); name == "" && err == nil && id == f.From && said != "" {
		return said, nil
	}
	return s.Names.describe(id)
}
