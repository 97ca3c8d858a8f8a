package mailbox

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/rule"
)

// The decisions of an approval. Always and Never also make a standing rule: the chosen one, or else one for that very
// call.
const (
	Deny   = "deny"
	Once   = "once"
	Always = "always"
	Never  = "never"
)

const (
	decisionField = "decision"
	reasonField   = "reason"
	ruleField     = "rule"
	untilField    = "until"
	inputField    = "input"
)

// maxInput bounds the input of a call in an approval, in bytes. All of it is shown.
const maxInput = 256 << 10

// approvalFields returns the fields of every approval. Its form has the tool as its title and the input as its
// description. A form never changes, so the decision is about the call that was shown. It takes the first so many
// decisions.
func approvalFields(decisions int) []events.Field {
	options := []events.Option{{Value: Deny, Label: "Deny"}, {Value: Once, Label: "Once"}, {Value: Always, Label: "Always"}, {Value: Never, Label: "Never"}}
	return []events.Field{
		{Name: decisionField, Label: "Decision", Type: events.Buttons, Required: true, Options: options[:decisions]},
		{Name: reasonField, Label: "Reason", Type: events.Textarea},
	}
}

// untilQuestion returns the field for the end of a rule. The answer is a duration from then, or a moment.
func untilQuestion() events.Field {
	return events.Field{Name: untilField, Label: "The rule ends", Type: events.Text}
}

// inputQuestion returns the field for another input. Only the approval of an asker that makes the call with that has it.
func inputQuestion() events.Field {
	return events.Field{Name: inputField, Label: "Input to allow instead of the one shown", Type: events.Textarea}
}

// The numbers of decisions that approvals take.
const (
	denyAlone   = 1 // of a call that cannot be allowed
	withoutRule = 2 // where several decide, or a passkey signs: by a rule, a single one would decide on later calls, or nobody sign
	anyDecision = 4
)

// IsEditable reports whether an approval with these fields may be allowed with another input.
func IsEditable(fields []events.Field) bool {
	return slices.ContainsFunc(fields, func(f events.Field) bool { return f.Name == inputField })
}

// MayEnd reports whether a rule that is made by an approval with these fields may be given an end.
func MayEnd(fields []events.Field) bool {
	return slices.ContainsFunc(fields, func(f events.Field) bool { return f.Name == untilField })
}

// RequestApproval asks for a permission, whose offers follow from the call. If standing rules cover the call,
// their use follows at once and no form is sent. The host may allow an Editable call with another input. That input is
// then the one that the asker has to use.
type RequestApproval struct {
	parley.Permission
	To       string // default: the agent's host
	Deadline capabilities.Time
	Origin   *events.Origin // of an approval asked in a dialect; nil for none
	Key      string
	Editable bool // the asker makes the call with the input that was allowed, whichever that is
	Remind   []events.Delay
	Escalate []parley.Escalation // only with Need
	DenyOnly bool                // the asker cannot be told that it may make the call: it can only be denied
	Need     uint32              // so many principals have to agree, and the host is one of them; 0 is 1
	Veto     *bool               // as in parley.Approval
	Each     bool                // each call is decided for itself: rules neither decide it nor follow from it

	SessionAgent capabilities.ID // of a coding agent: the agent of the session that makes the call; zero for the agent itself
	Anew         bool            // asked again with Key it is another call, for which a mandate is charged again

	// Risk returns what may go wrong if the call is made. One of high risk is covered by no mandate but one for that very call, and allowed
	// by no reviewer. Without it every call is of high risk, and has a secret in it.
	Risk func(*parley.Permission) Risk
}

// decisions returns the number of decisions that the approval takes.
func (c RequestApproval) decisions() int {
	switch {
	case c.DenyOnly:
		return denyAlone
	case c.several() || c.Each || c.Passkey:
		return withoutRule
	}
	return anyDecision
}

// several reports whether more than one has to agree.
func (c RequestApproval) several() bool { return c.Need > 1 }

// checkRoute refuses an approval that the agent's host does not decide on, alone or with others.
func (c RequestApproval) checkRoute(s *State, to capabilities.ID) error {
	switch {
	case len(c.Escalate) > 0 && !c.several():
		return parley.Refuse(parley.InvalidArgument, "the agent's host alone allows a call: an escalation needs two that agree, or more").
			WithHint("ask with a need of 2")
	case c.several() && to != s.Profile.Host:
		return parley.Refuse(parley.InvalidArgument, "a call that %d have to agree on is asked of the agent's host, which has to be one of them", c.Need)
	}
	return nil
}

// Form returns the approval as a form.
func (c RequestApproval) Form() RequestForm {
	to := c.To
	if to == "" {
		to = capabilities.NameHost
	}
	return RequestForm{Kind: events.Approval, editable: c.Editable && c.decisions() == anyDecision, call: &events.Call{Folder: c.Folder, Reason: c.Reason, Part: c.Part, Session: c.Session, Use: c.Use}, Form: parley.Form{
		To:          to,
		Title:       c.Tool,
		Description: c.Input,
		Fields:      approvalFields(c.decisions()),
		Deadline:    c.Deadline,
		Origin:      c.Origin,
		Key:         c.Key,
		NoForward:   !c.several(),
		Remind:      c.Remind,
		Escalate:    c.Escalate,
		Need:        c.Need,
		Veto:        c.Veto,
		Passkey:     c.Passkey,
	}}
}

func (c RequestApproval) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if len(c.Offers) > 0 {
		return nil, parley.Refuse(parley.InvalidArgument, "who asks for a permission does not say which rules it offers")
	}
	if err := checkPermission(&c.Permission); err != nil {
		return nil, err
	}
	if (c.Use != nil) != (s.Resource.made != nil) {
		return nil, parley.Refuse(parley.InvalidArgument, "a resource asks about uses of it, and nobody else does")
	}
	read := rule.Read(&c.Permission)
	if r := c.ruling(s, read, now); r.decided {
		return c.ruled(r), nil
	}
	evs, err := c.Form().decide(s, now, ids)
	if err != nil || len(evs) == 0 {
		return evs, err
	}
	if asked, ok := evs[0].(*events.FormRequested); ok {
		if err := c.checkRoute(s, asked.To); err != nil {
			return nil, err
		}
		if c.Use == nil {
			asked.ReplyTo = s.Mail.questioned.joined(&c, now)
		}
		if !c.SessionAgent.IsZero() {
			evs = append(evs, &events.CallerNamed{Form: asked.ID, Session: c.SessionAgent})
		}
	}
	asked, ok := evs[0].(*events.FormRequested)
	if !ok {
		return evs, nil
	}
	if !c.several() && !c.Each && !c.Passkey {
		if evs, err = c.offer(s, evs, read); err != nil {
			return nil, err
		}
	}
	return append(evs, c.reviewAsked(s, asked, read, now)...), nil
}

// CheckInput refuses the name of a tool, or an input of it, that no approval can have. It refuses an input that is too large with
// TOO_LARGE.
func CheckInput(tool, input string) error {
	if tool == "" {
		return parley.Refuse(parley.InvalidForm, "an approval needs the name of a tool")
	}
	if err := checkText("a tool's name", tool, maxTitle); err != nil {
		return err
	}
	if len(input) > maxInput {
		return parley.Refuse(parley.TooLarge, "an input of %d bytes is over the limit of %d", len(input), maxInput).
			WithHint("make the call in smaller parts, each with an approval of its own")
	}
	if err := checkText("an input", input, maxInput); err != nil {
		return err
	}
	return rule.CheckInput(input)
}

// Bounds of what the asker says of its call, in bytes.
const (
	maxWhy  = 4 << 10
	maxPart = 200

	maxUseName = 1 << 10 // of each name in the use of a resource
)

// checkPermission refuses a permission that no approval can ask for.
func checkPermission(p *parley.Permission) error {
	if err := CheckInput(p.Tool, p.Input); err != nil {
		return err
	}
	if err := rule.CheckFolder(p.Folder); err != nil {
		return err
	}
	if err := checkText("the reason of a call", p.Reason, maxWhy); err != nil {
		return err
	}
	if err := checkText("the name of a session", p.Session, maxPart); err != nil {
		return err
	}
	if u := p.Use; u != nil {
		for _, name := range []string{u.Holder, u.Through, u.Name, u.Called} {
			if err := checkText("a name in a use", name, maxUseName); err != nil {
				return err
			}
		}
	}
	return checkText("the name of a part of an agent", p.Part, maxPart)
}

// checkCall refuses an approval that its asker's mailbox cannot have made. Offers are those of the agent's host alone, which
// is on its node: one from elsewhere has none.
func checkCall(e *events.FormRequested, here bool) error {
	p := (&Question{FormRequested: e}).Permission()
	if !here && len(p.Offers) > 0 {
		return parley.Refuse(parley.InvalidForm, "an approval of another node offers no rules")
	}
	if !here && p.Use != nil { // only a giver on the resource's own node is asked
		return parley.Refuse(parley.InvalidForm, "a resource of another node asks nobody here")
	}
	return checkPermission(p)
}

// ApprovalResult is the decision about a call that needed permission.
type ApprovalResult struct {
	Decision string // "" if there is none
	Reason   string
	Allowed  bool
	Input    string // what is allowed instead of the input that was shown; "" for that
}

// ApprovalResult returns the decision about a call that the agent asked about in a form, by Permission.Call. Only the agent's
// host allows a call, and only the call that was shown. The answer of any other agent allows nothing, unless the host agreed to it by its
// vote.
func (s *State) ApprovalResult(f *Form, call string) ApprovalResult {
	if f.Kind != events.Approval || f.From != s.ID || f.Answered == nil || f.Permission().Call() != call {
		return ApprovalResult{}
	}
	v := ApprovalResult{Allowed: s.Allows(f), Input: EditedInput(f.Answered.Values)}
	v.Decision, v.Reason = ReadDecision(f.Answered.Values)
	return v
}

// Allows reports whether the call of an approval was allowed. In another mailbox than the asker's it goes by the
// host that the asker has named. There it gives no authority.
func (s *State) Allows(f *Form) bool {
	switch {
	case f.From != s.ID:
		return f.Allowed()
	case s.Resource.made != nil: // who gave the reference, and was asked
		return f.allowedBy(f.To)
	}
	return f.allowedBy(s.Profile.Host) || f.allowedByReview()
}

// Allowed reports whether the call of an approval was allowed by the host that its asker has named, or by its reviewer.
func (f *Form) Allowed() bool { return f.allowedBy(f.decider()) || f.allowedByReview() }

// allowedByReview reports whether the reviewer of the call has allowed it.
func (f *Form) allowedByReview() bool {
	if !f.isDecidedByReview() {
		return false
	}
	decision, _ := ReadDecision(f.Answered.Values)
	return decision == Once
}

func (f *Form) allowedBy(host capabilities.ID) bool {
	if f.Kind != events.Approval || f.Answered == nil {
		return false
	}
	decision, _ := ReadDecision(f.Answered.Values)
	return (decision == Once || decision == Always) && f.isAgreed(host, f.Answered.By, events.VoteOutcome(decision))
}

// decider returns the only agent that can allow the call of an approval. Old forms do not name it: nearly all were put to it.
func (f *Form) decider() capabilities.ID {
	if f.Call == nil {
		return f.To
	}
	return f.Call.Decider
}

// isAgreed reports whether an agent is for the outcome of an answer by another: it is its own, or its vote is alike.
func (f *Form) isAgreed(host, by capabilities.ID, o events.VoteOutcome) bool {
	v := f.Votes().Of(host)
	return by == host || v != nil && v.Outcome == o && v.Digest == f.QuestionDigest()
}

// Digest returns the digest of all that an approval shows of its call; "" if the form is no approval.
func (q *Question) Digest() string {
	if q.Kind != events.Approval {
		return ""
	}
	return q.Permission().Digest()
}

// Permission returns what an approval asks for; nil for another form.
func (q *Question) Permission() *parley.Permission {
	if q.Kind != events.Approval {
		return nil
	}
	p := parley.Permission{Tool: q.Title, Input: q.Description, Passkey: q.AsksPasskey()}
	if c := q.Call; c != nil {
		p.Folder, p.Reason, p.Part, p.Session, p.Offers, p.Use = c.Folder, c.Reason, c.Part, c.Session, c.Offers, c.Use
	}
	return &p
}

// checkApproval checks the parts of an answer to an approval that depend on each other. It replaces the duration after
// which a rule ends by a time. An input that equals the one shown is left out. A rule never follows from another input:
// nobody has seen what it would cover.
func (q *Question) checkApproval(values map[string]capabilities.Value, now capabilities.Time) error {
	if q.Kind != events.Approval {
		return nil
	}
	decision, _ := values[decisionField].AsString()
	if input, _ := values[inputField].AsString(); input == q.Description {
		delete(values, inputField)
	} else if input != "" {
		if decision != Once {
			return wrongField(inputField, "only a call that is allowed once may have another input: a rule is for the call as it was asked")
		}
		if err := q.checkEdit(input); err != nil {
			return err
		}
	}
	until, _ := values[untilField].AsString()
	if until == "" || decision != Always && decision != Never {
		delete(values, untilField)
		return nil
	}
	end, err := endOf(until, now)
	if err != nil {
		return wrongField(untilField, "%s", parley.AsError(err).Message)
	}
	values[untilField] = capabilities.String(end.String())
	return nil
}

// refuseEdit refuses another input for a call whose asker makes it as it was asked.
func (q *Question) refuseEdit(r Reply) error {
	if q.Kind != events.Approval || IsEditable(q.Fields) {
		return nil
	}
	_, edits := r.Values[inputField]
	if edits || slices.ContainsFunc(r.Texts, func(t events.FieldText) bool { return t.Name == inputField }) {
		return wrongField(inputField, "the agent cannot take another input: it makes the call as it was asked")
	}
	return nil
}

// refuseWords refuses an answer that names a rule by its words, as other choices may be named. Two offers may have the same.
func (q *Question) refuseWords(r Reply) error {
	p := q.Permission()
	if p == nil {
		return nil
	}
	var ids []string
	for _, o := range OffersOf(p) {
		ids = append(ids, o.ID)
	}
	for _, t := range r.Texts {
		if t.Name == ruleField && t.Text != "" && !slices.Contains(ids, t.Text) {
			return wrongField(ruleField, "not one of the options: %s", strings.Join(ids, ", "))
		}
	}
	return nil
}

// checkEdit refuses an input that could not have been asked about. It also refuses one that is no object where the
// input shown is.
func (q *Question) checkEdit(input string) error {
	err := CheckInput(q.Title, input)
	if err == nil && strings.HasPrefix(strings.TrimSpace(q.Description), "{") && !strings.HasPrefix(strings.TrimSpace(input), "{") {
		err = parley.Refuse(parley.InvalidForm, "the input of this call is a JSON object")
	}
	if err != nil {
		return wrongField(inputField, "%s", parley.AsError(err).Message)
	}
	return nil
}

// wrongField refuses an answer for one of its fields.
func wrongField(name, format string, args ...any) error {
	e := parley.Refuse(parley.InvalidAnswer, "%s: "+format, append([]any{name}, args...)...)
	e.Fields = map[string]string{name: fmt.Sprintf(format, args...)}
	return e
}

// longestRule bounds the time for which a rule may be limited.
const longestRule = 10 * 366 * 24 * time.Hour

// endOf reads the end of a rule: a duration from now, or a moment.
func endOf(text string, now capabilities.Time) (end capabilities.Time, err error) {
	if d, wrong := time.ParseDuration(text); wrong == nil {
		if d <= 0 || d > longestRule {
			return 0, parley.Refuse(parley.InvalidArgument, "want a time from now, of ten years at most")
		}
		return now.Add(d), nil
	}
	if err := end.UnmarshalText([]byte(text)); err != nil {
		return 0, parley.Refuse(parley.InvalidArgument, "%.40q is neither a time from now, as in 8h, nor a moment, as in 2026-01-31T12:00:00Z", text)
	}
	if end <= now {
		return 0, parley.Refuse(parley.InvalidArgument, "the time %.40s has passed", text)
	}
	return end, nil
}

// EditedInput returns the input that an answer to an approval allows instead of the one shown; "" for that.
func EditedInput(answer capabilities.Value) string {
	values, _ := answer.AsRecord()
	input, _ := values[inputField].AsString()
	return input
}

// EndOfRule returns the end of the rule that an answer to an approval makes; 0 if it has none.
func EndOfRule(answer capabilities.Value) (end capabilities.Time) {
	values, _ := answer.AsRecord()
	text, _ := values[untilField].AsString()
	if end.UnmarshalText([]byte(text)) != nil {
		return 0
	}
	return end
}

// IsDenied reports whether the answer to an approval denies its call.
func IsDenied(answer capabilities.Value) bool {
	decision, _ := ReadDecision(answer)
	return decision == Deny || decision == Never
}

// ReadDecision reads the answer to an approval. It does not tell whether the call is allowed: State.ApprovalResult
// does.
func ReadDecision(answer capabilities.Value) (decision, reason string) {
	values, _ := answer.AsRecord()
	decision, _ = values[decisionField].AsString()
	reason, _ = values[reasonField].AsString()
	return decision, reason
}
