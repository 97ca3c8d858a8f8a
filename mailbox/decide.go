package mailbox

import (
	"slices"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// IDs makes the IDs that a decision needs, each new.
type IDs func() capabilities.ID

// Command is something that an agent, or another mailbox, wants of a mailbox. The commands are the structs
// of this package with a decide method.
type Command interface {
	decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error)
}

// Decide returns the events that should follow a command at a time. No events and no error means that
// there is nothing to do: what was wanted is so already. It changes nothing that can be seen of the state.
func (s *State) Decide(c Command, now capabilities.Time, ids IDs) ([]events.Event, error) {
	return c.decide(s, now, ids)
}

// Bounds of what an agent may say, in bytes.
const (
	maxDescription = 16 << 10
	maxTitle       = 1 << 10
	maxReason      = 4 << 10
	maxText        = 128 << 10
	maxKey         = 255
	maxGrantName   = 1 << 10
	maxMessage     = 256 << 10 // with all that it carries
)

func checkText(what, text string, limit int) error {
	if len(text) > limit {
		return parley.Refuse(parley.TooLarge, "%s of %d bytes is over the limit of %d", what, len(text), limit)
	}
	if !utf8.ValidString(text) {
		return parley.Refuse(parley.InvalidArgument, "%s is not valid UTF-8", what)
	}
	return nil
}

// requestField is the one field of a request.
const requestField = "value"

// RequestForm sends a form. To is a path, ID or locator. Fields are of no account for a Request.
type RequestForm struct {
	To          string
	Kind        events.FormKind
	Title       string
	Description string
	Fields      []events.Field
	Deadline    capabilities.Time
	NoForward   bool
	Key         string // idempotency key
	Result      string // name that the answer is to be bound to

	Schema *form.Schema // of Fields, if they were compiled before

	folder string // of an approval: where its call is made
}

func (a RequestForm) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	if _, ok, err := a.FindExisting(s); ok || err != nil {
		return nil, err
	}
	if err := a.checkWords(now); err != nil {
		return nil, err
	}
	contract, err := a.compile()
	if err != nil {
		return nil, err
	}
	to, err := s.reach(a.To, capabilities.UseAsk, now)
	if err != nil {
		return nil, err
	}
	e := &events.FormRequested{
		Number: uint64(len(s.messages)), ID: ids(), Promise: ids(), Resolver: ids(),
		From: s.ID, To: to.Target, Via: to.Grant, Facet: to.Facet, Kind: a.Kind,
		Title: a.Title, Description: a.Description, Fields: contract.Fields(),
		Deadline: a.Deadline, NoForward: a.NoForward, Date: now, Key: a.Key, Result: a.Result,
	}
	return []events.Event{e}, nil
}

// compile returns the contract of what is asked.
func (a RequestForm) compile() (*form.Schema, error) {
	fields := a.fields()
	if err := checkKind(a.Kind, fields, false); err != nil {
		return nil, err
	}
	if a.Kind == events.Approval {
		if err := checkInput(a.Title, a.Description); err != nil {
			return nil, err
		}
	}
	if a.Schema != nil && a.Kind == events.PlainForm {
		return a.Schema, nil
	}
	return form.Compile(fields)
}

// fields returns the fields that are asked: those of a request are always the same.
func (a RequestForm) fields() []events.Field {
	if a.Kind == events.Request {
		return []events.Field{{Name: requestField, Label: "Capability", Type: events.Capability, Required: true}}
	}
	return a.Fields
}

// checkKind refuses with INVALID_FORM a kind that is unknown, or is another than its fields are of. An approval that
// was asked here may offer rules.
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

// sameQuestion reports whether two fields ask for the same, in the same words.
func sameQuestion(a, b events.Field) bool {
	return a.Name == b.Name && a.Label == b.Label && a.Type == b.Type && a.Required == b.Required && slices.Equal(a.Options, b.Options) &&
		a.Default.IsNull() && a.Help == "" && a.Placeholder == "" && a.Example.IsNull() && len(a.Pattern) == 0
}

// checkFormWords holds the words of a form to their bounds, those being asked and those that come in.
func checkFormWords(description, title string) error {
	if description == "" {
		return parley.Refuse(parley.InvalidForm, "a form needs a description")
	}
	if err := checkText("a description", description, maxDescription); err != nil {
		return err
	}
	return checkText("a title", title, maxTitle)
}

func (a RequestForm) checkWords(now capabilities.Time) error {
	if err := checkFormWords(a.Description, a.Title); err != nil {
		return err
	}
	if err := checkText("a key", a.Key, maxKey); err != nil {
		return err
	}
	if a.Deadline != 0 && a.Deadline <= now {
		return parley.Refuse(parley.InvalidArgument, "the deadline %s has passed", a.Deadline)
	}
	if a.Result != "" {
		return capabilities.CheckName(a.Result)
	}
	return nil
}

func (s *State) checkActive() error {
	if s.Profile.Archived {
		return parley.Refuse(parley.AgentArchived, "the agent is archived")
	}
	return nil
}

// CancelForm takes back a form that the agent asked.
type CancelForm struct {
	Which  string
	Reason string
}

func (c CancelForm) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.FindForm(c.Which)
	if err != nil {
		return nil, err
	}
	if err := checkText("a reason", c.Reason, maxReason); err != nil {
		return nil, err
	}
	if m.Form.From != s.ID {
		return nil, parley.Refuse(parley.NotPermitted, "only %s, who asked it, may cancel form %d", s.calls(m.Form.From), m.Number).
			WithHint("parley decline %d says no to it", m.Number)
	}
	if !m.Form.IsOpen() {
		return nil, s.already(m)
	}
	return []events.Event{&events.FormCancelled{
		Form: m.Form.ID, Reason: events.Cancelled, By: s.ID, Note: c.Reason, Date: now,
	}}, nil
}

// ExpireForms ends all forms whose deadline has passed, the earliest first.
type ExpireForms struct{}

func (ExpireForms) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	var past []deadline
	for _, d := range s.due {
		if d.at <= now && s.messages[d.number].Form.IsOpen() {
			past = append(past, d)
		}
	}
	slices.SortFunc(past, deadline.compare) // the heap's own order tells how it came about
	evs := make([]events.Event, len(past))
	for i, d := range past {
		evs[i] = &events.FormCancelled{Form: s.messages[d.number].Form.ID, Reason: events.Expired, Date: now}
	}
	return evs, nil
}

// DismissMessage takes a message out of view.
type DismissMessage struct{ Which string }

func (d DismissMessage) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.Find(d.Which)
	if err != nil || m.Dismissed {
		return nil, err
	}
	return []events.Event{&events.MessageDismissed{Number: m.Number}}, nil
}
