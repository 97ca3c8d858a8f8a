package mailbox

import (
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// SettleForm is what one who may answer says to a form, on its way home. Reason is "" for an answer. Sealed
// has, for each secret field answered, its value as it is to be written down.
type SettleForm struct {
	Form   capabilities.ID
	By     capabilities.ID
	Reason events.Reason
	Note   string
	Values map[string]capabilities.Value
	Sealed map[string]capabilities.Value
	Grants []capabilities.Grant

	Schema *form.Schema // of the form's fields, if they were compiled before

	// Answer is the settlement's own ID, if the form's home is on another node: it may come there several times, and
	// the same agent may send another beside it.
	Answer capabilities.ID

	// From a mailbox next door: the values were held to the same fields, and are this settlement's alone.
	checked bool
}

// Reply is what an agent wants to answer. A capability may stand in Values as a path. Digest, if it is not "", is of
// the call that the answerer was shown.
type Reply struct {
	Which  string
	Digest string
	Values map[string]capabilities.Value
	Texts  []form.Text

	Schema *form.Schema // of the form's fields, if they were compiled before
}

// DraftAnswer makes of a reply the settlement to send to the form's home, which it also returns. It is
// checked as the home will check it, so that nothing leaves that cannot be accepted.
func (s *State) DraftAnswer(r Reply, now capabilities.Time, ids IDs) (SettleForm, capabilities.ID, error) {
	m, err := s.answerable(r.Which)
	if err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	f := m.Form
	if r.Digest != "" && r.Digest != f.Digest() {
		return SettleForm{}, capabilities.ID{}, parley.Refuse(parley.InvalidArgument, "message %d asks about another call than the one that was shown", m.Number).
			WithHint("parley permit ls shows what waits")
	}
	contract := r.Schema
	if contract == nil {
		if contract, err = f.Schema(); err != nil {
			return SettleForm{}, capabilities.ID{}, err
		}
	}
	claimed, err := s.claimEach(r.Values, now)
	if err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	values, err := contract.ReadAndCheck(r.Texts, claimed, func(path string) (capabilities.Value, error) { return s.at(path, capabilities.UseGive, now) })
	if err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	g := gift{to: f.From, message: f.ID, now: now, ids: ids}
	for _, field := range f.Fields { // in the form's order, so that equal answers make equal grants
		v, ok := values[field.Name]
		if !ok {
			continue
		}
		if values[field.Name], err = s.give(&g, field.Name, v); err != nil {
			return SettleForm{}, capabilities.ID{}, err
		}
	}
	c := SettleForm{Form: f.ID, By: s.ID, Values: values, Grants: g.grants, Answer: s.answerID(f, ids), checked: true}
	return c, f.From, nil
}

// answerID returns the ID of a new settlement of a form: zero where the form's home is on this node.
func (s *State) answerID(f *Form, ids IDs) capabilities.ID {
	if !s.isOutside(f.From) {
		return capabilities.ID{}
	}
	return ids()
}

// claimEach is claimAll for values by name. The given map stays as it is.
func (s *State) claimEach(values map[string]capabilities.Value, now capabilities.Time) (map[string]capabilities.Value, error) {
	claimed, copied := values, false
	for k, v := range values {
		if !v.Has(capabilities.Value.IsRef) {
			continue
		}
		held, err := s.claimAll(v, capabilities.UseGive, now)
		if err != nil {
			return nil, err
		}
		if !copied {
			claimed, copied = maps.Clone(values), true
		}
		claimed[k] = held
	}
	return claimed, nil
}

// DraftDecline is DraftAnswer for saying no.
func (s *State) DraftDecline(which, note string, ids IDs) (SettleForm, capabilities.ID, error) {
	m, err := s.answerable(which)
	if err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	if err := checkText("a reason", note, maxReason); err != nil {
		return SettleForm{}, capabilities.ID{}, err
	}
	c := SettleForm{Form: m.Form.ID, By: s.ID, Reason: events.Declined, Note: note, Answer: s.answerID(m.Form, ids)}
	return c, m.Form.From, nil
}

// answerable gives an open form that this agent was asked.
func (s *State) answerable(which string) (*Message, error) {
	m, err := s.FindForm(which)
	if err != nil {
		return nil, err
	}
	if !m.Form.IsOpen() {
		return nil, s.already(m)
	}
	if err := s.mayDraft(m); err != nil {
		return nil, err
	}
	if !s.Received(m) {
		return nil, parley.Refuse(parley.NotPermitted, "only %s may answer form %d", s.calls(m.Form.To), m.Number).
			WithHint("parley cancel %d takes it back", m.Number)
	}
	return m, s.checkActive()
}

func (c SettleForm) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	m, err := s.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	if f.From != s.ID || !f.mayAnswer(c.By) {
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not put to %s", c.Form, c.By)
	}
	if f.EndedBy(c.Answer) {
		return nil, nil // word of it was lost
	}
	if !f.IsOpen() {
		return nil, f.alreadyTo()
	}
	if f.Deadline != 0 && now >= f.Deadline { // the clock has not come round to it yet
		return nil, parley.Refuse(parley.AlreadyExpired, "the form expired at %s", f.Deadline)
	}
	if c.Reason != "" {
		if err := c.checkDecline(); err != nil {
			return nil, err
		}
		return []events.Event{&events.FormCancelled{Form: c.Form, Reason: c.Reason, By: c.By, Note: c.Note, Date: now, Answer: c.Answer}}, nil
	}
	return s.answer(f, c, now, ids)
}

// checkDecline holds one who says no to saying just that: all other ends are the home's own to decide.
func (c SettleForm) checkDecline() error {
	if c.Reason != events.Declined {
		return parley.Refuse(parley.NotPermitted, "one who was asked may answer or decline, and this is %s", parley.Quoted(string(c.Reason), 40))
	}
	return checkText("a reason", c.Note, maxReason)
}

func (s *State) answer(f *Form, c SettleForm, now capabilities.Time, ids IDs) ([]events.Event, error) {
	values, err := f.check(c)
	if err != nil {
		return nil, err
	}
	if s.isOutside(c.By) && !isGift(capabilities.Record(values), c.By.Node) {
		return nil, parley.Refuse(parley.NotPermitted, "the answer brings what its giver's node has not given")
	}
	if err := f.checkGrants(values, c.By, c.Grants); err != nil {
		return nil, err
	}
	for _, field := range f.Fields {
		if _, given := values[field.Name]; !given || field.Type != events.Secret {
			continue
		}
		sealed, ok := c.Sealed[field.Name]
		if !ok || !sealed.IsSealed() {
			return nil, parley.Refuse(parley.Internal, "secret field %s is not sealed", field.Name)
		}
		values[field.Name] = sealed
	}
	if err := form.CheckSize(values); err != nil { // a sealed value is longer than what is in it
		return nil, err
	}
	rule, err := s.standing(f, c, values, now, ids)
	if err != nil {
		return nil, err
	}
	e := &events.FormAnswered{Form: c.Form, By: c.By, Values: capabilities.Record(values), Date: now, Grants: c.Grants, Answer: c.Answer}
	evs := []events.Event{e}
	if c.By == s.ID {
		evs = append(evs, granted(c.Grants)...)
	}
	if f.Result != "" {
		evs = append(evs, &events.NameBound{Name: f.Result, Value: f.value(e.Values)})
	}
	if rule != nil {
		evs = append(evs, rule)
	}
	return evs, nil
}

// check gives the values of an answer as they are stored.
func (f *Form) check(c SettleForm) (map[string]capabilities.Value, error) {
	if c.checked {
		return c.Values, nil
	}
	contract := c.Schema
	if contract == nil {
		var err error
		if contract, err = f.Schema(); err != nil {
			return nil, err
		}
	}
	return contract.Check(c.Values)
}

// checkGrants holds the capabilities in an answer to its grants: each by one of its own, from the answerer to
// the asker, and no grant without.
func (f *Form) checkGrants(values map[string]capabilities.Value, by capabilities.ID, grants []capabilities.Grant) error {
	n := 0
	for _, field := range f.Fields {
		if field.Type != events.Capability {
			continue // none but these take references
		}
		ref, given := values[field.Name].AsRef()
		if !given {
			continue
		}
		i := slices.IndexFunc(grants, func(g capabilities.Grant) bool { return g.ID == ref.Grant })
		if i < 0 || grants[i].Ref() != ref.Bare() || !f.takes(grants[i], by) {
			return parley.Refuse(parley.NotPermitted, "the capability in %s is not given by a grant of the answer", field.Name)
		}
		n++
	}
	if n != len(grants) {
		return parley.Refuse(parley.NotPermitted, "the answer has %d grants for %d capabilities", len(grants), n)
	}
	return nil
}

// takes reports whether a grant is one that an answer to the form makes.
func (f *Form) takes(g capabilities.Grant, by capabilities.ID) bool {
	return !g.ID.IsZero() && g.By == by && g.To == f.From && g.Message == f.ID && g.Revoked == 0 &&
		len(g.Name) <= maxGrantName && utf8.ValidString(g.Name)
}

// EndedBy reports whether the form was ended by the settlement with an ID.
func (f *Form) EndedBy(answer capabilities.ID) bool {
	switch {
	case answer.IsZero():
		return false
	case f.Answered != nil:
		return f.Answered.Answer == answer
	}
	return f.Ended != nil && f.Ended.Answer == answer
}

// already says to the agent itself how a form ended, by whom and when.
func (s *State) already(m *Message) error {
	return m.Form.already(fmt.Sprintf("form %d", m.Number), s.calls)
}

// alreadyTo says it to others, who have no business with the agent's numbers and names.
func (f *Form) alreadyTo() error {
	return f.already("the form", capabilities.ID.String)
}

func (f *Form) already(what string, called func(capabilities.ID) string) error {
	if a := f.Answered; a != nil {
		return parley.Refuse(parley.AlreadyAnswered, "%s was answered by %s at %s", what, called(a.By), a.Date)
	}
	e := f.Ended
	switch e.Reason {
	case events.Declined:
		return parley.Refuse(parley.AlreadyDeclined, "%s was declined by %s at %s", what, called(e.By), e.Date)
	case events.Expired:
		return parley.Refuse(parley.AlreadyExpired, "%s expired at %s", what, e.Date)
	}
	return parley.Refuse(parley.AlreadyCancelled, "%s was %s by %s at %s", what, e.Reason, called(e.By), e.Date)
}

// ForwardForm is a forwarder's wish, on its way home, that another may answer too.
type ForwardForm struct {
	Form capabilities.ID
	By   capabilities.ID
	To   capabilities.ID
	Via  capabilities.ID // the grant by which the home can reach To; zero if it needs none
}

// MaxHolders bounds how far a form can be handed on.
const MaxHolders = 32

// DraftForward makes the handover of a form to another agent, and gives the form's home.
func (s *State) DraftForward(which, to string, now capabilities.Time) (ForwardForm, capabilities.ID, error) {
	m, err := s.answerable(which)
	if err != nil {
		return ForwardForm{}, capabilities.ID{}, err
	}
	if m.Form.NoForward {
		return ForwardForm{}, capabilities.ID{}, s.noForward(m)
	}
	ref, err := s.reach(to, capabilities.UseAsk, now)
	if err != nil {
		return ForwardForm{}, capabilities.ID{}, err
	}
	if ref.Facet.Uses != 0 && !ref.Grant.IsZero() { // it is the home that asks, which counts no uses of the agent's
		return ForwardForm{}, capabilities.ID{}, parley.Refuse(parley.NotPermitted, "a form cannot be forwarded by a reference for %d uses", ref.Facet.Uses)
	}
	h := ForwardForm{Form: m.Form.ID, By: s.ID, To: ref.Target, Via: s.presented(ref.Known(), ref.Target)}
	return h, m.Form.From, nil
}

func (s *State) noForward(m *Message) error {
	return parley.Refuse(parley.NotPermitted, "the asker forbade forwarding form %d", m.Number)
}

func (c ForwardForm) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	m, err := s.FindFormID(c.Form)
	if err != nil {
		return nil, err
	}
	f := m.Form
	switch {
	case f.From != s.ID || !f.mayAnswer(c.By):
		return nil, parley.Refuse(parley.NotPermitted, "form %s was not put to %s", c.Form, c.By)
	case f.wasForwarded(c):
		return nil, nil // word of it was lost
	case !f.IsOpen():
		return nil, f.alreadyTo()
	case f.NoForward:
		return nil, parley.Refuse(parley.NotPermitted, "the asker forbade forwarding the form")
	case c.To.IsZero():
		return nil, parley.Refuse(parley.InvalidArgument, "a form is forwarded to nobody")
	case s.isOutside(c.By) && c.Via.Node != c.By.Node: // or it would go by what is held here
		return nil, parley.Refuse(parley.NotPermitted, "the form is forwarded by a grant that its holder's node has not made")
	case c.To == s.ID:
		return nil, parley.Refuse(parley.NotPermitted, "a form cannot be forwarded to its asker")
	case f.mayAnswer(c.To):
		return nil, parley.Refuse(parley.NotPermitted, "%s has the form already", c.To)
	case len(f.Holders) >= MaxHolders:
		return nil, parley.Refuse(parley.TooLarge, "the form was handed on %d times", len(f.Holders)-1)
	}
	return []events.Event{&events.FormForwarded{Form: c.Form, By: c.By, To: c.To, Via: c.Via, Date: now}}, nil
}

// HasForwarded reports whether the agent has handed a form on to another, or wanted to. The wish of a form whose home is on
// another node is a grant of its own, which outlasts it.
func (s *State) HasForwarded(form, to capabilities.ID) bool {
	m, err := s.FindFormID(form)
	if err != nil {
		return false
	}
	if slices.ContainsFunc(m.Form.Forwarded, func(h events.FormForwarded) bool { return h.By == s.ID && h.To == to }) {
		return true
	}
	return s.isOutside(m.Form.From) && s.given.Any(func(g capabilities.Grant) bool {
		return g.Message == form && g.Target == to && g.Facet == forwardFacet(g.Facet)
	})
}

// wasForwarded reports whether the very same handover has come before. Each that comes from another node has a grant
// of its own.
func (f *Form) wasForwarded(c ForwardForm) bool {
	return !c.Via.IsZero() && slices.ContainsFunc(f.Forwarded, func(h events.FormForwarded) bool {
		return h.By == c.By && h.To == c.To && h.Via == c.Via
	})
}
