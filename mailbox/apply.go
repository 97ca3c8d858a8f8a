package mailbox

import (
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"slices"

	"parley/capabilities"
	"parley/events"
)

// ErrNonsense reports an event that does not follow from those before it. Decide never makes one.
var ErrNonsense = errors.New("event does not follow from those before it")

// Apply folds one event into the state. It fails with ErrNonsense for an event that cannot follow, and then the state
// is unfit for use: the mailbox has to be put aside, visibly.
func (s *State) Apply(r events.Recorded) error {
	s.Version++
	s.countUse(r)
	switch e := r.Event.(type) {
	case *events.FormRequested:
		return s.applyRequested(e)
	case *events.FormAnswered:
		return s.applyAnswered(e)
	case *events.FormCancelled:
		return s.applyCancelled(e)
	case *events.FormForwarded:
		return s.applyForwarded(e)
	case *events.MessagePosted:
		return s.applyPosted(e)
	case *events.MessageDismissed:
		return s.applyDismissed(e)
	case *events.MessageDelivered:
		return s.applyDelivered(e, r.At)
	case *events.NameBound:
		s.unindexName(e.Name)
		s.names[e.Name] = e.Value
		s.indexName(e.Name)
	case *events.NameUnbound:
		s.unindexName(e.Name)
		delete(s.names, e.Name)
	case *events.CapabilityGranted:
		s.applyGranted(e)
	case *events.CapabilityRevoked:
		s.applyRevoked(e)
	case *events.RulesOffered:
		return s.applyOffered(e)
	case *events.RuleAdded:
		s.applyRule(e, r.At)
	case *events.RuleUsed:
		s.applyRuleUsed(e, r.At)
	case *events.RuleRemoved:
		delete(s.rules, e.Rule)
	case *events.TokenMade:
		s.applyTokenMade(e, r.At)
	case *events.TokenRenewed:
		s.applyTokenRenewed(e, r.At)
	case *events.TokenRevoked:
		s.tokens = slices.DeleteFunc(s.tokens, func(t Token) bool { return t.Token == e.Token })
	case *events.CapabilityMinted:
		s.applyMinted(e)
	case *events.AnswerQueued:
		return s.applyAnswerQueued(e)
	case *events.ForwardQueued:
		return s.applyForwardQueued(e)
	case *events.InvitationMade:
		s.peers.addInvitation(e)
	case *events.InvitationEnded:
		s.peers.endInvitation(e)
	case *events.NodeMet:
		s.peers.addPeer(e)
	case *events.QuotaSet:
		s.peers.setQuota(e)
	case *events.NodeDropped:
		s.peers.drop(e)
	case *events.AgentCreated:
		return s.applyCreated(e, r.At)
	case *events.AgentUpdated:
		s.profileChanged(r.At)
		s.applyUpdated(e)
	case *events.AgentArchived:
		s.profileChanged(r.At)
		s.Profile.Archived, s.Profile.Status = true, Closed
		s.work.prompts, s.work.interrupted = nil, nil
	case *events.ProgramSet:
		s.profileChanged(r.At)
		s.work.program = *e
	case *events.PolicySet:
		s.profileChanged(r.At)
		s.work.policy = e.Policy
	case *events.RunStarted:
		s.profileChanged(r.At)
		s.applyRunStarted(e)
	case *events.RunEnded:
		s.profileChanged(r.At)
		s.applyRunEnded(e)
	default:
		return fmt.Errorf("%w: %T", ErrNonsense, r.Event)
	}
	return nil
}

// applyRule adds a rule, or changes the end of one that is there.
func (s *State) applyRule(e *events.RuleAdded, at capabilities.Time) {
	if rule, ok := s.rules[e.Rule]; ok {
		rule.RuleAdded = *e
		return
	}
	s.rules[e.Rule] = &Rule{RuleAdded: *e, Made: at}
}

// applyRuleUsed counts a use of a rule, and notes that the run under way made a call without a question.
func (s *State) applyRuleUsed(e *events.RuleUsed, at capabilities.Time) {
	if s.work.run != nil {
		s.work.run.Ruled = true
	}
	if rule, ok := s.rules[e.Rule]; ok {
		rule.Uses++
		rule.Used = at
	}
}

func (s *State) applyOffered(e *events.RulesOffered) error {
	m, err := s.unsettled(e.Form)
	if err != nil {
		return err
	}
	m.Form.Offered = e
	return nil
}

// profileChanged notes that an event changed what is shown of the agent.
func (s *State) profileChanged(at capabilities.Time) {
	s.Profile.Updated, s.profileVersion = at, s.Version
}

func (s *State) applyCreated(e *events.AgentCreated, at capabilities.Time) error {
	if s.Version != 1 || e.Agent != s.ID {
		return fmt.Errorf("%w: agent made twice", ErrNonsense)
	}
	s.profileChanged(at)
	s.Profile = Profile{Kind: e.Kind, Host: e.Host, By: e.By, Title: e.Title, Labels: e.Labels, Status: Idle, Created: at, Updated: at}
	return nil
}

func (s *State) applyUpdated(e *events.AgentUpdated) {
	p := &s.Profile
	if e.Title != nil {
		p.Title = *e.Title
	}
	if e.Labels != nil {
		p.Labels = maps.Clone(e.Labels)
	}
	if e.Status != "" {
		p.Status, p.Error = e.Status, e.Error
	}
}

// addMessage adds a message under the next number, which has to be that of the event.
func (s *State) addMessage(m *Message, n uint64, id capabilities.ID) error {
	if n != uint64(len(s.messages)) {
		return fmt.Errorf("%w: message %d after %d messages", ErrNonsense, n, len(s.messages))
	}
	if s.byID.has(id) {
		return fmt.Errorf("%w: message %s twice", ErrNonsense, id)
	}
	m.Number, m.Changed, m.carrier = n, s.Version, s.carrierOf(m)
	s.messages = append(s.messages, m)
	s.byID.put(n, id)
	return nil
}

func (s *State) applyRequested(e *events.FormRequested) error {
	f := &Form{FormRequested: e, comment: originInComment(e)}
	if err := s.addMessage(&Message{Form: f}, e.Number, e.ID); err != nil {
		return err
	}
	s.use(e.Via)
	s.indexOrigin(s.messages[e.Number])
	if e.From != s.ID {
		return nil
	}
	f.Holders = []capabilities.ID{e.To}
	s.open++
	if e.Kind == events.Approval {
		s.approvals, s.profileVersion = append(s.approvals, e.Number), s.Version
	}
	s.grantReply(e.To, e.ID, e.Date)
	s.enqueue(events.OutboxCopy, e.ID, e.To)
	if e.Key != "" {
		s.keys[e.Key] = e.Number
	}
	if e.Result != "" {
		s.results[e.Result] = e.Number
	}
	if e.Deadline != 0 {
		heap.Push(&s.due, deadline{at: e.Deadline, number: e.Number})
	}
	return nil
}

func (s *State) applyAnswered(e *events.FormAnswered) error {
	m, err := s.unsettled(e.Form)
	if err != nil {
		return err
	}
	m.Form.Answered = e
	s.recordRoots(e.Values)
	s.applySettled(m, e.Date)
	return nil
}

func (s *State) applyCancelled(e *events.FormCancelled) error {
	m, err := s.unsettled(e.Form)
	if err != nil {
		return err
	}
	m.Form.Ended = e
	s.applySettled(m, e.Date)
	return nil
}

func (s *State) unsettled(form capabilities.ID) (*Message, error) {
	m, err := s.form(form)
	if err != nil {
		return nil, err
	}
	if !m.Form.IsOpen() {
		return nil, fmt.Errorf("%w: form %s settled twice", ErrNonsense, form)
	}
	return m, nil
}

func (s *State) form(id capabilities.ID) (*Message, error) {
	n, ok := s.byID.get(id)
	if !ok || s.messages[n].Form == nil {
		return nil, fmt.Errorf("%w: no form %s", ErrNonsense, id)
	}
	return s.messages[n], nil
}

// applySettled applies the end of a form. At its home, the outcome is enqueued for every holder.
func (s *State) applySettled(m *Message, at capabilities.Time) {
	m.Changed = s.Version
	f := m.Form
	f.Settled = s.Version
	s.dropOrigin(m)
	if f.From != s.ID {
		f.Refused = "" // how it ended says more
		s.dropQueued(f, at)
		return
	}
	s.open--
	if f.Kind == events.Approval {
		s.approvals = slices.DeleteFunc(s.approvals, func(n uint64) bool { return n == m.Number })
		s.profileVersion = s.Version
	}
	if f.Result != "" && s.results[f.Result] == m.Number {
		delete(s.results, f.Result)
	}
	for _, h := range f.Holders {
		s.enqueue(events.OutboxOutcome, f.ID, h)
	}
}

func (s *State) applyForwarded(e *events.FormForwarded) error {
	m, err := s.form(e.Form)
	if err != nil {
		return err
	}
	m.Changed = s.Version
	m.Form.Forwarded = append(m.Form.Forwarded, *e)
	if m.Form.From == s.ID {
		m.Form.Holders = append(m.Form.Holders, e.To)
		s.grantReply(e.To, e.Form, e.Date)
		s.enqueue(events.OutboxCopy, e.Form, e.To)
		s.enqueue(events.OutboxForwarded, e.Form, e.By)
	}
	return nil
}

func (s *State) applyPosted(e *events.MessagePosted) error {
	m := &Message{Posted: e}
	if err := s.addMessage(m, e.Number, e.Message); err != nil {
		return err
	}
	s.use(e.Via)
	if e.To == s.ID {
		s.enqueuePrompt(m)
	}
	if e.From == s.ID {
		s.grantReply(e.To, e.Message, e.Date)
		s.enqueue(events.OutboxCopy, e.Message, e.To)
		if e.Key != "" {
			s.posted[e.Key] = e.Number
		}
		return nil
	}
	for _, sp := range e.Text {
		s.recordRoots(sp.Value)
	}
	return nil
}

func (s *State) applyDismissed(e *events.MessageDismissed) error {
	if e.Number >= uint64(len(s.messages)) {
		return fmt.Errorf("%w: no message %d", ErrNonsense, e.Number)
	}
	m := s.messages[e.Number]
	m.Dismissed, m.Changed = true, s.Version
	s.dropOrigin(m)
	s.dropPrompt(e.Number)
	return nil
}
