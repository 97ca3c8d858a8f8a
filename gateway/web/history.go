package web

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/internal/fair"
	"parley/mailbox"
)

// pastFilter picks what History shows. An empty member is any.
type pastFilter struct {
	Verdict string // allowed or denied; or how it ended: answered, declined, cancelled, expired or superseded
	Decider string // the ID of who decided, or byRules
	Tool    string // of a call
	Days    string // asked in so many last days
}

// verdicts are what a decision may be filtered by, with the words for it.
var verdicts = []choice{
	{Value: "allowed", Label: "Allowed"}, {Value: "denied", Label: "Denied"}, {Value: "answered", Label: "Answered"}, {Value: "declined", Label: "Declined"},
	{Value: "cancelled", Label: "Cancelled"}, {Value: "expired", Label: "Expired"},
}

// periods are the times that History offers, in days.
var periods = []choice{{Value: "1", Label: "Last 24 hours"}, {Value: "7", Label: "Last 7 days"}, {Value: "30", Label: "Last 30 days"}, {Value: "90", Label: "Last 90 days"}}

// ended are the ways in which a form may have ended.
var ended = []string{string(view.StatusAnswered), string(view.StatusDeclined), string(view.StatusCancelled), string(view.StatusExpired), string(view.StatusSuperseded)}

// maxPeriod bounds the days of a period: a hundred years.
const maxPeriod = 36_525

// Periods returns the times from which the list may be.
func (f pastFilter) Periods() []choice {
	if f.Days != "" && labelOf(periods, f.Days) == "" {
		return append(periods[:len(periods):len(periods)], choice{Value: f.Days, Label: "Last " + f.Days + " days"})
	}
	return periods
}

func chosen(all []choice, value string) []choice {
	all = append([]choice(nil), all...)
	for i := range all {
		all[i].Chosen = all[i].Value == value
	}
	return all
}

func labelOf(all []choice, value string) string {
	for _, c := range all {
		if c.Value == value {
			return c.Label
		}
	}
	return ""
}

// Kept returns the parts of the list's address without one, for the form that sets that: each as its name and value.
func (l listQuery) Kept(without string) map[string]string {
	parts := l.parts()
	delete(parts, without)
	maps.DeleteFunc(parts, func(_, value string) bool { return value == "" })
	return parts
}

// search returns the search for what the list shows before a number; 0 is the end.
func (l listQuery) search(before uint64, limit int) (api.SearchRequest, error) {
	r := api.SearchRequest{Acting: api.Acting{As: l.As}, From: l.Agent, DecidedBy: l.Decider, Before: before, Limit: limit}
	r.Text, r.Tool, r.Outcomes, r.Order = beginnings(l.Text), l.Tool, ended, "ended"
	if l.Kind != "" {
		r.Types = []string{l.Kind}
	}
	switch l.Verdict {
	case "":
	case "allowed", "denied":
		r.Verdict = l.Verdict
	default:
		r.Outcomes = []string{l.Verdict}
	}
	if l.Days != "" {
		days, err := strconv.Atoi(l.Days)
		if err != nil || days < 1 || days > maxPeriod {
			return r, parley.Refuse(parley.InvalidArgument, "%.40q is no number of days", l.Days)
		}
		r.Since = capabilities.At(time.Now().AddDate(0, 0, -days))
	}
	return r, nil
}

// beginnings returns the words of a search, each as the beginning of a word. What has quotation marks or a * is left as it was typed.
func beginnings(text string) string {
	if strings.ContainsAny(text, `"*`) {
		return text
	}
	words := strings.Fields(text)
	for i := range words {
		words[i] += "*"
	}
	return strings.Join(words, " ")
}

// byRules stands for who decided without a question: a standing rule, a mandate or the policy of an agent.
const byRules = "rules"

// hasMessages reports whether the list may have messages, and hasRuled whether it may have calls that were decided without a question.
func (l listQuery) hasMessages() bool { return l.Decider != byRules }

func (l listQuery) hasRuled() bool {
	decided := l.Verdict == "" || l.Verdict == "allowed" || l.Verdict == "denied"
	return decided && l.As == "" && (l.Kind == "" || l.Kind == "approval") && (l.Decider == "" || l.Decider == byRules)
}

// pastEntry is a line of History: a message that has ended, or a call that was decided without a question.
type pastEntry struct {
	view.Message
	Ruled *view.RuledCall // nil for a message
}

// pastPlace is a place in History: before the end of the message of a number, and before a call that was decided without a question. The zero place
// is the end.
type pastPlace struct {
	number uint64
	ruled  view.RuledPlace
}

func (at pastPlace) String() string {
	if at.ruled == (view.RuledPlace{}) {
		return strconv.FormatUint(at.number, 10)
	}
	return fmt.Sprintf("%d.%d.%d", at.number, at.ruled.At, at.ruled.ID)
}

// placeOf reads a place of History; "" is the end. It refuses with INVALID_ARGUMENT.
func placeOf(text string) (at pastPlace, err error) {
	number, ruled, merged := strings.Cut(text, ".")
	if !merged {
		at.number, err = endOf(text)
		return at, err
	}
	moment, id, _ := strings.Cut(ruled, ".")
	wrong := parley.Refuse(parley.InvalidArgument, "%.40q is no place of a list", text)
	if at.number, err = strconv.ParseUint(number, 10, 64); err != nil {
		return at, wrong
	}
	since, err := strconv.ParseInt(moment, 10, 64)
	if err != nil {
		return at, wrong
	}
	at.ruled.At = capabilities.Time(since)
	if at.ruled.ID, err = strconv.ParseInt(id, 10, 64); err != nil {
		return at, wrong
	}
	return at, nil
}

// pastPart is a part of History, newest first.
type pastPart struct {
	entries []pastEntry
	next    pastPlace // of the next part
	more    bool      // there may be one
	behind  uint64    // events that are not looked at yet
}

// readPast returns the part of History before a place, at most so many entries: messages and calls in the order
// of their ends. Of the same moment a call is the later one: the decision that made its rule came before it.
func readPast(ctx context.Context, p *page, q listQuery, at pastPlace, limit int) (part pastPart, err error) {
	var found view.Found
	if q.hasMessages() {
		r, err := q.search(at.number, limit)
		if err != nil {
			return part, err
		}
		if found, err = api.Search.Do(ctx, p, r); err != nil {
			return part, err
		}
	}
	var ruled []view.RuledCall
	if q.hasRuled() {
		if ruled, part.behind, err = readRuled(ctx, p, q, at, limit); err != nil {
			return part, err
		}
	}
	part.next, part.behind = at, part.behind+found.Behind
	part.more = found.Next > 0 || len(ruled) == limit
	messages, calls := found.Messages, ruled
	for len(part.entries) < limit && len(messages)+len(calls) > 0 {
		if len(messages) == 0 || len(calls) > 0 && calls[0].Place.At >= endedAt(&messages[0]) {
			part.entries = append(part.entries, pastEntry{Message: messageOf(&calls[0]), Ruled: &calls[0]})
			part.next.ruled, calls = calls[0].Place, calls[1:]
			continue
		}
		part.entries = append(part.entries, pastEntry{Message: messages[0]})
		part.next.number, messages = messages[0].Number, messages[1:]
	}
	part.more = part.more || len(messages)+len(calls) > 0
	return part, nil
}

// endedAt returns when a message has ended, by which History is sorted.
func endedAt(m *view.Message) capabilities.Time {
	if m.Outcome == nil {
		return m.Date // it is in an archive elsewhere
	}
	return m.Outcome.At
}

// readRuled returns calls of the reader's agents that were decided without a question, before a place. Where that names a message alone, it
// is before the end of that.
func readRuled(ctx context.Context, p *page, q listQuery, at pastPlace, limit int) ([]view.RuledCall, uint64, error) {
	r, err := q.search(0, limit)
	if err != nil {
		return nil, 0, err
	}
	if at.ruled == (view.RuledPlace{}) && at.number > 0 {
		if m, err := p.agent.Message(ctx, capabilities.FormNumber(at.number)); err == nil {
			at.ruled.At = endedAt(&m)
		}
	}
	agents, who, err := agentsIn(p, q)
	if err != nil {
		return nil, 0, err
	}
	calls, behind, err := p.agent.Rules().Ruled(ctx, agents, view.RuledQuery{Text: r.Text, Tool: q.Tool, Verdict: q.Verdict, Since: r.Since, Before: at.ruled, Limit: limit})
	for i := range calls {
		for _, l := range who {
			if l.agent.ID() == calls[i].Agent {
				calls[i].Name = l.name
			}
		}
	}
	return calls, behind, err
}

// agentsIn returns the reader's agents whose calls a list of History may have, and all whose mail the reader has.
func agentsIn(p *page, q listQuery) (agents []capabilities.ID, who []local, err error) {
	who, err = p.site.locals(p.ctx(), p.principal)
	for _, l := range who {
		if id := l.agent.ID(); q.Agent == "" || id.String() == q.Agent {
			agents = append(agents, id)
		}
	}
	return agents, who, err
}

// messageOf returns a call that was decided without a question as the message that it would have been.
func messageOf(c *view.RuledCall) view.Message {
	return view.Message{
		Type: string(events.Approval), From: c.Agent, FromName: c.Name, Date: c.Place.At, Title: c.Call.Tool, Permission: &c.Call, Digest: c.Call.Digest(), Received: true,
	}
}

// ruledRow returns the row of a call that was decided without a question.
func ruledRow(p *page, e *pastEntry) row {
	p.name(&e.Message)
	r := newRow(p.base, local{}, e.Message, p.site.readings.Of(&e.Message))
	r.Ruled, r.Key, r.Status = e.Ruled, fmt.Sprintf("ruled-%d", e.Ruled.Place.ID), view.StatusAnswered
	r.Decision = decision{Sign: "✓", Words: "Allowed by " + decidedBy(e.Ruled)}
	if !e.Ruled.Allowed {
		r.Decision = decision{Sign: "✕", Words: "Denied by " + decidedBy(e.Ruled), Denied: true}
	}
	return r
}

// decidedBy returns what decided a call without a question, in a word.
func decidedBy(c *view.RuledCall) string {
	switch {
	case !c.Mandate.IsZero():
		return "mandate"
	case c.Rule.IsZero():
		return "policy"
	}
	return "rule"
}

// maxLag is how long a page has the index read what it lacks, as after many messages at once. It shows what there is then, and says what
// it lacks.
const maxLag = 250 * time.Millisecond

// past returns the part of History before a place, newest first; "" is the newest part.
func (p *page) past(q listQuery, before string) (l mailList, err error) {
	l = mailList{listQuery: q, Newest: before == ""}
	at, err := placeOf(before)
	if err != nil {
		return l, err
	}
	mail, err := p.agentOf(q.As)
	if err != nil {
		return l, err
	}
	in, err := mail.Mail().Last(p.ctx(), view.MessageFilter{All: true}, 0, 1)
	if err != nil {
		return l, err
	}
	l.Cursor = strconv.FormatUint(in.Cursor, 10)
	ctx := fair.Until(p.ctx(), time.Now().Add(maxLag))
	part, err := readPast(ctx, p, q, at, firstPaint)
	if err != nil {
		return l, err
	}
	if part.more && len(part.entries) > 0 {
		l.Before = part.next.String()
	}
	if l.Behind = part.behind; l.Newest {
		if l.Tally, err = tally(ctx, p, q); err != nil {
			return l, err
		}
	}
	l.Rows = drawPast(p, part.entries, local{q.As, mail}, q.In())
	for i := range l.Rows {
		l.Rows[i].Sought = q.Text
	}
	return l, nil
}

// tally returns how many lines a list of History has, in words.
func tally(ctx context.Context, p *page, q listQuery) (string, error) {
	r, err := q.search(0, 0)
	if err != nil {
		return "", err
	}
	mail, err := p.agentOf(q.As)
	if err != nil {
		return "", err
	}
	n := 0
	if q.hasMessages() {
		if n, err = mail.Mail().Count(ctx, r.Search, r.From, r.DecidedBy); err != nil {
			return "", err
		}
	}
	if q.hasRuled() {
		agents, _, err := agentsIn(p, q)
		if err != nil {
			return "", err
		}
		ruled, err := p.agent.Rules().CountRuled(ctx, agents, view.RuledQuery{Text: r.Text, Tool: q.Tool, Verdict: q.Verdict, Since: r.Since})
		if err != nil {
			return "", err
		}
		n += ruled
	}
	words := fmt.Sprintf("%d decisions", n)
	switch {
	case n == 1:
		words = "1 decision"
	case n > view.MaxCounted:
		words = "More than 1,000 decisions"
	}
	if q.Text != "" {
		words += " with “" + q.Text + "” in the call, the reason or the answer"
	}
	return words, nil
}

// drawPast returns the rows of a part of History. The row of a call without a message has the number of the message below it, by which
// a script finds its place.
func drawPast(p *page, entries []pastEntry, of local, in string) []row {
	all := make([]question, 0, len(entries))
	for _, e := range entries {
		if e.Ruled == nil {
			all = append(all, question{e.Message, of})
		}
	}
	rows := p.drawRows(all, in)
	merged := make([]row, 0, len(entries))
	for i := range entries {
		if entries[i].Ruled == nil {
			continue
		}
		r := ruledRow(p, &entries[i])
		for len(rows) > 0 && endedAt(&rows[0].Message) > r.Date {
			merged, rows = append(merged, rows[0]), rows[1:]
		}
		if len(rows) > 0 {
			r.Number = rows[0].Number
		}
		merged = append(merged, r)
	}
	return append(merged, rows...)
}

// Bounds of what a download has: so many decisions, each with so many bytes of what was asked.
const (
	maxPast     = 1000
	maxExported = 4 << 10
)

// pastDecision is a line of a download.
type pastDecision struct {
	Number   uint64            `json:"number"` // of the message; 0 of a call that was decided without one
	Asked    capabilities.Time `json:"asked"`
	Ended    capabilities.Time `json:"ended"`
	Agent    string            `json:"agent"`
	Type     string            `json:"type"`
	Tool     string            `json:"tool,omitempty"`
	Folder   string            `json:"folder,omitempty"`
	What     string            `json:"what"`
	Decision string            `json:"decision"` // allowed or denied; or how it ended
	Rule     string            `json:"rule,omitempty"`
	By       string            `json:"by,omitempty"` // who; or rule, mandate or policy
	Reason   string            `json:"reason,omitempty"`
	Signed   bool              `json:"signed,omitempty"` // with a passkey
}

// columns are the columns of a table with lines, in their order.
var columns = []string{"number", "asked", "ended", "agent", "type", "tool", "folder", "what", "decision", "rule", "by", "reason", "signed"}

func (d pastDecision) cells() []string {
	all := []string{strconv.FormatUint(d.Number, 10), d.Asked.String(), d.Ended.String(), d.Agent, d.Type, d.Tool, d.Folder, d.What, d.Decision, d.Rule, d.By, d.Reason, ""}
	if d.Signed {
		all[len(all)-1] = "passkey"
	}
	for i, text := range all {
		if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") { // a spreadsheet would compute it
			all[i] = "'" + text
		}
	}
	return all
}

// lineOfPast returns the line of an entry. Answers are not in it, since they may be secret.
func lineOfPast(p *page, e pastEntry) pastDecision {
	m := e.Message
	p.name(&m)
	name := func(id capabilities.ID, known string) string {
		switch {
		case id.IsZero():
			return ""
		case id == p.principal.ID():
			return "you"
		}
		return partyOf(id, known).Name
	}
	if c := e.Ruled; c != nil {
		d := pastDecision{
			Asked: m.Date, Ended: m.Date, Agent: name(m.From, m.FromName), Type: m.Type, Tool: c.Call.Tool, Folder: c.Call.Folder, What: parley.Shown(c.Call.Input, maxExported), Decision: "denied", Rule: c.Words, By: decidedBy(c),
		}
		if c.Allowed {
			d.Decision = "allowed"
		}
		return d
	}
	o := m.Outcome
	d := pastDecision{
		Number: m.Number, Asked: m.Date, Ended: o.At, Agent: name(m.From, m.Sender()), Type: m.Type, What: m.Title, Decision: string(o.Status), By: name(o.By, o.ByName), Reason: o.Note, Signed: o.Signed,
	}
	if m.Title == "" {
		d.What = m.Description
	}
	if m.Permission != nil {
		d.Tool, d.Folder, d.What = m.Permission.Tool, m.Permission.Folder, m.Permission.Input
		if decided := decisionOf(m); decided.Words != "" {
			if d.Decision, d.Reason = "allowed", decided.Reason; decided.Denied {
				d.Decision = "denied"
			}
			d.Rule = mailbox.RuleWords(m.Permission, o.Values)
		}
	}
	d.What = parley.Shown(d.What, maxExported)
	return d
}

// formats are the kinds of a download, with their media types.
var formats = map[string]string{"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}

// export sends what History shows as a file: the newest decisions.
func export(p *page, q listQuery, format string) error {
	media, known := formats[format]
	if !known || q.View != pastMail {
		return parley.Refuse(parley.InvalidArgument, "there is no download as %.40q", format)
	}
	var body bytes.Buffer
	table, lines := csv.NewWriter(&body), json.NewEncoder(&body)
	if format == "csv" {
		_ = table.Write(columns) // a buffer takes all, here and below
	}
	for at, n := (pastPlace{}), 0; n < maxPast; {
		part, err := readPast(p.ctx(), p, q, at, min(maxPast-n, 100))
		if err != nil {
			return err
		}
		size := body.Len()
		for _, e := range part.entries {
			if e.Outcome == nil && e.Ruled == nil {
				continue // its content is elsewhere
			}
			if line := lineOfPast(p, e); format == "csv" {
				_ = table.Write(line.cells())
			} else {
				_ = lines.Encode(line)
			}
		}
		table.Flush()
		if err := p.held.Add(int64(body.Len() - size)); err != nil {
			return err
		}
		if !part.more || len(part.entries) == 0 {
			break
		}
		at, n = part.next, n+len(part.entries)
	}
	saves(p, "parley-history-"+time.Now().UTC().Format(time.DateOnly)+"."+format, int64(body.Len()))
	p.w.Header().Set("Content-Type", media)
	if p.r.Method != http.MethodHead {
		_, _ = p.w.Write(body.Bytes()) // a failure is that of the browser
	}
	return nil
}
