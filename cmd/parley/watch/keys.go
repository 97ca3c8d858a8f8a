package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox"
	"parley/mailbox/form"
)

// prompt is a line that the person types, or a choice by number.
type prompt struct {
	about   view.Message // the message as it was shown
	label   string
	text    string
	secret  bool
	choices []parley.Offer // rules; nil for free text
	says    string         // what enter does, in a sentence above the line; "" for nothing
	past    []string       // what was decided of the calls that each covers, in words; nil until that is known
	next    func(text string) tea.Cmd
}

// press handles a key.
func (m *model) press(key tea.KeyPressMsg) tea.Cmd {
	if key.String() == "ctrl+c" {
		return tea.Quit
	}
	if m.prompt != nil {
		return m.typeKey(key)
	}
	if m.helps {
		m.helps = false
		return nil
	}
	if key.IsRepeat && strings.ContainsAny(key.String(), "aAcdemrsvx") {
		return nil // a key acts once for each press
	}
	if key.String() != "a" && key.String() != "c" {
		m.armed = armed{}
	}
	switch key.String() {
	case "q":
		return tea.Quit
	case "?":
		m.helps = true
	case "j", "down":
		return m.move(1)
	case "k", "up":
		return m.move(-1)
	case "g", "home":
		return m.move(-len(m.order))
	case "G", "end":
		return m.move(len(m.order))
	case "enter", "tab":
		m.whole = !m.whole
		return m.read()
	case "esc":
		escape(m)
	case "space", "pgdown":
		m.scroll += m.itemHeight() - 1
	case "b", "pgup":
		m.scroll -= m.itemHeight() - 1
	case "x":
		m.mark()
	case "J":
		return markAnd(m, 1)
	case "K":
		return markAnd(m, -1)
	case "f":
		m.only = (m.only + 1) % filters
		return refilter(m)
	case "/":
		return m.ask(prompt{about: view.Message{Number: noNumber}, label: "Search for", text: m.query, next: func(text string) tea.Cmd {
			m.query = strings.ToLower(strings.TrimSpace(text))
			return refilter(m)
		}})
	case "a", "A", "c", "d", "e", "m", "r", "s":
		return m.act(key.String())
	}
	return nil
}

// noNumber is that of what is about no message.
const noNumber = ^uint64(0)

// escape goes one step back.
func escape(m *model) {
	switch {
	case m.edited != nil:
		m.edited, m.state = nil, "the changes were dropped"
	case m.whole:
		m.whole = false
	case len(m.marked) > 0:
		clear(m.marked)
	case m.query != "" || m.only != everything:
		m.query, m.only = "", everything
		refilter(m)
	}
}

// refilter makes the rows again, and selects the first.
func refilter(m *model) tea.Cmd {
	clear(m.marked) // nobody is to find selected what is not shown
	m.arrange(m.now(), true)
	if len(m.order) == 0 {
		return nil
	}
	m.choose(m.order[0])
	return m.hold()
}

// markAnd selects the call that is open, and goes on to the next that waits.
func markAnd(m *model, by int) tea.Cmd {
	if e := m.selected(); e != nil && e.AnswerNeeded && e.Type == string(events.Approval) {
		m.marked[e.Number] = true
	}
	if at := slices.Index(m.order, m.chosen) + by; at < 0 || at >= len(m.order) || !waits(m.items[m.order[at]]) {
		return nil
	}
	return m.move(by)
}

// act begins what a key does with the selected message.
func (m *model) act(key string) tea.Cmd {
	e := m.selected()
	switch {
	case e == nil:
		return nil
	case m.away != "":
		m.state = "nothing is decided while the node is away"
		return nil
	case m.busy:
		return nil
	case m.held != 0:
		return m.hold()
	case m.edited != nil:
		return actEdited(m, key)
	case e.Type == "message" && key == "r":
		return m.ask(prompt{about: *e, label: "Reply", next: func(text string) tea.Cmd { return m.reply(*e, text) }})
	case key == "s":
		return m.snooze(*e)
	case key == "c":
		return claim(m, *e)
	case len(m.marks()) > 0 && key != "r" && key != "e":
		return m.decide(*e, key)
	case !e.AnswerNeeded:
		m.state = "this does not wait for an answer"
		return nil
	case e.Type == string(events.Approval) && key == "e":
		return edit(m, *e)
	case e.Type == string(events.Approval):
		return m.decide(*e, key)
	case m.refusesSecond([]view.Message{*e}):
		return nil
	case key == "d":
		return m.ask(prompt{about: *e, label: "Decline, with the reason", next: func(text string) tea.Cmd { return m.end(*e, text) }})
	case key == "a" && e.Type == string(events.Request):
		return m.ask(prompt{about: *e, label: "Give what you hold under the name", next: func(text string) tea.Cmd { return m.resolve(*e, text) }})
	case key == "a":
		return m.askField(*e, 0, nil)
	case key == "r":
		return askBack(m, []view.Message{*e})
	}
	m.state = "a answers this, r asks back, d declines it"
	return nil
}

// actEdited does what a key does with a call that the person has edited.
func actEdited(m *model, key string) tea.Cmd {
	c := m.edited
	switch {
	case key == "e":
		m.edited = nil
		return edit(m, c.asked)
	case key != "a":
		m.state = "a allows the edited command, esc drops the changes"
		return nil
	case !m.seen[callOf(c.call)]:
		return m.showMore(&c.call)
	}
	if cmd, wait := armFirst(m, []view.Message{c.call}); wait {
		return cmd
	}
	return allowEdited(m, c)
}

// isArmed reports whether the first step was made for some calls, and is not too long ago.
func isArmed(m *model, all []view.Message) bool {
	return m.armed.calls != "" && m.armed.calls == keyOf(all) && m.now().Before(m.armed.until)
}

func keyOf(all []view.Message) string {
	var b strings.Builder
	for _, e := range all {
		b.WriteString(callOf(e) + " ")
	}
	return b.String()
}

// armFirst makes the first of two steps that allow what is of high risk: it says what happens. It reports whether a second
// press is needed. That counts after a moment.
func armFirst(m *model, all []view.Message) (cmd tea.Cmd, wait bool) {
	mark, high := m.worst(all)
	if !high {
		return nil, false
	}
	if isArmed(m, all) {
		m.armed = armed{}
		return nil, false
	}
	m.armed = armed{keyOf(all), m.now().Add(armedFor)}
	m.state = m.screen.Paint(terminal.Wrong, terminal.Visible(mark)+": a again allows it")
	return m.hold(), true
}

// refusesSecond reports whether the person has voted on one of some messages as another agent: one person has one vote. It says so.
func (m *model) refusesSecond(all []view.Message) bool {
	for i := range all {
		if e := &all[i]; e.IsSecondVote() {
			m.state = fmt.Sprintf("%d: %s", e.Number, secondWords(e))
			return true
		}
	}
	return false
}

// secondWords says as whom the person has voted.
func secondWords(e *view.Message) string {
	return fmt.Sprintf("you have voted as %s, and one person has one vote", show.Party(e.Votes.VotedAs.Name, e.Votes.VotedAs.ID))
}

// snooze asks for a time, and puts a message off until then.
func (m *model) snooze(e view.Message) tea.Cmd {
	if e.SnoozedUntil == 0 && !e.AnswerNeeded && e.Type != "message" {
		m.state = "this does not wait"
		return nil
	}
	return m.ask(prompt{about: e, label: "Snooze until (2h, 14:00, tomorrow, off)", next: func(text string) tea.Cmd {
		until, err := terminal.Later(strings.TrimSpace(text), time.Now())
		if err != nil {
			m.state = terminal.Visible(err.Error())
			return nil
		}
		r, said := api.SnoozeRequest{FormRef: refTo(e.MessageID)}, "back"
		if !until.IsZero() {
			r.Until, said = capabilities.At(until), "snoozed until "+m.screen.Moment(until, until.String())
		}
		return m.do(e, said, api.Snooze.With(r))
	}})
}

// claim has the agent be on a form, or no longer. Taking it over from another takes two steps.
func claim(m *model, e view.Message) tea.Cmd {
	r, said := api.ClaimFormRequest{FormRef: refTo(e.MessageID)}, "you are on it, and the others see that"
	step := armed{"claim " + callOf(e), m.now().Add(armedFor)}
	switch e.ClaimVerb() {
	case "":
		if m.state = "nobody else can answer this"; !e.AnswerNeeded {
			m.state = "this does not wait for an answer"
		}
		return nil
	case "release":
		r.Release, said = true, "you are not on it any more"
	case "take-over":
		if m.armed.calls != step.calls || m.now().After(m.armed.until) {
			m.armed = step
			m.state = show.Claimed(e, m.screen) + ": c again takes it over"
			return m.hold()
		}
		r.TakeOver = true
	}
	m.armed = armed{}
	return m.do(e, said, api.ClaimForm.With(r))
}

// read has the node mark a message as read that is shown whole. It stays unread if that fails.
func (m *model) read() tea.Cmd {
	e := m.selected()
	if e == nil || !m.whole || !e.Unread {
		return nil
	}
	return func() tea.Msg {
		_ = api.MarkRead.Run(m.ctx, m.node, api.MarkReadRequest{Numbers: []uint64{e.Number}})
		return nil
	}
}

// waits reports whether a message waits for the agent's answer now.
func waits(e *view.Message) bool { return e.AnswerNeeded && e.SnoozedUntil == 0 }

// mark selects the call that is open, or no longer.
func (m *model) mark() {
	e := m.selected()
	switch {
	case e == nil:
		return
	case !e.AnswerNeeded || e.Type != string(events.Approval):
		m.state = "only a call that waits can be selected"
		return
	case m.marked[e.Number]:
		delete(m.marked, e.Number)
	default:
		m.marked[e.Number] = true
	}
}

// marks returns the marked rows on which keys act. There are none while a message has the screen to itself: keys are for
// what is shown.
func (m *model) marks() []uint64 {
	if m.whole {
		return nil
	}
	return slices.Sorted(maps.Keys(m.marked))
}

// targets returns the calls that a key decides: those of the marked rows, or of the row of a call, as they were drawn.
func (m *model) targets(e view.Message) []view.Message {
	rows := m.marks()
	if len(rows) == 0 {
		return m.callsOf(e.Number)
	}
	var all []view.Message
	for _, row := range rows {
		all = append(all, m.callsOf(row)...)
	}
	return all
}

// callsOf returns the calls of a row that wait, as they were drawn.
func (m *model) callsOf(row uint64) (all []view.Message) {
	numbers := m.shown[row]
	if len(numbers) == 0 {
		numbers = []uint64{row}
	}
	for _, n := range numbers {
		if o := m.items[n]; o != nil && o.AnswerNeeded && o.Type == string(events.Approval) {
			all = append(all, *o)
		}
	}
	return all
}

// callOf returns the key of what is shown of a call.
func callOf(e view.Message) string { return cmp.Or(e.Digest, e.MessageID.String()) }

// unseen returns the first of some calls whose end was not on the screen yet; nil if that of all was.
func (m *model) unseen(calls []view.Message) *view.Message {
	for i := range calls {
		if !m.seen[callOf(calls[i])] {
			return &calls[i]
		}
	}
	return nil
}

// showMore shows the next lines of a call in place of allowing it. No key allows what has just come into view.
func (m *model) showMore(e *view.Message) tea.Cmd {
	if now := m.selected(); now == nil || m.rowOf(now.Number) != m.rowOf(e.Number) {
		m.choose(m.rowOf(e.Number))
		return m.hold()
	}
	m.scroll += m.itemHeight() - 1
	if m.scroll+m.itemHeight() >= len(m.wrapped(*e)) {
		return m.hold()
	}
	return nil
}

// decide begins a decision on a call, or on all that are marked.
func (m *model) decide(e view.Message, key string) tea.Cmd {
	targets := m.targets(e)
	if len(targets) == 0 {
		m.marked = map[uint64]bool{}
		return nil
	}
	if _, named := m.decides(); !named {
		m.state = "the selected calls are more than this screen names: x takes one away"
		return nil
	}
	many := ""
	if len(targets) > 1 {
		many = fmt.Sprintf(" %d calls", len(targets))
	}
	if not := slices.IndexFunc(targets, func(o view.Message) bool {
		return key == "a" && !o.Takes(mailbox.Once) || (key == "A" || key == "m") && !o.Takes(mailbox.Always)
	}); not >= 0 {
		m.state = fmt.Sprintf("%d does not take that: it can be denied, or is decided by several", targets[not].Number)
		return nil
	}
	if m.refusesSecond(targets) {
		return nil
	}
	if unseen := m.unseen(targets); unseen != nil && key != "d" && key != "r" {
		return m.showMore(unseen)
	}
	switch key {
	case "a":
		if cmd, wait := armFirst(m, targets); wait {
			return cmd
		}
		return m.settleAll(targets, "✓ Allowed once", parley.Decision{Decision: mailbox.Once})
	case "A":
		if mark, high := m.worst(targets); high {
			m.state = terminal.Visible(mark) + ": no rule is made for a call of high risk. a allows it once"
			return nil
		}
		if slices.ContainsFunc(targets, func(o view.Message) bool { return !o.AsksSame(&targets[0]) }) {
			m.state = "a rule is for one call: x takes one away, esc all"
			return nil
		}
		m.ask(prompt{about: targets[0], label: "Always allow which? Give the number", choices: mailbox.OffersOf(targets[0].Permission), next: func(text string) tea.Cmd {
			return m.always(targets, text)
		}})
		return tryRules(m, targets[0].MessageID)
	case "m":
		return askMandate(m, targets)
	case "d":
		return m.ask(prompt{about: targets[0], label: "Deny" + many + ", with the reason", next: func(text string) tea.Cmd {
			said := "✕ Denied"
			if text != "" {
				said += " · " + terminal.Visible(text)
			}
			return m.settleAll(targets, said, parley.Decision{Decision: mailbox.Deny, Reason: text})
		}})
	}
	if key == "r" {
		return askBack(m, targets)
	}
	m.state = "a allows this, A always, m within limits, d denies it"
	return nil
}

// askBack asks who asks the forms. Where a hook holds a call, it denies that with the question; all else stays open.
func askBack(m *model, targets []view.Message) tea.Cmd {
	label, said := "Ask", "asked: "
	if slices.ContainsFunc(targets, func(e view.Message) bool { return e.Held }) {
		label, said = "Deny and ask", "✕ Denied, and asked: "
	}
	if len(targets) > 1 {
		label += fmt.Sprintf(" about %d calls", len(targets))
	}
	return m.ask(prompt{about: targets[0], label: label, next: func(text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			m.state = "nothing was asked, and nothing decided"
			return nil
		}
		m.busy, m.called = true, m.now()
		return func() tea.Msg {
			var d done
			for _, e := range targets {
				if d.err = api.Reply.Run(m.ctx, m.node, api.ReplyRequest{FormRef: refTo(e.MessageID), Post: parley.Post{Text: text}}); d.err != nil {
					break
				}
				d.numbers = append(d.numbers, e.Number)
			}
			d.said = saidOf(targets, make([]*view.Outcome, len(targets)), said+terminal.Visible(text))
			return d
		}
	}})
}

// tried says what was decided of the calls that the rules of a form cover.
type tried struct {
	form  capabilities.ID
	trial view.Trial
}

// tryRules tries the rules that an approval offers on the past. Where that fails nothing is said of it.
func tryRules(m *model, form capabilities.ID) tea.Cmd {
	return func() tea.Msg {
		trial, err := api.TryRules.Do(m.ctx, m.node, api.TryRulesRequest{FormRef: refTo(form)})
		if err != nil {
			return nil
		}
		return tried{form, trial}
	}
}

// tell adds to the choice of a rule what was decided of the calls that each covers, if the choice is still open.
func (t tried) tell(p *prompt) {
	if p == nil || p.about.MessageID != t.form {
		return
	}
	p.past = make([]string, len(p.choices))
	for i, c := range p.choices {
		for _, r := range t.trial.Rules {
			if r.Offer == c.ID && r.Covered > 0 {
				p.past[i] = fmt.Sprintf(" (%d past: %d allowed, %d denied)", r.Covered, r.Allowed, r.Denied)
			}
		}
	}
}

// always allows identical calls, and those to come by the rule with a number.
func (m *model) always(targets []view.Message, number string) tea.Cmd {
	offers := mailbox.OffersOf(targets[0].Permission)
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(offers) {
		m.state = "nothing was decided: that is no number of a rule"
		return nil
	}
	d := parley.Decision{Decision: mailbox.Always}
	if n > 1 {
		d.Rule = offers[n-1].ID
	}
	return m.settleAll(targets, "✓ Always: "+terminal.Visible(offers[n-1].Words), d)
}

// settleAll decides in one request on the calls that were shown, each by its digest. Of identical ones, the first alone
// makes a rule.
func (m *model) settleAll(targets []view.Message, said string, how parley.Decision) tea.Cmd {
	m.busy, m.called = true, m.now()
	targets = targets[:min(len(targets), api.MaxDecisions)]
	req := api.DecideManyRequest{}
	d := done{}
	for i, e := range targets {
		how.Form, how.Digest = e.MessageID, e.Digest
		if i > 0 && how.Decision == mailbox.Always {
			how.Decision, how.Rule = mailbox.Once, ""
		}
		req.Decisions = append(req.Decisions, how)
		d.numbers = append(d.numbers, e.Number)
	}
	return func() tea.Msg {
		got, err := api.DecideMany.Do(m.ctx, m.node, req)
		d.err = err
		outcomes := make([]*view.Outcome, len(targets))
		for i, r := range got.Results {
			if outcomes[i] = r.Outcome; r.Error == nil {
				d.settled = append(d.settled, d.numbers[i])
			} else if d.err == nil {
				d.err = r.Error
			}
		}
		d.said = saidOf(targets, outcomes, said)
		return d
	}
}

// saidOf says what came of a decision on messages: what is said of one that is settled, and what of a vote or of an answer that has not
// reached its home. Those of which the same is said are named together.
func saidOf(targets []view.Message, outcomes []*view.Outcome, settled string) string {
	var said []string
	numbers := map[string][]string{}
	for i, e := range targets {
		words := settled
		switch o := outcomes[i]; {
		case o == nil:
		case o.Status == view.StatusVoted && o.Votes != nil:
			words = "◐ Voted · " + show.Vote(e, *o.Votes)
		case o.Status == view.StatusAnswering:
			words = "◌ Kept until its node can be reached"
		}
		if numbers[words] == nil {
			said = append(said, words)
		}
		numbers[words] = append(numbers[words], strconv.FormatUint(e.Number, 10))
	}
	for i, words := range said {
		said[i] = strings.Join(numbers[words], ", ") + ": " + words
	}
	return strings.Join(said, "; ")
}

// askField asks for a field of a form, and after the last sends the answer.
func (m *model) askField(e view.Message, n int, texts []events.FieldText) tea.Cmd {
	if n == len(e.Fields) {
		return m.answer(e, "answered", parley.Answer{Texts: texts})
	}
	f := e.Fields[n]
	label := terminal.Visible(f.Name)
	if f.Label != "" {
		label = terminal.Visible(f.Label)
	}
	var values []string
	for _, o := range f.Options {
		values = append(values, terminal.Visible(o.Value))
	}
	asks := form.ControlOf(&f)
	several := asks == form.Choices
	switch {
	case several:
		label += " (" + strings.Join(values, ", ") + "; several with commas)"
	case len(values) > 0:
		label += " (" + strings.Join(values, ", ") + ")"
	case asks == form.YesNo:
		label += " (yes, no)"
	}
	if f.Required {
		label += " *"
	}
	return m.ask(prompt{about: e, label: label, secret: asks == form.Secret, next: func(text string) tea.Cmd {
		given := []string{text}
		if several {
			given = strings.Split(text, ",")
		}
		for _, t := range given {
			if t = strings.TrimSpace(t); t != "" || f.Required {
				texts = append(texts, events.FieldText{Name: f.Name, Text: t})
			}
		}
		return m.askField(e, n+1, texts)
	}})
}

func (m *model) ask(p prompt) tea.Cmd {
	m.prompt, m.state = &p, ""
	return nil
}

// typeKey handles a key while a line is typed.
func (m *model) typeKey(key tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch key.String() {
	case "esc":
		m.prompt, m.state = nil, "nothing was sent"
	case "enter":
		m.prompt = nil
		if m.away != "" {
			m.state = "nothing is decided while the node is away"
			return nil
		}
		return p.next(p.text)
	case "backspace":
		p.text = strings.TrimSuffix(p.text, terminal.LastCluster(p.text))
	case "ctrl+u":
		p.text = ""
	default:
		p.text += key.Text
	}
	return nil
}

// do does something with a message that does not settle it.
func (m *model) do(e view.Message, said string, act api.Act) tea.Cmd {
	m.busy, m.called = true, m.now()
	return func() tea.Msg {
		err := act(m.ctx, m.node)
		return done{numbers: []uint64{e.Number}, err: err, said: saidOf([]view.Message{e}, []*view.Outcome{nil}, said)}
	}
}

// settle settles a form by an operation.
func settle[Req any](m *model, e view.Message, said string, by api.Op[Req, view.Outcome], r Req) tea.Cmd {
	m.busy, m.called = true, m.now()
	return func() tea.Msg {
		d := done{numbers: []uint64{e.Number}}
		o, err := by.Do(m.ctx, m.node, r)
		if d.err = err; err == nil {
			d.settled, d.said = d.numbers, saidOf([]view.Message{e}, []*view.Outcome{&o}, said)
		}
		return d
	}
}

// answer answers the form that was shown.
func (m *model) answer(e view.Message, said string, a parley.Answer) tea.Cmd {
	a.Digest, a.Revision = e.Digest, e.AnswerRevision()
	return settle(m, e, said, api.RespondForm, api.RespondFormRequest{FormRef: refTo(e.MessageID), Answer: a})
}

func (m *model) end(e view.Message, reason string) tea.Cmd {
	by := api.DeclineForm
	if e.Type == string(events.Request) {
		by = api.Reject
	}
	return settle(m, e, "declined", by, api.DeclineRequest{FormRef: refTo(e.MessageID), Revision: e.AnswerRevision(), Reason: reason})
}

func (m *model) resolve(e view.Message, name string) tea.Cmd {
	return settle(m, e, "answered", api.Resolve, api.ResolveRequest{FormRef: refTo(e.MessageID), Name: name})
}

func (m *model) reply(e view.Message, text string) tea.Cmd {
	if text == "" {
		m.state = "nothing was sent"
		return nil
	}
	return m.do(e, "replied", api.Reply.With(api.ReplyRequest{FormRef: refTo(e.MessageID), Post: parley.Post{Text: text}}))
}

func refTo(id capabilities.ID) api.FormRef { return api.RefTo(id.String()) }
