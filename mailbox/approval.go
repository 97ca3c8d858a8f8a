package mailbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// The decisions of an approval. Always and Never decide calls of the same shape from then on, too.
const (
	Deny   = "deny"
	Once   = "once"
	Always = "always"
	Never  = "never"
)

const (
	decisionField = "decision"
	reasonField   = "reason"
)

// approvalFields are those of every approval. The form itself shows the tool, as its title, and the input, as its
// description: what is decided on is what was shown, as a form never changes.
func approvalFields() []events.Field {
	return []events.Field{
		{Name: decisionField, Label: "Decision", Type: events.Buttons, Required: true, Options: []events.Option{
			{Value: Deny, Label: "Deny"}, {Value: Once, Label: "Once"}, {Value: Always, Label: "Always"}, {Value: Never, Label: "Never"},
		}},
		{Name: reasonField, Label: "Reason", Type: events.Textarea},
	}
}

// Approve asks whether a tool may be called with an input, a JSON document. A standing rule for calls of its shape
// answers at once; the rule's use is what follows then.
type Approve struct {
	To       string // default: the agent's host
	Tool     string
	Input    string
	Deadline capabilities.Time
	Key      string
}

// Ask is the form that asks it.
func (c Approve) Ask() Ask {
	to := c.To
	if to == "" {
		to = capabilities.NameHost
	}
	return Ask{
		To: to, Kind: events.Approval, Title: c.Tool, Description: c.Input, Fields: approvalFields(),
		Deadline: c.Deadline, Key: c.Key, NoForward: true,
	}
}

func (c Approve) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.checkActive(); err != nil {
		return nil, err
	}
	if err := checkInput(c.Tool, c.Input); err != nil {
		return nil, err
	}
	if by, decided := s.standsOn(c, now); decided {
		return []events.Event{&events.RuleUsed{Rule: by, Tool: c.Tool, Input: c.Input}}, nil
	}
	return c.Ask().decide(s, now, ids)
}

// standsOn gives the rule by which a call is decided without a question; zero is the agent's policy.
func (s *State) standsOn(c Approve, now capabilities.Time) (rule capabilities.ID, decided bool) {
	r, found := s.ruleFor(c.Tool, c.Input, now)
	if found && (!r.Allow || s.Policy() != AskAlways) {
		return r.Rule, true
	}
	return capabilities.ID{}, s.Policy() == AskNever || s.Policy() == DenyAll
}

// Allows says what a decision without a question was: of a rule, or with none of the agent's policy.
func (s *State) Allows(rule capabilities.ID) bool {
	if rule.IsZero() {
		return s.Policy() == AskNever
	}
	r, ok := s.rules[rule]
	return ok && r.Allow
}

// Lasts reports whether a decision without a question was for good: of a rule that has no end. A policy may be another
// for the next call.
func (s *State) Lasts(rule capabilities.ID) bool {
	r, ok := s.rules[rule]
	return ok && r.Until == 0
}

// Rule is a standing rule of the agent's.
type Rule struct {
	events.RuleAdded
	Made capabilities.Time
	Uses uint64
	Used capabilities.Time // the last time
}

// maxRules bounds the standing rules of one agent.
const maxRules = 1024

// Rules returns the agent's standing rules that are good at a time, oldest first.
func (s *State) Rules(now capabilities.Time) []Rule {
	var all []Rule
	for _, r := range s.rules {
		if r.Until == 0 || r.Until > now {
			all = append(all, *r)
		}
	}
	slices.SortFunc(all, func(a, b Rule) int { return cmp.Or(cmp.Compare(a.Made, b.Made), a.Rule.Compare(b.Rule)) })
	return all
}

// ruleFor finds the standing rule for a call: one that denies goes before those that allow.
func (s *State) ruleFor(tool, input string, now capabilities.Time) (Rule, bool) {
	shape := shapeOf(input)
	var found Rule
	ok := false
	for _, r := range s.Rules(now) {
		if r.Agent != s.ID || r.Tool != tool || r.Shape != shape {
			continue
		}
		if !ok || found.Allow && !r.Allow {
			found, ok = r, true
		}
	}
	return found, ok
}

// standing gives the rule that an approval's answer makes, or nil. Only the agent's host makes rules.
func (s *State) standing(f *Form, c Settle, values map[string]capabilities.Value, now capabilities.Time, ids IDs) (events.Event, error) {
	if f.Kind != events.Approval {
		return nil, nil
	}
	decision, _ := values[decisionField].AsString()
	if decision != Always && decision != Never {
		return nil, nil
	}
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host can decide for other calls too").
			WithHint("decide %s or %s", Once, Deny)
	}
	if len(s.rules) >= maxRules && len(s.Rules(now)) >= maxRules {
		return nil, parley.Refuse(parley.TooLarge, "the agent has %d standing rules already", maxRules).WithHint("parley rules rm ends one")
	}
	return &events.RuleAdded{
		Rule: ids(), Agent: s.ID, Tool: f.Title, Shape: shapeOf(f.Description), Allow: decision == Always, Form: f.FormRequested.Form,
	}, nil
}

// LimitRule has a standing rule end at a time. By is whose wish that is: the agent's host's.
type LimitRule struct {
	Rule  capabilities.ID
	Until capabilities.Time
	By    capabilities.ID
}

func (c LimitRule) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host limits its rules")
	}
	r, ok := s.rules[c.Rule]
	if !ok {
		return nil, noRule(c.Rule)
	}
	if c.Until <= now {
		return nil, parley.Refuse(parley.InvalidArgument, "the time %s has passed", c.Until)
	}
	limited := r.RuleAdded
	limited.Until = c.Until
	return []events.Event{&limited}, nil
}

func noRule(id capabilities.ID) error {
	return parley.Refuse(parley.NotPermitted, "the agent has no rule %s", id).WithHint("parley rules ls lists them")
}

// RemoveRule ends a standing rule. By is whose wish that is: the agent's host's.
type RemoveRule struct {
	Rule capabilities.ID
	By   capabilities.ID
}

func (c RemoveRule) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host ends its rules")
	}
	if _, ok := s.rules[c.Rule]; !ok {
		return nil, noRule(c.Rule)
	}
	return []events.Event{&events.RuleRemoved{Rule: c.Rule}}, nil
}

// Verdict is what was decided about a call that permission was asked for.
type Verdict struct {
	Decision string // "" if there is none
	Reason   string
	Allowed  bool
}

// Verdict returns what was decided about a call that the agent asked about in a form, and all that reads a decision
// reads it here. Only the agent's host allows, and only that very call: another whom the agent asked has an opinion.
func (s *State) Verdict(f *Form, call string) Verdict {
	if f.Kind != events.Approval || f.From != s.ID || f.Answered == nil || f.Digest() != call {
		return Verdict{}
	}
	var v Verdict
	v.Decision, v.Reason = ReadDecision(f.Answered.Values)
	v.Allowed = f.Answered.By == s.Profile.Host && (v.Decision == Once || v.Decision == Always)
	return v
}

// Digest returns the digest of the call that an approval shows; "" if the form is none.
func (f *Form) Digest() string {
	if f.Kind != events.Approval {
		return ""
	}
	return DigestCall(f.Title, f.Description)
}

// DigestCall returns what a call goes by: no other has the same. An input is JSON, and so has no NUL in it.
func DigestCall(tool, input string) string {
	sum := sha256.Sum256([]byte(tool + "\x00" + input))
	return hex.EncodeToString(sum[:])
}

// ReadDecision reads the answer to an approval. It does not say whether the call is allowed: Verdict does.
func ReadDecision(answer capabilities.Value) (decision, reason string) {
	values, _ := answer.AsRecord()
	decision, _ = values[decisionField].AsString()
	reason, _ = values[reasonField].AsString()
	return decision, reason
}
