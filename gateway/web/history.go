package web

import (
	"bytes"
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
	"parley/gateway/api"
	"parley/mailbox"
)

// pastFilter picks what History shows. An empty member is any.
type pastFilter struct {
	Verdict string // allowed or denied; or how it ended: answered, declined, cancelled, expired or superseded
	Decider string // the ID of who decided
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

// Verdicts returns what the list may be filtered by, of which one is chosen.
func (f pastFilter) Verdicts() []choice { return chosen(verdicts, f.Verdict) }

// Periods returns the times from which the list may be.
func (f pastFilter) Periods() []choice {
	if f.Days != "" && labelOf(periods, f.Days) == "" {
		return chosen(append(periods[:len(periods):len(periods)], choice{Value: f.Days, Label: "Last " + f.Days + " days"}), f.Days)
	}
	return chosen(periods, f.Days)
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

// Kept returns the parts of the list's address without its words, for the form that sets those: each as its name and value.
func (l listQuery) Kept() map[string]string {
	parts := l.parts()
	delete(parts, "q")
	maps.DeleteFunc(parts, func(_, value string) bool { return value == "" })
	return parts
}

// search returns the search for what the list shows before a number; 0 is the end.
func (l listQuery) search(before uint64, limit int) (api.SearchRequest, error) {
	r := api.SearchRequest{Acting: api.Acting{As: l.As}, From: l.Agent, DecidedBy: l.Decider, Before: before, Limit: limit}
	r.Text, r.Tool, r.Outcomes = beginnings(l.Text), l.Tool, ended
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

// past returns the part of History before a number, newest first; "" is the newest part.
func (p *page) past(q listQuery, before string) (l mailList, err error) {
	l = mailList{listQuery: q, Newest: before == ""}
	end, err := endOf(before)
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
	r, err := q.search(end, firstPaint)
	if err != nil {
		return l, err
	}
	found, err := performed[view.Found](p, "search", r)
	if err != nil {
		return l, err
	}
	if n := len(found.Messages); found.Next > 0 && n > 0 {
		l.Before = strconv.FormatUint(found.Messages[n-1].Number, 10)
	}
	if found.Behind > 0 {
		l.Note = fmt.Sprintf("%d events are still being read. Open the page again in a moment.", found.Behind)
	}
	all := make([]question, len(found.Messages))
	for i, m := range found.Messages {
		all[i] = question{m, local{q.As, mail}}
	}
	l.Rows = p.drawRows(all, q.In())
	if q.Group == "agent" {
		l.Rows = byAgent(l.Rows)
	}
	l.Rows = grouped(l.Rows, q.Group)
	return l, nil
}

// Bounds of what a download has: so many decisions, each with so many bytes of what was asked.
const (
	maxPast     = 1000
	maxExported = 4 << 10
)

// pastDecision is a line of a download.
type pastDecision struct {
	Number   uint64            `json:"number"`
	Asked    capabilities.Time `json:"asked"`
	Ended    capabilities.Time `json:"ended"`
	Agent    string            `json:"agent"`
	Type     string            `json:"type"`
	Tool     string            `json:"tool,omitempty"`
	Folder   string            `json:"folder,omitempty"`
	What     string            `json:"what"`
	Decision string            `json:"decision"` // allowed or denied; or how it ended
	Rule     string            `json:"rule,omitempty"`
	By       string            `json:"by,omitempty"`
	Reason   string            `json:"reason,omitempty"`
}

// columns are the columns of a table with lines, in their order.
var columns = []string{"number", "asked", "ended", "agent", "type", "tool", "folder", "what", "decision", "rule", "by", "reason"}

func (d pastDecision) cells() []string {
	all := []string{strconv.FormatUint(d.Number, 10), d.Asked.String(), d.Ended.String(), d.Agent, d.Type, d.Tool, d.Folder, d.What, d.Decision, d.Rule, d.By, d.Reason}
	for i, text := range all {
		if text != "" && strings.ContainsAny(text[:1], "=+-@\t\r") { // a spreadsheet would compute it
			all[i] = "'" + text
		}
	}
	return all
}

// lineOfPast returns the line of a message that has ended. Answers are not in it, since they may be secret.
func lineOfPast(p *page, m view.Message) pastDecision {
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
	o := m.Outcome
	d := pastDecision{
		Number: m.Number, Asked: m.Date, Ended: o.At, Agent: name(m.From, m.FromName), Type: m.Type, What: m.Title, Decision: string(o.Status), By: name(o.By, o.ByName), Reason: o.Note,
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
	for before, n := uint64(0), 0; n < maxPast; {
		r, err := q.search(before, min(maxPast-n, 100))
		if err != nil {
			return err
		}
		found, err := performed[view.Found](p, "search", r)
		if err != nil {
			return err
		}
		size := body.Len()
		for _, m := range found.Messages {
			if m.Outcome == nil {
				continue // its content is elsewhere
			}
			if line := lineOfPast(p, m); format == "csv" {
				_ = table.Write(line.cells())
			} else {
				_ = lines.Encode(line)
			}
		}
		table.Flush()
		if err := p.held.Add(int64(body.Len() - size)); err != nil {
			return err
		}
		if found.Next == 0 || len(found.Messages) == 0 {
			break
		}
		n += len(found.Messages)
		before = found.Messages[len(found.Messages)-1].Number
	}
	saves(p, "parley-history-"+time.Now().UTC().Format(time.DateOnly)+"."+format, int64(body.Len()))
	p.w.Header().Set("Content-Type", media)
	if p.r.Method != http.MethodHead {
		_, _ = p.w.Write(body.Bytes()) // a failure is that of the browser
	}
	return nil
}
