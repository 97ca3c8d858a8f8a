package mailbox

import (
	"cmp"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/rule"
)

// Rule is a standing rule of the agent.
type Rule struct {
	events.RuleAdded
	Made capabilities.Time
	Uses uint64
	Used capabilities.Time // the last time

	Paused bool // it decides nothing
}

// Words returns the calls that the rule covers, in words.
func (r *Rule) Words() string { return rule.Words(&r.Covers) }

// maxRules bounds the standing rules of one agent.
const maxRules = 1024

// Rules holds the agent's standing rules, its mandates and its policy. Together they decide calls without a question.
type Rules struct {
	self   capabilities.ID
	byID   map[capabilities.ID]*Rule
	policy string

	reviewer *events.ReviewerSet // of the policy of review; nil for another

	mandates []*Mandate                          // in the order in which they were given
	callers  map[capabilities.ID]capabilities.ID // of open approvals by a session of a coding agent: that session's agent
}

// Valid returns the rules that are valid at a time, oldest first.
func (l *Rules) Valid(now capabilities.Time) []Rule {
	var all []Rule
	for _, r := range l.byID {
		if r.Until == 0 || r.Until > now {
			all = append(all, *r)
		}
	}
	slices.SortFunc(all, func(a, b Rule) int { return cmp.Or(cmp.Compare(a.Made, b.Made), a.Rule.Compare(b.Rule)) })
	return all
}

// concerning returns the rules of the agent's own that are valid at a time and may decide a call of a tool, oldest first. Most of many
// rules are for very calls, and are left out by that.
func (l *Rules) concerning(tool string, call *rule.Reading, now capabilities.Time) []*Rule {
	var all []*Rule
	for _, r := range l.byID {
		if r.Tool == tool && r.Agent == l.self && (r.Until == 0 || r.Until > now) && call.MayConcern(&r.Covers) {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *Rule) int { return cmp.Or(cmp.Compare(a.Made, b.Made), a.Rule.Compare(b.Rule)) })
	return all
}

// Policy returns the agent's policy.
func (l *Rules) Policy() string {
	if l.policy == "" {
		return AskOnMiss
	}
	return l.policy
}

// Lasts reports whether a rule without an end decided a call. The policy may decide the next call otherwise.
func (l *Rules) Lasts(rule capabilities.ID) bool {
	r, ok := l.byID[rule]
	return ok && r.Until == 0
}

// add adds a rule, or changes the end of one that is there.
func (l *Rules) add(e *events.RuleAdded, at capabilities.Time) {
	if r, ok := l.byID[e.Rule]; ok {
		r.RuleAdded = *e
		return
	}
	l.byID[e.Rule] = &Rule{RuleAdded: *e, Made: at}
}

// countUse counts a use of a rule.
func (l *Rules) countUse(e *events.RuleUsed, at capabilities.Time) {
	if r, ok := l.byID[e.Rule]; ok {
		r.Uses++
		r.Used = at
	}
}

// pause pauses a rule, or resumes it.
func (l *Rules) pause(e *events.RulePaused) {
	if r, ok := l.byID[e.Rule]; ok {
		r.Paused = e.Paused
	}
}

func (l *Rules) remove(rule capabilities.ID) { delete(l.byID, rule) }

// isFull reports whether there are as many valid rules as an agent may have. Those that are about to be added count
// too.
func (l *Rules) isFull(now capabilities.Time, more int) bool {
	return len(l.byID)+more >= maxRules && len(l.Valid(now))+more >= maxRules
}

// ruling is how a call is decided without a question. It is zero if the agent's host has to be asked.
type ruling struct {
	decided bool
	allow   bool
	rules   []capabilities.ID // standing rules, or a zero ID for the policy
	charged []covering        // mandates that allow it too
}

// ruling decides about a call. Standing rules go before mandates, and what denies goes before all.
func (c *RequestApproval) ruling(s *State, call *rule.Reading, now capabilities.Time) (r ruling) {
	l := &s.Rules
	now = reached(s, now)
	all := l.concerning(c.Tool, call, now)
	rules := slices.DeleteFunc(slices.Clone(all), func(r *Rule) bool { return r.Paused })
	matched := standing(rules)
	var of []covering // for each of matched after those of rules
	looked, risky := false, true
	isRisky := func() bool { // it takes long, and most calls are within no mandate
		if !looked {
			looked, risky = true, c.risk().Level >= HighRisk
		}
		return risky
	}
	for _, m := range l.covering(c, now) {
		for i := range m.Rules {
			if mayCover(&m.Rules[i], c.Tool, isRisky) {
				matched, of = append(matched, rule.Standing{Covers: &m.Rules[i].Covers, Allow: true}), append(of, m)
			}
		}
	}
	d := call.Decide(matched)
	if len(rules) < len(all) {
		// What is paused asks, also where the policy or a mandate would decide otherwise, or a rule would allow what was never allowed.
		stands := slices.ContainsFunc(d.Rules, func(n int) bool { return n < len(rules) })
		if p := call.Decide(standing(all)); len(p.Rules) > 0 && (!stands || d.Allow && !p.Allow) {
			return r
		}
	}
	switch {
	case c.Each:
		return r
	case len(d.Rules) > 0 && (!d.Allow || l.Policy() != AskAlways):
		r.decided, r.allow = true, d.Allow
		for _, n := range d.Rules {
			if n < len(rules) {
				r.rules = append(r.rules, rules[n].Rule)
				continue
			}
			m := of[n-len(rules)]
			if !slices.ContainsFunc(r.charged, func(o covering) bool { return o.Mandate == m.Mandate }) {
				r.charged = append(r.charged, m)
			}
		}
	case l.Policy() == AskNever || l.Policy() == DenyAll:
		r.decided, r.allow, r.rules = true, l.Policy() == AskNever, []capabilities.ID{{}}
	}
	if r.allow && c.decisions() < anyDecision { // what one has always allowed is not agreed on, and not signed
		return ruling{}
	}
	return r
}

// standing returns rules as a call is held against them.
func standing(rules []*Rule) []rule.Standing {
	all := make([]rule.Standing, len(rules))
	for i, r := range rules {
		all[i] = rule.Standing{Covers: &r.Covers, Allow: r.Allow}
	}
	return all
}

// ruled returns the events of a call that is decided without a question. There are none if a mandate was charged for it before.
func (c *RequestApproval) ruled(r ruling) (evs []events.Event) {
	for _, by := range r.rules {
		evs = append(evs, &events.RuleUsed{Rule: by, Tool: c.Tool, Input: c.Input})
	}
	for _, m := range r.charged {
		if m.known {
			continue
		}
		e := &events.MandateCharged{Mandate: m.MandateGiven.Mandate, Tool: c.Tool, Input: c.Input, Folder: c.Folder, Amounts: m.amounts}
		if !c.Anew {
			e.Key = c.Key
		}
		evs = append(evs, e)
	}
	return evs
}

// Ruled is how a call was decided without a question.
type Ruled struct {
	Allow   bool
	Rule    capabilities.ID // the first of the rules; zero if none did, or for the policy
	Mandate capabilities.ID // the first of the mandates; zero if none did
}

// Ruled returns how an approval is decided without a question at a time, and whether it is. The events of Decide charge it.
func (c RequestApproval) Ruled(s *State, now capabilities.Time) (Ruled, bool) {
	r := c.ruling(s, rule.Read(&c.Permission), now)
	d := Ruled{Allow: r.allow}
	if len(r.rules) > 0 {
		d.Rule = r.rules[0]
	}
	if len(r.charged) > 0 {
		d.Mandate = r.charged[0].MandateGiven.Mandate
	}
	return d, r.decided
}

// offer adds the rules to choose from to an approval for the agent's host.
func (c RequestApproval) offer(s *State, evs []events.Event, call *rule.Reading) ([]events.Event, error) {
	asked, ok := evs[0].(*events.FormRequested)
	if !ok || asked.To != s.Profile.Host {
		return evs, nil
	}
	if c.DenyOnly {
		asked.Fields[0].Help = "The agent offers no way to allow this one call. It can only be denied."
		return evs, nil
	}
	fields := approvalFields(anyDecision)
	asked.Call.Offers = offersOf(c.Folder, call)
	if c.Folder != "" || len(asked.Call.Offers) > 1 {
		fields = append(fields, offeredField(asked.Call.Offers), untilQuestion())
	}
	if c.Editable {
		fields = append(fields, inputQuestion())
	}
	schema, err := form.Compile(fields)
	if err != nil {
		return nil, err
	}
	asked.Fields = schema.Fields()
	return evs, nil
}

// maxShownRule bounds how much of a rule's words is shown within other text, in characters.
const maxShownRule = 200

// offeredField returns the field in which a rule is chosen, by the ID of its offer.
func offeredField(offers []events.Offer) events.Field {
	f := events.Field{Name: ruleField, Label: "Always and Never are for", Type: events.Select}
	for _, o := range offers {
		f.Options = append(f.Options, events.Option{Value: o.ID, Label: o.Words})
	}
	return f
}

// offersOf returns the rules that an approval of a call in a folder offers, that for the very call first. The ID of a wider rule is its
// kind and the digest of what it covers: an answer that names one of another approval does not make another rule here.
func offersOf(folder string, call *rule.Reading) []parley.Offer {
	offers := OffersOf(&parley.Permission{Folder: folder})
	for _, c := range call.Offers() {
		offers = append(offers, events.Offer{ID: rule.ID(&c), Rule: c, Words: rule.Words(&c)})
	}
	return offers
}

// isApproval reports whether fields are those of an approval: a decision and a reason. One that was asked on this node
// may also offer rules and an end of them, and take another input. Its decision may have a help.
func isApproval(fields []events.Field, here bool) bool {
	if len(fields) == 0 || !slices.Contains([]int{denyAlone, withoutRule, anyDecision}, len(fields[0].Options)) {
		return false
	}
	want := approvalFields(len(fields[0].Options))
	if !here || len(fields) < len(want) {
		return slices.EqualFunc(fields, want, sameQuestion)
	}
	decision := fields[0]
	decision.Help = ""
	if !sameQuestion(decision, want[0]) || !sameQuestion(fields[1], want[1]) {
		return false
	}
	offered := fields[len(want):]
	if len(offered) > 0 && offered[0].Name == ruleField {
		if offered[0].Type != events.Select || offered[0].Required {
			return false
		}
		offered = offered[1:]
		if len(offered) == 0 || !sameQuestion(offered[0], untilQuestion()) {
			return false
		}
		offered = offered[1:]
	}
	return len(offered) == 0 || len(offered) == 1 && sameQuestion(offered[0], inputQuestion())
}

// standingRule returns the rule that an approval's answer makes, or nil. Only the agent's host makes rules.
func (c SettleForm) standingRule(s *State, f *Form, values map[string]capabilities.Value, now capabilities.Time, ids IDs) (events.Event, error) {
	if f.Kind != events.Approval {
		return nil, nil
	}
	decision, _ := values[decisionField].AsString()
	if decision != Always && decision != Never {
		return nil, nil
	}
	if _, edited := values[inputField]; edited {
		return nil, parley.Refuse(parley.Internal, "a rule was about to follow from an edited call")
	}
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host can decide for other calls too").
			WithHint("decide %s or %s", Once, Deny)
	}
	chosen, _ := values[ruleField].AsString()
	covers, err := f.offered(chosen)
	if err != nil {
		return nil, err
	}
	added := &events.RuleAdded{
		Agent: s.ID, Tool: f.Title, Allow: decision == Always, Form: f.ID, Covers: covers, Until: EndOfRule(capabilities.Record(values)),
	}
	now = reached(s, now)
	if err := checkEnd(added.Until, now); err != nil {
		return nil, err
	}
	if s.Rules.includes(added, now) || slices.ContainsFunc(c.rules, func(r *events.RuleAdded) bool { return outlasts(r, added) }) {
		return nil, nil
	}
	if resumed := s.Rules.paused(added, now); resumed != nil {
		return resumed, nil
	}
	if s.Rules.isFull(now, len(c.rules)) {
		return nil, parley.Refuse(parley.TooLarge, "the agent has %d standing rules already", maxRules).WithHint("parley agent rules rm ends one")
	}
	added.Rule = ids()
	return added, nil
}

// includes reports whether a valid rule says the same as another, for as long.
func (l *Rules) includes(added *events.RuleAdded, now capabilities.Time) bool {
	return slices.ContainsFunc(l.Valid(now), func(r Rule) bool { return !r.Paused && outlasts(&r.RuleAdded, added) })
}

// paused returns the event that resumes a valid rule which says the same as another, for as long, and is paused; nil for none.
func (l *Rules) paused(added *events.RuleAdded, now capabilities.Time) *events.RulePaused {
	all := l.Valid(now)
	i := slices.IndexFunc(all, func(r Rule) bool { return r.Paused && outlasts(&r.RuleAdded, added) })
	if i < 0 {
		return nil
	}
	return &events.RulePaused{Rule: all[i].Rule, Form: added.Form}
}

// outlasts reports whether a rule says the same as another, for at least as long.
func outlasts(r, other *events.RuleAdded) bool {
	return r.Agent == other.Agent && r.Tool == other.Tool && r.Allow == other.Allow && (r.Until == 0 || other.Until != 0 && r.Until >= other.Until) &&
		rule.Equal(&r.Covers, &other.Covers)
}

// offered returns the rule of the offer with an ID. Without one it is the rule for that very call.
func (q *Question) offered(chosen string) (events.Coverage, error) {
	return Offered(q.Permission(), chosen)
}

// Offered returns the rule of the offer of a permission with an ID. Without one it is the rule for that very call.
func Offered(p *parley.Permission, chosen string) (events.Coverage, error) {
	if chosen == "" || chosen == string(events.CoversCall) {
		return rule.Read(p).Exact(), nil
	}
	if i := slices.IndexFunc(p.Offers, func(o parley.Offer) bool { return o.ID == chosen }); i >= 0 {
		return p.Offers[i].Rule, nil
	}
	return events.Coverage{}, parley.Refuse(parley.InvalidAnswer, "the approval does not offer the rule %s", parley.Quoted(chosen, maxShownRule)).
		WithHint("choose one of those that it offers")
}

// RuleWords returns the rule that an answer to an approval makes, in words; "" if it makes none.
func RuleWords(p *parley.Permission, answer capabilities.Value) string {
	values, _ := answer.AsRecord()
	if decision, _ := values[decisionField].AsString(); decision != Always && decision != Never {
		return ""
	}
	offers := OffersOf(p)
	chosen, _ := values[ruleField].AsString()
	if i := slices.IndexFunc(offers, func(o parley.Offer) bool { return o.ID == chosen }); i >= 0 {
		return offers[i].Words
	}
	return offers[0].Words
}

// OffersOf returns the rules that a permission offers. Where it has none of them, that is the one for the very call.
func OffersOf(p *parley.Permission) []parley.Offer {
	if len(p.Offers) > 0 {
		return p.Offers
	}
	exact := events.Coverage{Kind: events.CoversCall, Folder: p.Folder}
	return []parley.Offer{{ID: string(exact.Kind), Rule: exact, Words: rule.VeryCall(p.Folder)}}
}

// CoveredBy returns the words of an offer in two parts: which calls it covers, and where.
func CoveredBy(o *parley.Offer) (calls, where string) {
	if calls, ok := strings.CutSuffix(o.Words, rule.Where(o.Rule.Folder)); ok {
		return calls, strings.TrimPrefix(rule.Where(o.Rule.Folder), ", ")
	}
	return o.Words, ""
}

// MayMakeRule reports whether an approval with these fields may be followed by a standing rule: where several decide, none is made.
func MayMakeRule(fields []events.Field) bool {
	return slices.ContainsFunc(fields, func(f events.Field) bool {
		return f.Name == decisionField && slices.ContainsFunc(f.Options, func(o events.Option) bool { return o.Value == Always })
	})
}

// AddRule adds a standing rule after the decisions that it is like. By has to be the agent's host. A rule that says the same for as long is
// left as it is.
type AddRule struct {
	Tool   string
	Covers events.Coverage
	Allow  bool
	Until  capabilities.Time // zero for none
	Form   capabilities.ID   // an approval that was decided so; zero for several
	By     capabilities.ID
}

func (c AddRule) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host makes its rules")
	}
	if err := checkEnd(c.Until, now); err != nil {
		return nil, err
	}
	added := &events.RuleAdded{Agent: s.ID, Tool: c.Tool, Allow: c.Allow, Until: c.Until, Covers: c.Covers, Form: c.Form}
	if s.Rules.includes(added, now) {
		return nil, nil
	}
	if resumed := s.Rules.paused(added, now); resumed != nil {
		return []events.Event{resumed}, nil
	}
	if s.Rules.isFull(now, 0) {
		return nil, parley.Refuse(parley.TooLarge, "the agent has %d standing rules already", maxRules).WithHint("parley agent rules rm ends one")
	}
	added.Rule = ids()
	return []events.Event{added}, nil
}

// LimitRule sets the end of a standing rule. By has to be the agent's host.
type LimitRule struct {
	Rule  capabilities.ID
	Until capabilities.Time
	By    capabilities.ID
}

func (c LimitRule) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host limits its rules")
	}
	r, ok := s.Rules.byID[c.Rule]
	if !ok || r.Until != 0 && r.Until <= now { // what has ended is made anew, as any rule is
		return nil, noRule(c.Rule)
	}
	if err := checkEnd(max(c.Until, 1), now); err != nil {
		return nil, err
	}
	limited := r.RuleAdded
	limited.Until = c.Until
	return []events.Event{&limited}, nil
}

// PauseRule pauses a standing rule, or resumes it. By has to be the agent's host. What is so already is no event.
type PauseRule struct {
	Rule   capabilities.ID
	Paused bool
	By     capabilities.ID
}

func (c PauseRule) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host pauses its rules")
	}
	r, ok := s.Rules.byID[c.Rule]
	if !ok {
		return nil, noRule(c.Rule)
	}
	if r.Paused == c.Paused {
		return nil, nil
	}
	return []events.Event{&events.RulePaused{Rule: c.Rule, Paused: c.Paused}}, nil
}

func noRule(id capabilities.ID) error {
	return parley.Refuse(parley.NotPermitted, "the agent has no rule %s", id).WithHint("parley agent rules ls lists them")
}

// RemoveRule ends a standing rule. By has to be the agent's host.
type RemoveRule struct {
	Rule capabilities.ID
	By   capabilities.ID
}

func (c RemoveRule) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host ends its rules")
	}
	if _, ok := s.Rules.byID[c.Rule]; !ok {
		return nil, noRule(c.Rule)
	}
	return []events.Event{&events.RuleRemoved{Rule: c.Rule}}, nil
}
