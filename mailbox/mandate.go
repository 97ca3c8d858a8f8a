package mailbox

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/rule"
)

// Mandate is leave that ends, as the agent has it: see package rule.
type Mandate struct {
	events.MandateGiven
	Given   capabilities.Time
	Spent   []int64  // of each of Sums, in millionths
	Charges []Charge // one for each call that it has covered, oldest first
	Ended   capabilities.Time
	How     parley.MandateEnd // of one that was ended; "" while its limits say it
}

// Charge is a call that a mandate has covered.
type Charge struct {
	Call    CallKey // zero if it was asked without a key
	Version uint64  // of its event in the mailbox
}

// CallKey stands for a call that was asked about with a key.
type CallKey [16]byte

// Bounds of mandates.
const (
	MaxMandateCalls = 1000
	maxMandates     = 32 // of an agent that have not ended
	keptMandates    = 64 // with those that have ended
	maxMandateRules = 32
	maxMandateSums  = 8
)

// EndOf returns how a mandate has ended at a time; "" if it lasts.
func (m *Mandate) EndOf(now capabilities.Time) parley.MandateEnd {
	switch {
	case m.How != "":
		return m.How
	case m.Until != 0 && now >= m.Until:
		return parley.MandateExpired
	case len(m.Charges) >= int(m.Calls):
		return parley.MandateUsedUp
	}
	return ""
}

// mandateWords returns a rule of a mandate in words.
func mandateWords(r *events.MandateRule) string {
	words := rule.Words(&r.Covers)
	if r.Tool == "" {
		return words
	}
	return r.Tool + ": " + words
}

// Words returns the calls that the mandate covers, in words: those of each of its rules.
func (m *Mandate) Words() []string {
	words := make([]string, len(m.Rules))
	for i := range m.Rules {
		words[i] = mandateWords(&m.Rules[i])
	}
	return words
}

// Mandates returns the agent's mandates, oldest first, and of those that have ended the last ones. They belong to the state.
func (l *Rules) Mandates() []*Mandate { return l.mandates }

func (l *Rules) mandate(id capabilities.ID) *Mandate {
	if i := slices.IndexFunc(l.mandates, func(m *Mandate) bool { return m.Mandate == id }); i >= 0 {
		return l.mandates[i]
	}
	return nil
}

// callKey returns what stands for the call if it is asked about again; zero if that would be another call.
func (c *RequestApproval) callKey() (k CallKey) {
	if c.Key == "" || c.Anew {
		return k
	}
	return keyOf(c.Key, c.Tool, c.Folder, c.Input)
}

func keyOf(texts ...string) (k CallKey) {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%d:%s", len(t), t) //nolint:errcheck // a hash takes all
	}
	copy(k[:], h.Sum(nil))
	return k
}

// covering is a mandate that may allow a call: Known if the call was charged to it before.
type covering struct {
	*Mandate
	known   bool
	amounts []int64
}

// covering returns the mandates that have room for a call, those first that it was charged to before.
func (l *Rules) covering(c *RequestApproval, now capabilities.Time) (all []covering) {
	key := c.callKey()
	for _, m := range l.mandates {
		end := m.EndOf(now)
		if end != "" && end != parley.MandateUsedUp || m.Session != c.SessionAgent {
			continue
		}
		if key != (CallKey{}) && slices.ContainsFunc(m.Charges, func(o Charge) bool { return o.Call == key }) {
			all = slices.Insert(all, 0, covering{Mandate: m, known: true})
			continue
		}
		if amounts, ok := m.room(c); ok && end == "" {
			all = append(all, covering{Mandate: m, amounts: amounts})
		}
	}
	return all
}

// room returns what a call adds to each of the mandate's sums. It reports false if that is not known, or too much.
func (m *Mandate) room(c *RequestApproval) (amounts []int64, ok bool) {
	if len(m.Sums) == 0 {
		return nil, true
	}
	amounts = make([]int64, len(m.Sums))
	for i, sum := range m.Sums {
		if sum.Tool != c.Tool {
			continue
		}
		if amounts[i], ok = rule.Amount(c.Input, sum.Member); !ok || amounts[i] > sum.Most-m.Spent[i] {
			return nil, false
		}
	}
	return amounts, true
}

// mayCover reports whether a rule of a mandate may cover calls of a tool at all. One of high risk is covered by a rule for that very call.
func mayCover(r *events.MandateRule, tool string, isRisky func() bool) bool {
	return (r.Tool == "" || r.Tool == tool) && (r.Covers.Kind == events.CoversCall || !isRisky())
}

// given returns the mandate that an answer to an approval gives; nil if it gives none. Only the agent's host gives one, with the decision
// once.
func (c SettleForm) given(s *State, f *Form, values map[string]capabilities.Value, now capabilities.Time, ids IDs) (events.Event, error) {
	t := c.Mandate
	if t == nil {
		return nil, nil
	}
	decision, _ := values[decisionField].AsString()
	switch {
	case f.Kind != events.Approval:
		return nil, parley.Refuse(parley.InvalidAnswer, "a mandate is given with the answer to an approval")
	case decision != Once:
		return nil, parley.Refuse(parley.InvalidAnswer, "a mandate is given with the decision %s", Once).WithHint("a standing rule is made without a mandate")
	case c.By != s.Profile.Host || f.From != s.ID:
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host gives it a mandate")
	case !MayMakeRule(f.Fields):
		return nil, parley.Refuse(parley.NotPermitted, "no mandate is given with a call that several decide, or that can only be denied")
	}
	live := 0
	for _, m := range s.Rules.mandates {
		if m.EndOf(reached(s, now)) == "" {
			live++
		}
	}
	if live >= maxMandates {
		return nil, parley.Refuse(parley.TooLarge, "the agent has %d mandates already", maxMandates).WithHint("parley mandate end ends one")
	}
	e := &events.MandateGiven{Form: f.ID, By: c.By, Calls: t.Calls, Session: s.Rules.callers[f.ID]}
	if !e.Session.IsZero() {
		if session, known := s.Sessions.Of(e.Session); !known || !session.IsLiving() {
			return nil, parley.Refuse(parley.InvalidAnswer, "the session has ended, and a mandate ends with it").WithHint("allow the call alone")
		}
	}
	if err := addTerms(e, f.Permission(), t, now); err != nil {
		return nil, err
	}
	if err := checkEnd(e.Until, reached(s, now)); err != nil {
		return nil, err
	}
	e.Mandate = ids()
	return e, nil
}

// MandateOf returns the mandate that terms would give, with the answer at a time to an approval of a call. It refuses the terms that the
// answer would be refused for. Whose it is, is not in it.
func MandateOf(p *parley.Permission, t *parley.MandateTerms, now capabilities.Time) (*Mandate, error) {
	m := &Mandate{MandateGiven: events.MandateGiven{Calls: t.Calls}}
	if err := addTerms(&m.MandateGiven, p, t, now); err != nil {
		return nil, err
	}
	m.Spent = make([]int64, len(m.Sums))
	return m, nil
}

// Sentence says all that the mandate gives to an agent, by its name, with a function for times.
func (m *Mandate) Sentence(who string, when func(capabilities.Time) string) string {
	calls := fmt.Sprintf("%d calls at most", m.Calls)
	if m.Calls == 1 {
		calls = "one call"
	}
	limits := []string{calls}
	for _, sum := range m.Sums {
		limits = append(limits, fmt.Sprintf("%s of %s adding up to %s at most", sum.Member, sum.Tool, rule.AmountText(sum.Most)))
	}
	if m.Until != 0 {
		limits = append(limits, "until "+when(m.Until))
	}
	return who + " may do without asking: " + strings.Join(m.Words(), "; ") + ". That is for " + strings.Join(limits, ", ") +
		". What is of high risk asks all the same. It ends with the session that asks, if one does, and you can end it before."
}

// addTerms adds to a mandate the rules and limits that terms say of it.
func addTerms(e *events.MandateGiven, p *parley.Permission, t *parley.MandateTerms, now capabilities.Time) error {
	switch {
	case e.Calls == 0:
		e.Calls = MaxMandateCalls
	case e.Calls > MaxMandateCalls:
		return parley.Refuse(parley.InvalidArgument, "a mandate is for %d calls at most", MaxMandateCalls)
	}
	if t.Until != "" {
		end, err := endOf(t.Until, now)
		if err != nil {
			return err
		}
		e.Until = end
	}
	if len(t.Rules) == 0 || len(t.Rules) > maxMandateRules {
		return parley.Refuse(parley.InvalidArgument, "a mandate has 1 to %d rules, which say which calls it covers", maxMandateRules)
	}
	for i := range t.Rules {
		some, err := mandateRules(p, &t.Rules[i])
		if err != nil {
			return err
		}
		e.Rules = append(e.Rules, some...)
	}
	return addSums(e, t.Sums)
}

// mandateRules returns the rules that follow from what was said of a rule.
func mandateRules(p *parley.Permission, r *parley.MandateRule) ([]events.MandateRule, error) {
	kinds := 0
	for _, said := range []bool{r.Offer != "", r.Command != "", r.Files != "", len(r.Input) > 0} {
		if said {
			kinds++
		}
	}
	folder := r.Folder
	if folder == "" {
		folder = p.Folder
	}
	switch {
	case kinds > 1 || kinds == 0 && r.Tool == "":
		return nil, parley.Refuse(parley.InvalidArgument, "a rule of a mandate is an offer, a command, files, a call, or all calls of a tool")
	case r.Like && r.Command == "" || r.Read && r.Files == "":
		return nil, parley.Refuse(parley.InvalidArgument, "like is for a command, and read is for files")
	case r.Tool != "" && kinds > 0 && len(r.Input) == 0:
		return nil, parley.Refuse(parley.InvalidArgument, "a rule for commands or files is for all tools that run or use them").WithHint("leave out the tool")
	case r.Offer != "" && r.Folder != "":
		return nil, parley.Refuse(parley.InvalidArgument, "an offer says itself for which folder it is")
	}
	if err := rule.CheckFolder(folder); err != nil {
		return nil, err
	}
	if r.Tool != "" {
		if err := checkText("a tool's name", r.Tool, maxTitle); err != nil {
			return nil, err
		}
	}
	var covers events.Coverage
	var err error
	switch {
	case r.Offer != "":
		covers, err = Offered(p, r.Offer)
		return []events.MandateRule{{Tool: p.Tool, Covers: covers}}, err
	case r.Command != "":
		covers, err = rule.Line(folder, r.Command, r.Like)
	case r.Files != "":
		if covers, err = rule.Files(folder, r.Files); err == nil && r.Read {
			var each []events.MandateRule
			for _, tool := range rule.Readers() {
				each = append(each, events.MandateRule{Tool: tool, Covers: covers})
			}
			return each, nil
		}
	case len(r.Input) > 0:
		if err = CheckInput(r.Tool, string(r.Input)); err == nil {
			covers = rule.Read(&parley.Permission{Tool: r.Tool, Input: string(r.Input), Folder: folder}).Exact()
		}
		return []events.MandateRule{{Tool: r.Tool, Covers: covers}}, err
	default:
		covers, err = rule.Tool(folder, r.Tool)
	}
	return []events.MandateRule{{Tool: r.Tool, Covers: covers}}, err
}

// addSums adds sums to a mandate that has its rules.
func addSums(e *events.MandateGiven, sums []parley.MandateSum) error {
	if len(sums) > maxMandateSums {
		return parley.Refuse(parley.InvalidArgument, "a mandate has %d sums at most", maxMandateSums)
	}
	for _, sum := range sums {
		tools := map[string]bool{}
		for _, r := range e.Rules {
			if k := r.Covers.Kind; k == events.CoversTool || k == events.CoversCall {
				tools[r.Tool] = true
			}
		}
		if sum.Tool == "" && len(tools) == 1 {
			for sum.Tool = range tools {
			}
		}
		most, ok := rule.ParseAmount(sum.Most)
		switch {
		case !tools[sum.Tool]:
			return parley.Refuse(parley.InvalidArgument, "the sum of %s names no tool that a rule of the mandate is for", parley.Quoted(sum.Member, 80))
		case sum.Member == "":
			return parley.Refuse(parley.InvalidArgument, "a sum names a member of the input")
		case !ok:
			return parley.Refuse(parley.InvalidArgument, "%s is no plain number for the sum of %s", parley.Quoted(sum.Most, 40), parley.Quoted(sum.Member, 80)).WithHint("as in 100 or 12.50")
		}
		if err := checkText("the name of a member", sum.Member, maxTitle); err != nil {
			return err
		}
		e.Sums = append(e.Sums, events.MandateSum{Tool: sum.Tool, Member: sum.Member, Most: most})
	}
	return nil
}

// EndMandate ends a mandate. By has to be the agent's host. One that has ended stays as it is.
type EndMandate struct {
	Mandate capabilities.ID
	By      capabilities.ID
}

func (c EndMandate) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if c.By != s.Profile.Host {
		return nil, parley.Refuse(parley.NotPermitted, "only the agent's host ends its mandates")
	}
	switch m := s.Rules.mandate(c.Mandate); {
	case m == nil:
		return nil, NoMandate(c.Mandate)
	case m.How != "":
		return nil, nil
	}
	return []events.Event{&events.MandateEnded{Mandate: c.Mandate, By: c.By}}, nil
}

// NoMandate returns the error for a mandate that the agent does not have.
func NoMandate(id capabilities.ID) error {
	return parley.Refuse(parley.NotPermitted, "the agent has no mandate %s", id).WithHint("parley mandate ls lists them")
}

// callerNamed notes the session until the approval is settled.
func callerNamed(f fold, e *events.CallerNamed) error {
	if _, err := f.Mail.openForm(e.Form); err != nil {
		return err
	}
	if f.Rules.callers == nil {
		f.Rules.callers = map[capabilities.ID]capabilities.ID{}
	}
	f.Rules.callers[e.Form] = e.Session
	return nil
}

func mandateGiven(f fold, e *events.MandateGiven) error {
	l := &f.Rules
	if l.mandate(e.Mandate) != nil {
		return ErrNonsense
	}
	for i := 0; i < len(l.mandates) && len(l.mandates) >= keptMandates; {
		if l.mandates[i].EndOf(f.at) == "" {
			i++
			continue
		}
		l.mandates = slices.Delete(l.mandates, i, i+1)
	}
	m := &Mandate{MandateGiven: *e, Given: f.at}
	if len(e.Sums) > 0 {
		m.Spent = make([]int64, len(e.Sums))
	}
	l.mandates = append(l.mandates, m)
	return nil
}

// mandateCharged fails for a charge over what was given: none was decided.
func mandateCharged(f fold, e *events.MandateCharged) error {
	m := f.Rules.mandate(e.Mandate)
	if m == nil || m.How != "" || len(m.Charges) >= int(m.Calls) || len(e.Amounts) != 0 && len(e.Amounts) != len(m.Sums) {
		return ErrNonsense
	}
	for i, n := range e.Amounts {
		if n < 0 || n > m.Sums[i].Most-m.Spent[i] {
			return ErrNonsense
		}
	}
	charge := Charge{Version: f.Version}
	if e.Key != "" {
		charge.Call = keyOf(e.Key, e.Tool, e.Folder, e.Input)
	}
	m.Charges = append(m.Charges, charge)
	for i, n := range e.Amounts {
		m.Spent[i] += n
	}
	f.Runs.decidedCall()
	return nil
}

// endMandates ends the mandates of a session, or with a zero ID those of the agent itself.
func (l *Rules) endMandates(session capabilities.ID, at capabilities.Time) {
	for _, m := range l.mandates {
		if m.Session == session {
			m.end(parley.MandateSession, at)
		}
	}
}

// endAllMandates ends the mandates of the agent and of its sessions: it was stopped, or is no more.
func (l *Rules) endAllMandates(at capabilities.Time) {
	for _, m := range l.mandates {
		m.end(parley.MandateSession, at)
	}
}

func (m *Mandate) end(how parley.MandateEnd, at capabilities.Time) {
	if m.How == "" {
		m.How, m.Ended = how, at
	}
}

func mandateEnded(f fold, e *events.MandateEnded) error {
	m := f.Rules.mandate(e.Mandate)
	if m == nil {
		return ErrNonsense
	}
	m.end(parley.MandateRevoked, f.at)
	return nil
}
