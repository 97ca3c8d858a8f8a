package web

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/mailbox"
)

const (
	firstPaint = 50    // messages of a list at first, and of each further part
	maxScanned = 2_000 // messages that one part of a filtered list looks at
)

// listView is a list of the inbox, by its address.
type listView string

// The lists.
const (
	allMail     listView = "/mail"
	needsReader listView = "/questions" // the forms that wait for the reader, in all mail that it has
	snoozedMail listView = "/snoozed"
	doneMail    listView = "/done"
	pastMail    listView = "/history" // what was decided and answered, with who and why
)

// isList reports whether a path is the address of a list. Everyone begins at what waits for the reader.
func isList(path string) bool {
	return path == "/" || slices.Contains([]listView{allMail, needsReader, snoozedMail, doneMail, pastMail}, listView(path))
}

// listQuery is what a list shows.
type listQuery struct {
	View  listView
	As    string // the agent with the mail; "" for the reader
	Text  string // only messages with this text
	Kind  string // only form, request, approval or message
	State string // only open or settled forms
	Agent string // only messages from or to the agent of this ID
	Group string // "agent" groups by agent, anything else by day

	pastFilter

	AgentName string // of Agent, if the page knows it
}

// queryOf returns the listQuery of an address.
func queryOf(path string, q url.Values) listQuery {
	if path == "/" {
		path = string(needsReader)
	}
	if path == string(pastMail) {
		q.Del("group") // it is a table by time
	}
	return listQuery{View: listView(path), As: q.Get("as"), Text: strings.TrimSpace(q.Get("q")),
		Kind: q.Get("kind"), State: q.Get("state"), Agent: q.Get("agent"), Group: q.Get("group"),
		pastFilter: pastFilter{Verdict: q.Get("decision"), Decider: q.Get("by"), Tool: strings.TrimSpace(q.Get("tool")), Days: q.Get("days")}}
}

// queryIn returns the listQuery that an address of a message has under "in". Without one it is the mail with the message.
func queryIn(in, as string) listQuery {
	at, err := url.Parse("/" + in)
	if in == "" || err != nil || !isList(at.Path) {
		return listQuery{View: allMail, As: as}
	}
	return queryOf(at.Path, at.Query())
}

// In returns the listQuery for the addresses of messages. It is "" for all of an agent's mail.
func (l listQuery) In() string {
	in := strings.TrimPrefix(l.Address(), "/")
	if in == strings.TrimPrefix(listQuery{View: allMail, As: l.As}.Address(), "/") {
		return ""
	}
	return in
}

// Address returns the address of the list.
func (l listQuery) Address() string { return l.from("", "") }

// from returns the address of the list with one more part of the query, if that has a value.
func (l listQuery) from(name, value string) string {
	q, parts := url.Values{}, l.parts()
	parts[name] = value
	for key, text := range parts {
		if key != "" && text != "" {
			q.Set(key, text)
		}
	}
	return string(l.View) + suffix(q, "")
}

// parts returns the parts of the address by their names.
func (l listQuery) parts() map[string]string {
	return map[string]string{
		"as": l.As, "q": l.Text, "kind": l.Kind, "state": l.State, "agent": l.Agent, "group": l.Group, "decision": l.Verdict, "by": l.Decider, "tool": l.Tool, "days": l.Days,
	}
}

// By returns the address of the list in other groups.
func (l listQuery) By(group string) string {
	l.Group = group
	return l.Address()
}

// filterChip is a filter of the list in words, and the address of the list without it.
type filterChip struct{ Text, Without string }

// viewLink leads to another view of the same place.
type viewLink struct {
	Text, Address string
	ID            string // of the element with the link; "" for none
	Count         string
	Current       bool
}

// Views returns the views of the place that the list belongs to.
func (m mailList) Views() []viewLink {
	at := func(text string, to listQuery) viewLink {
		return viewLink{Text: text, Address: to.Address(), Current: m.View == to.View && m.Kind == to.Kind && m.State == to.State}
	}
	if m.View == needsReader || m.View == snoozedMail {
		counted := func(text, kind string) viewLink {
			v := at(text, listQuery{View: needsReader, Kind: kind})
			v.Count = atLeast(m.Kinds[kind], m.More && m.Kinds[kind] > 0)
			return v
		}
		all := []viewLink{counted("All", ""), counted("Calls", "approval"), counted("Changes", changes), counted("Questions", "form")}
		if requests := counted("Requests", "request"); requests.Count != "" || requests.Current {
			all = append(all, requests)
		}
		return append(all, at("Snoozed", listQuery{View: snoozedMail}))
	}
	return []viewLink{
		at("All", listQuery{View: allMail, As: m.As, Group: m.Group}), at("Messages", listQuery{View: allMail, As: m.As, Group: m.Group, Kind: "message"}),
		at("Open", listQuery{View: allMail, As: m.As, Group: m.Group, State: "open"}), at("Done", listQuery{View: doneMail, As: m.As, Group: m.Group}),
		{Text: "Topics", Address: topicAddress("", m.As)},
	}
}

// Filters returns the filters of the list.
func (l listQuery) Filters() (all []filterChip) {
	for _, f := range []struct {
		part *string
		text string
	}{
		{&l.Text, "“" + l.Text + "”"}, {&l.Kind, kinds[l.Kind]}, {&l.State, l.State}, {&l.Agent, cmp.Or(l.AgentName, "one agent")},
	} {
		if was := *f.part; was != "" {
			*f.part = ""
			all = append(all, filterChip{cmp.Or(f.text, was), l.Address()})
			*f.part = was
		}
	}
	return all
}

// kinds are the kinds of messages in words.
var kinds = map[string]string{"approval": "calls", changes: "changes", "form": "forms", "request": "requests", "message": "notes"}

// Unfiltered returns the address of the list with everything.
func (l listQuery) Unfiltered() string {
	return listQuery{View: l.View, As: l.As, Group: l.Group}.Address()
}

// Needs reports whether the list has what waits for the reader.
func (l listQuery) Needs() bool { return l.View == needsReader }

// IsFiltered reports whether the reader has the list leave messages out.
func (l listQuery) IsFiltered() bool {
	return l.Text != "" || l.Kind != "" || l.State != "" || l.Agent != "" || l.pastFilter != pastFilter{}
}

// IsPicked reports whether the node has to pick the messages of the list, so that a script cannot keep it.
func (l listQuery) IsPicked() bool {
	return l.IsFiltered() || l.View != allMail || l.Group == "agent"
}

// filter returns the filter of the list's messages.
func (l listQuery) filter() view.MessageFilter {
	f := view.MessageFilter{Open: l.State == "open", Settled: l.State == "settled", Notes: l.Kind == "message", Forms: l.Kind != "" && l.Kind != "message"}
	switch l.View {
	case snoozedMail:
		f.Snoozed = true
	case doneMail:
		f.Done = true
	default:
		f.All = true
	}
	return f
}

// keeps reports whether the list shows a message.
func (l listQuery) keeps(m view.Message) bool {
	switch {
	case l.View == allMail && m.Dismissed, l.Kind != "" && m.Type != l.Kind:
		return false
	case l.Agent != "" && m.From.String() != l.Agent && m.To.String() != l.Agent:
		return false
	case l.State == "open" && (m.Type == "message" || m.Outcome != nil), l.State == "settled" && m.Outcome == nil:
		return false
	}
	return l.Text == "" || hasText(m, l.Text)
}

// hasText reports whether a message shows a text, in any case.
func hasText(m view.Message, text string) bool {
	text = strings.ToLower(text)
	said := []string{m.Title, m.Description, m.Subject, m.Text, m.Sender(), m.ToName}
	if m.Outcome != nil { // a reason is found as well
		_, reason := mailbox.ReadDecision(m.Outcome.Values)
		said = append(said, m.Outcome.Note, reason)
	}
	for _, s := range said {
		if strings.Contains(strings.ToLower(s), text) {
			return true
		}
	}
	return slices.ContainsFunc(m.Fields, func(f events.Field) bool { return strings.Contains(strings.ToLower(f.Label), text) })
}

// mailList is a part of a list, newest first.
type mailList struct {
	listQuery
	Rows   []row
	Before string         // there is more before this row; "" if there is not
	Newest bool           // it is the beginning of the list
	Count  string         // of the rows that wait, without the filter, of a list of those, as atLeast has them
	More   bool           // there are more that wait than were looked at
	Total  int            // of its rows, of a list of what waits; 0 if that is not known
	Cursor string         // from which to follow the mail of the list; "" if the list follows none
	Behind uint64         // of History, events that it lacks since they are not in the index yet
	Kinds  map[string]int // rows of what waits by their kind; "" for all
	Tally  string         // of History, how many there are, in words; "" if that is not known
}

// Older returns the address of the next part.
func (m mailList) Older() string { return m.from("before", m.Before) }

// Export returns the address of what the list shows as a file.
func (m mailList) Export(format string) string { return m.from("export", format) }

// Tools returns the tools of the calls that the list shows, for the filter.
func (m mailList) Tools() (all []string) {
	for i := range m.Rows {
		if p := m.Rows[i].Permission; p != nil && !slices.Contains(all, p.Tool) {
			all = append(all, p.Tool)
		}
	}
	return all
}

// Heading returns the title of the list.
func (m mailList) Heading() string {
	switch {
	case m.View == needsReader:
		return "Needs you"
	case m.View == snoozedMail:
		return "Snoozed"
	case m.View == doneMail:
		return "Done"
	case m.View == pastMail:
		return "History"
	case m.As != "":
		return sanitize.Line(m.As)
	}
	return "Mail"
}

// inbox shows an agent's mail, or what waits for the reader, and the first message of the list beside it. By POST it acts on
// several messages.
func (p *page) inbox() error {
	q := p.r.URL.Query()
	if p.r.Method == http.MethodPost {
		return p.several(queryOf(p.r.URL.Path, q))
	}
	if err := p.readsOnly(); err != nil {
		return err
	}
	if format := q.Get("export"); format != "" {
		return export(p, queryOf(p.r.URL.Path, q), format)
	}
	l, err := p.list(queryOf(p.r.URL.Path, q), q.Get("before"), q["key"])
	if err != nil {
		return err
	}
	f := layout{Title: l.Heading(), List: &l, Count: l.Count}
	if at := firstOf(l.Rows); at != nil && l.Newest && p.pane() == "" {
		mail, err := p.localOf(p.ctx(), at)
		if err != nil {
			return err
		}
		c := p.card(p.ctx(), mail, at.Message, nil)
		if at.IsSimilar() {
			addSimilar(p, p.ctx(), mail, &c)
		}
		addThread(p, p.ctx(), mail, &c)
		addSigned(p, p.ctx(), mail, &c)
		if c.Tools = c.Received; c.Approval != nil {
			p.tryRules(&c)
		}
		c.Near = l.stepsIn(c.Key)
		at.Current, f.Main = true, c
	}
	return p.show(http.StatusOK, "mail.html", f)
}

// list returns the part of a list before a row, which is "" for the newest part. With keys it has only those rows.
func (p *page) list(q listQuery, before string, keys []string) (mailList, error) {
	if q.Needs() {
		return p.needs(q, before, keys)
	}
	if q.View == pastMail {
		return p.past(q, before)
	}
	mail, err := p.agentOf(q.As)
	if err != nil {
		return mailList{}, err
	}
	l := mailList{listQuery: q, Newest: before == ""}
	end, err := endOf(before)
	if err != nil {
		return l, err
	}
	part, err := newest(p.ctx(), mail, q.filter(), end, firstPaint, q.keeps)
	if err != nil {
		return l, err
	}
	l.Cursor = strconv.FormatUint(part.cursor, 10)
	if part.before > 0 {
		l.Before = strconv.FormatUint(part.before, 10)
	}
	all := make([]question, 0, len(part.messages))
	for _, m := range slices.Backward(part.messages) { // newest first
		all = append(all, question{m, local{q.As, mail}})
	}
	l.Rows = p.drawRows(all, q.In())
	if q.Group == "agent" {
		l.Rows = byAgent(l.Rows)
	}
	l.Rows = grouped(l.Rows, q.Group)
	return l, nil
}

// endOf reads the number before which a part of a list is; "" is 0, the end.
func endOf(before string) (uint64, error) {
	if before == "" {
		return 0, nil
	}
	end, err := strconv.ParseUint(before, 10, 64)
	if err != nil || end == 0 {
		return 0, parley.Refuse(parley.InvalidArgument, "%.40q is no message number", before)
	}
	return end, nil
}

// needs returns a part of the list of forms that wait for the reader.
func (p *page) needs(q listQuery, before string, keys []string) (mailList, error) {
	waiting, err := questionsFor(p)
	if err != nil {
		return mailList{}, err
	}
	l := mailList{listQuery: q, Count: atLeast(rowsOf(waiting, &p.site.readings), p.askedMore), More: p.askedMore, Newest: before == ""}
	every := q
	every.Kind = ""
	waiting = slices.DeleteFunc(waiting, func(w question) bool {
		return !every.keeps(w.Message) || len(keys) > 0 && !slices.Contains(keys, ElementKey(w.name, w.Number))
	})
	shown := ranked(p, waiting, q.In())
	l.Kinds = map[string]int{"": len(shown)}
	for i := range shown {
		l.Kinds[shown[i].kind()]++
	}
	if q.Kind != "" {
		shown = slices.DeleteFunc(shown, func(r row) bool { return r.kind() != q.Kind })
	}
	l.Total = len(shown)
	if at := slices.IndexFunc(shown, func(r row) bool { return r.Has(before) }); at >= 0 {
		shown = shown[at+1:]
	}
	if len(shown) > firstPaint {
		shown, l.Before = shown[:firstPaint], shown[firstPaint-1].Key
	}
	for i := range shown {
		if i > 0 && shown[i].Section == shown[i-1].Section {
			shown[i].Group = ""
		}
	}
	l.Rows = shown
	return l, nil
}

// mailPart is a part of an agent's mail.
type mailPart struct {
	messages []view.Message // by number
	before   uint64         // there may be more before this number; 0 if there is none
	cursor   uint64         // from which to follow the mail
}

// newest returns the last messages before a number, 0 for the end, that a filter picks and that are kept: as many as are
// wanted and fit on a page. It looks at maxScanned messages at most.
func newest(ctx context.Context, a api.Agent, f view.MessageFilter, before uint64, want int, keep func(view.Message) bool) (part mailPart, err error) {
	for scanned := 0; ; {
		in, err := a.Mail().Last(ctx, f, before, max(want, 50))
		if err != nil {
			return part, err
		}
		if scanned == 0 {
			part.cursor = in.Cursor
		}
		if before = 0; len(in.Messages) > 0 {
			before = in.Messages[0].Number
		}
		scanned += len(in.Messages)
		part.messages = append(slices.DeleteFunc(in.Messages, func(m view.Message) bool { return !keep(m) }), part.messages...)
		if before > 0 && len(part.messages) < want && scanned < maxScanned {
			continue
		}
		fit, err := api.NewestFitting(part.messages[len(part.messages)-min(len(part.messages), want):])
		if part.before = before; err == nil && len(fit) < len(part.messages) {
			part.before = fit[0].Number
		}
		part.messages = fit
		return part, err
	}
}
