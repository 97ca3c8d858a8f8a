package web

import (
	"context"
	"html/template"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// activity is a part of what an agent has done: the output of its program, its mail, its calls that were decided without a question, and the
// ends of its runs.
type activity struct {
	Moments []moment // oldest first
	Earlier string   // there are more before this position; "" if there are none
	Newest  bool     // it is the end
	Show    string   // what alone is shown: one of activityViews; "" for all
}

// activityViews are the parts of an activity that can be shown alone, with the kinds of moments in each.
var activityViews = []struct {
	name, words string
	kinds       []string
}{
	{"", "All", nil}, {"output", "Output", []string{"output", "errors", "said", "tool", "plan", "thought", "ended"}}, {"calls", "Calls", []string{"question", "call", "ruled"}},
	{"decisions", "Decisions", []string{"call", "form", "ruled"}}, {"mail", "Mail", []string{"message"}},
}

// only keeps the moments that a view shows. It refuses with INVALID_ARGUMENT a view that there is not.
func (a *activity) only(show string) error {
	for _, v := range activityViews {
		if v.name != show {
			continue
		}
		a.Show = show
		if v.kinds != nil {
			a.Moments = slices.DeleteFunc(a.Moments, func(m moment) bool { return !slices.Contains(v.kinds, m.Kind) })
		}
		return nil
	}
	return parley.Refuse(parley.InvalidArgument, "an activity has no part %.40q", show)
}

// Views returns the parts of the activity that can be shown alone.
func (d agentPage) Views() (all []viewLink) {
	for _, v := range activityViews {
		at := d.Page()
		if v.name != "" {
			at += "?show=" + v.name
		}
		all = append(all, viewLink{Text: v.words, Address: at, Current: v.name == d.Activity.Show})
	}
	return all
}

// Back returns the address of the newest part of the activity, and Before that of the part before this one.
func (d agentPage) Back() string {
	if d.Activity.Show == "" {
		return d.Page()
	}
	return d.Page() + "?show=" + d.Activity.Show
}

func (d agentPage) Before() string {
	q := url.Values{"before": {d.Activity.Earlier}}
	if d.Activity.Show != "" {
		q.Set("show", d.Activity.Show)
	}
	return d.Page() + "?" + q.Encode()
}

// Bounds of an activity.
const (
	maxPieces    = 200      // of output
	maxOutput    = 64 << 10 // bytes of output
	maxBlock     = 8 << 10  // bytes of output that are drawn as one
	maxMail      = 50       // messages
	maxRuled     = 100      // calls that were decided without a question
	maxRunEvents = 100      // of the log, in which the ends of runs are looked for
	tornLine     = 512      // bytes of a line without its beginning that are left out
	endOfOutput  = math.MaxUint64
)

// position is a place in an activity: before a piece of output and a message.
type position struct{ cursor, number uint64 }

func (p position) String() string {
	return strconv.FormatUint(p.cursor, 10) + "." + strconv.FormatUint(p.number, 10)
}

// parsePosition reads a position. It refuses with INVALID_ARGUMENT.
func parsePosition(text string) (p position, err error) {
	cursor, number, _ := strings.Cut(text, ".")
	if p.cursor, err = strconv.ParseUint(cursor, 10, 64); err == nil {
		p.number, err = strconv.ParseUint(number, 10, 64)
	}
	if err != nil {
		return p, parley.Refuse(parley.InvalidArgument, "%.40q is no position", text)
	}
	return p, nil
}

// source is a thing that happened: one of its members is set.
type source struct {
	at    capabilities.Time
	piece *view.OutputPiece
	mail  *view.Message
	ended *events.RunEnded
	ruled *view.RuledCall
	key   string
}

// activityOf returns the end of the activity of an agent or, if before is not "", the part before that position.
func (p *page) activityOf(l local, status view.AgentStatus, before string) (a activity, err error) {
	ctx := p.ctx()
	at := position{cursor: endOfOutput}
	if a.Newest = before == ""; !a.Newest {
		if at, err = parsePosition(before); err != nil {
			return a, err
		}
	}
	var part mailPart
	if a.Newest || at.number > 0 {
		if part, err = newest(ctx, l.agent, view.MessageFilter{All: true}, at.number, maxMail, listQuery{View: allMail}.keeps); err != nil {
			return a, err
		}
	}
	mail, moreMail := part.messages, part.before
	if a.Newest && len(mail) > 0 {
		at.number = mail[len(mail)-1].Number + 1
	}
	var pieces []view.OutputPiece
	var moreOutput bool
	if status.Runtime != "" {
		if pieces, moreOutput, err = outputBefore(ctx, l.agent, at.cursor); err != nil {
			return a, err
		}
	}
	all, next := merge(pieces, mail, moreOutput, moreMail > 0, at)
	if next != at && (moreOutput || moreMail > 0 || next.number > 0 && len(mail) > 0 && mail[0].Number < next.number) {
		a.Earlier = next.String()
	}
	if status.Runtime != "" && len(all) > 0 {
		if all, err = withEnds(ctx, l.agent, all, a.Newest); err != nil {
			return a, err
		}
	}
	a.Moments = p.moments(l, withRuled(p, l, all, a.Newest, a.Earlier == ""), status.Runtime == "acp")
	return a, nil
}

// outputBefore returns the last output before a cursor, and whether there is more before it.
func outputBefore(ctx context.Context, a api.Agent, cursor uint64) (pieces []view.OutputPiece, more bool, err error) {
	for step := 16; ; step = min(4*step, maxPieces) {
		if cursor == endOfOutput {
			pieces, _, err = a.Output().Latest(ctx, step)
		} else {
			pieces, err = a.Output().Before(ctx, cursor, step)
		}
		if err != nil {
			return nil, false, err
		}
		more = len(pieces) == step
		size, first := 0, len(pieces)
		for first > 0 && size+len(pieces[first-1].Text) <= maxOutput {
			first--
			size += len(pieces[first].Text)
		}
		if first > 0 || !more || step == maxPieces {
			return pieces[first:], more || first > 0, nil
		}
	}
}

// merge returns output and mail by time, and the position before them. Where one of them has more before, the other is
// cut to the same time.
func merge(pieces []view.OutputPiece, mail []view.Message, moreOutput, moreMail bool, at position) ([]source, position) {
	now := capabilities.At(time.Now())
	sent := make([]capabilities.Time, len(mail)) // a message of another node may have any date
	for i := range slices.Backward(mail) {
		if sent[i] = min(mail[i].Date, now); i+1 < len(mail) {
			sent[i] = min(sent[i], sent[i+1])
		}
	}
	start := capabilities.Time(0)
	if moreOutput && len(pieces) > 0 {
		start = pieces[0].At
	}
	if moreMail && len(mail) > 0 {
		start = max(start, sent[0])
	}
	var all []source
	for i := range mail {
		if sent[i] >= start {
			all = append(all, source{at: sent[i], mail: &mail[i], key: "m" + strconv.FormatUint(mail[i].Number, 10)})
			at.number = min(at.number, mail[i].Number)
		}
	}
	last := capabilities.Time(0)
	for i := range pieces {
		if last = max(last, pieces[i].At); last >= start {
			all = append(all, source{at: last, piece: &pieces[i], key: "o" + strconv.FormatUint(pieces[i].Cursor, 10)})
			at.cursor = min(at.cursor, pieces[i].Cursor)
		}
	}
	slices.SortStableFunc(all, func(a, b source) int { return int(a.at - b.at) })
	return all, at
}

// withEnds adds the ends of runs that were stopped or failed. It adds those that the end of the log has.
func withEnds(ctx context.Context, a api.Agent, all []source, newest bool) ([]source, error) {
	end, err := a.Version(ctx)
	if err != nil {
		return nil, err
	}
	first := end - min(end, maxRunEvents)
	log, err := a.Log(ctx, first, int(end-first))
	if err != nil {
		return nil, err
	}
	from, to := all[0].at, all[len(all)-1].at
	for _, entry := range log.Entries {
		ended, ok := entry.Payload.(*events.RunEnded)
		if ok && (ended.Error != "" || !ended.By.IsZero()) && entry.At >= from && (newest || entry.At <= to) {
			all = append(all, source{at: entry.At, ended: ended, key: "e" + strconv.FormatUint(entry.Version, 10)})
		}
	}
	slices.SortStableFunc(all, func(a, b source) int { return int(a.at - b.at) })
	return all, nil
}

// withRuled adds the calls that were decided without a question, in the time of the others: the newest of them. What the index lacks yet is
// left out.
func withRuled(p *page, l local, all []source, newest, oldest bool) []source {
	if !p.principal.IsHost() {
		return all // the index has them for who may look into the agent
	}
	q := view.RuledQuery{Limit: maxRuled}
	if len(all) > 0 {
		if !oldest {
			q.Since = all[0].at
		}
		if !newest {
			q.Before.At = all[len(all)-1].at + 1
		}
	} else if !newest {
		return all
	}
	ctx, cancel := context.WithTimeout(p.ctx(), maxTrial)
	defer cancel()
	calls, _, err := p.agent.Rules().Ruled(ctx, []capabilities.ID{l.agent.ID()}, q)
	if err != nil {
		return all // the index is behind, as after a start: History says so
	}
	for i := range calls {
		calls[i].Name = l.name
		all = append(all, source{at: calls[i].Place.At, ruled: &calls[i], key: "r" + strconv.FormatInt(calls[i].Place.ID, 10)})
	}
	slices.SortStableFunc(all, func(a, b source) int { return int(a.at - b.at) })
	return all
}

// moment is one thing of an activity as the page draws it.
type moment struct {
	Key    string // unique in the activity
	Kind   string // output, errors, said, tool, plan, thought, message, form, call, question, ruled, ended
	At     capabilities.Time
	HTML   template.HTML // of output, errors, said and a message
	Tool   toolLine
	Plan   []planEntry
	Text   string // of a thought and an end
	Card   *card  // of a message, a form, a call and a question
	Row    *row   // of a form, a call, a question and what was ruled
	Failed bool   // of an end

	reader capabilities.ID // of the page
	run    capabilities.ID
	text   strings.Builder // of output that is collected
}

// moments draws what happened.
func (p *page) moments(l local, all []source, isProse bool) []moment {
	d := &drawing{isProse: isProse, tools: map[string]int{}, plans: map[capabilities.ID]int{}}
	for i, s := range all {
		switch {
		case s.mail != nil:
			d.finish()
			if c := p.momentCard(l, *s.mail); !d.asks(c) {
				m := moment{Key: s.key, At: s.at, Kind: "message", reader: p.principal.ID()}
				if c.Status != "" {
					r := newRow(p.base, local{c.As, l.agent}, c.Message, p.site.readings.Of(&c.Message))
					m.Row = &r
				}
				d.add(m, c)
			}
		case s.ruled != nil:
			d.finish()
			r := ruledRow(p, &pastEntry{Message: messageOf(s.ruled), Ruled: s.ruled})
			d.done = append(d.done, moment{Key: s.key, At: s.at, Kind: "ruled", Row: &r})
		case s.ended != nil:
			d.finish()
			d.add(moment{Key: s.key, At: s.at, Kind: "ended", Text: p.endText(s.ended), Failed: s.ended.Error != ""}, nil)
		case s.piece.Stream == "notice":
			d.notice(s)
		default:
			d.output(s, i == 0)
		}
	}
	d.finish()
	return slices.DeleteFunc(d.done, func(m moment) bool { return m.Kind == "plan" && len(m.Plan) == 0 })
}

// momentCard returns the card of a message. A question to the reader is the reader's own, which can be answered.
func (p *page) momentCard(l local, e view.Message) *card {
	if e.Sent && e.Outcome == nil && e.Type != "message" && e.To == p.principal.ID() && l.name != "" {
		if own, err := p.agent.Message(p.ctx(), capabilities.FormID(e.MessageID)); err == nil && own.AnswerNeeded {
			c := p.card(p.ctx(), local{p.as, p.agent}, own, nil)
			return &c
		}
	}
	c := p.card(p.ctx(), l, e, nil)
	return &c
}

// endText returns the end of a run in words.
func (p *page) endText(e *events.RunEnded) string {
	switch {
	case e.By.IsZero() && e.Error == "interrupted":
		return "Interrupted: its node ended"
	case e.By.IsZero():
		return "Failed: " + e.Error
	case e.By == p.principal.ID():
		return "Stopped by you"
	}
	return "Stopped by " + view.ShortID(e.By)
}

// drawing collects moments.
type drawing struct {
	done    []moment
	isProse bool                    // the program writes Markdown
	open    bool                    // output is added to the last moment
	tools   map[string]int          // by run and call, the index of its line
	plans   map[capabilities.ID]int // by run, the index of its latest plan
}

// Icon returns the icon of the moment, and Tone that of its state.
func (m moment) Icon() string {
	if icon := map[string]string{"output": "term", "errors": "term", "said": "agents", "tool": "bolt", "plan": "plan", "thought": "dots", "message": "mail", "question": "wait", "ended": "stop"}[m.Kind]; icon != "" {
		return icon
	}
	if icon := m.Row.Verdict().Icon; icon != "" {
		return icon
	}
	return "ask" // it is open for another
}

func (m moment) Tone() string {
	switch {
	case m.Kind == "question":
		return "wait"
	case m.Failed:
		return "bad"
	case m.Row != nil:
		return m.Row.Verdict().Tone
	}
	return ""
}

// IsReader reports whether an agent is the one that reads the page.
func (m moment) IsReader(id capabilities.ID) bool { return id == m.reader }

// IsElsewhere reports whether the question is decided on its own page alone: a call of high risk.
func (m moment) IsElsewhere() bool { return m.Row.IsHigh() }

// asks reports whether a moment before is an open ask identical to a card, which it decides too.
func (d *drawing) asks(c *card) bool {
	return slices.ContainsFunc(d.done, func(m moment) bool { return m.Card != nil && m.Card.AsksSame(&c.Message) })
}

// Keep returns the state of a question, which stays in the page while that is the same; "" for what may be drawn again.
func (m moment) Keep() string {
	switch {
	case m.Card == nil || !m.Card.Waits():
		return ""
	case m.Card.Approval == nil:
		return string(m.Card.Status)
	}
	return string(m.Card.Status) + " " + strconv.Itoa(m.Card.Approval.Many())
}

// add adds a moment.
func (d *drawing) add(m moment, c *card) {
	if c != nil {
		m.Card = c
		switch {
		case c.Waits():
			m.Kind = "question"
		case c.IsApproval():
			m.Kind = "call"
		case c.Status != "":
			m.Kind = "form"
		default:
			text := c.Text
			if c.Subject != "" {
				text = c.Subject + "\n\n" + text
			}
			if m.HTML = asTyped(text); c.Sent {
				m.HTML = markdown(text)
			}
		}
	}
	d.done = append(d.done, m)
}

// output adds a piece of output to the moment before, or begins another one.
func (d *drawing) output(s source, isFirst bool) {
	kind, text := "output", s.piece.Text
	if s.piece.Stream == "errors" {
		kind = "errors"
	}
	if d.open {
		last := &d.done[len(d.done)-1]
		full := last.text.Len() >= maxBlock && strings.HasSuffix(last.text.String(), "\n") || last.text.Len()+len(text) > 2*maxBlock
		if last.Kind != kind || last.run != s.piece.Run || full {
			d.finish()
		}
	}
	if !d.open {
		if torn := strings.IndexByte(text, '\n'); isFirst && torn >= 0 && torn < tornLine && torn+1 < len(text) {
			text = text[torn+1:]
		}
		d.done = append(d.done, moment{Key: s.key, At: s.at, Kind: kind, run: s.piece.Run})
		d.open = true
	}
	d.done[len(d.done)-1].text.WriteString(text)
}

// finish draws the output that was collected.
func (d *drawing) finish() {
	if !d.open {
		return
	}
	d.open = false
	m := &d.done[len(d.done)-1]
	text := strings.TrimRight(m.text.String(), "\n")
	m.text = strings.Builder{}
	switch {
	case strings.TrimSpace(text) == "":
		d.done = d.done[:len(d.done)-1]
	case d.isProse && m.Kind == "output" && !strings.ContainsAny(text, "\x1b\r"):
		m.Kind, m.HTML = "said", markdown(text)
	default:
		m.HTML = terminalText(text)
	}
}
