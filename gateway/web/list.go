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
)

const (
	firstPaint = 50    // messages of a list at first, and of each further part
	maxScanned = 2_000 // messages that one part of a filtered list looks at
)

// QuestionsPath is the address of the list of forms that wait for the reader.
const QuestionsPath = "/questions"

// listQuery is what a list shows.
type listQuery struct {
	Needs bool   // the forms that wait for the reader, in all mail that it has; otherwise the mail of one agent
	As    string // the agent with the mail; "" for the reader
	Text  string // only messages with this text
	Kind  string // only form, request, approval or message
	State string // only open or settled forms
	Agent string // only messages from or to the agent of this ID
	Group string // "agent" groups by agent, anything else by day
}

// queryOf returns the listQuery of an address.
func queryOf(path string, q url.Values) listQuery {
	return listQuery{Needs: path == QuestionsPath, As: q.Get("as"), Text: strings.TrimSpace(q.Get("q")),
		Kind: q.Get("kind"), State: q.Get("state"), Agent: q.Get("agent"), Group: q.Get("group")}
}

// queryIn returns the listQuery that an address of a message has under "in". Without one it is the mail with the message.
func queryIn(in, as string) listQuery {
	at, err := url.Parse("/" + in)
	if in == "" || err != nil {
		return listQuery{As: as}
	}
	return queryOf(at.Path, at.Query())
}

// In returns the listQuery for the addresses of messages. It is "" for all of an agent's mail.
func (l listQuery) In() string {
	in := strings.TrimPrefix(l.Address(), "/")
	if in == strings.TrimPrefix(listQuery{As: l.As}.Address(), "/") {
		return ""
	}
	return in
}

// Address returns the address of the list.
func (l listQuery) Address() string { return l.from("", "") }

// from returns the address of the list with one more part of the query, if that has a value.
func (l listQuery) from(name, value string) string {
	q, path := url.Values{}, "/"
	if l.Needs {
		path = QuestionsPath
	}
	for key, text := range map[string]string{"as": l.As, "q": l.Text, "kind": l.Kind, "state": l.State, "agent": l.Agent, "group": l.Group, name: value} {
		if key != "" && text != "" {
			q.Set(key, text)
		}
	}
	return path + suffix(q, "")
}

// By returns the address of the list in other groups.
func (l listQuery) By(group string) string {
	l.Group = group
	return l.Address()
}

// Unfiltered returns the address of the list with everything.
func (l listQuery) Unfiltered() string {
	return listQuery{Needs: l.Needs, As: l.As, Group: l.Group}.Address()
}

// IsFiltered reports whether the list leaves messages out.
func (l listQuery) IsFiltered() bool {
	return l.Text != "" || l.Kind != "" || l.State != "" || l.Agent != ""
}

// keeps reports whether the list shows a message.
func (l listQuery) keeps(m view.Message) bool {
	switch {
	case m.Dismissed, l.Kind != "" && m.Type != l.Kind:
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
	for _, s := range []string{m.Title, m.Description, m.Text, m.FromName, m.ToName} {
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
	Before string // there is more before this row; "" if there is not
	Newest bool   // it is the beginning of the list
	Count  int    // of the forms that wait, of a list of those
	Cursor string // from which to follow the mail of the list; "" if the list follows none
}

// Older returns the address of the next part.
func (m mailList) Older() string { return m.from("before", m.Before) }

// Heading returns the title of the list.
func (m mailList) Heading() string {
	switch {
	case m.Needs:
		return "Needs you"
	case m.As != "":
		return sanitize.Line(m.As)
	}
	return "All mail"
}

// inbox shows an agent's mail, or what waits for the reader, and the first message of the list beside it.
func (p *page) inbox() error {
	if err := p.readsOnly(); err != nil {
		return err
	}
	q := p.r.URL.Query()
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
		at.Current, f.Main = true, c
	}
	return p.show(http.StatusOK, "mail.html", f)
}

// list returns the part of a list before a row, which is "" for the newest part. With keys it has only those rows.
func (p *page) list(q listQuery, before string, keys []string) (mailList, error) {
	if q.Needs {
		return p.needs(q, before, keys)
	}
	ctx := p.ctx()
	mail, err := p.agentOf(q.As)
	if err != nil {
		return mailList{}, err
	}
	end, cursor, err := endOfMail(ctx, mail)
	if err != nil {
		return mailList{}, err
	}
	l := mailList{listQuery: q, Newest: true, Cursor: strconv.FormatUint(cursor, 10)}
	if before != "" {
		n, err := strconv.ParseUint(before, 10, 64)
		if err != nil {
			return l, parley.Refuse(parley.InvalidArgument, "%.40q is no message number", before)
		}
		l.Newest, end = n > end, min(n, end)
	}
	messages, more, err := window(ctx, mail, end, firstPaint, q.keeps)
	if err != nil {
		return l, err
	}
	if more > 0 {
		l.Before = strconv.FormatUint(more, 10)
	}
	l.Rows = grouped(p.drawRows(local{q.As, mail}, messages, q.In()), q.Group)
	return l, nil
}

// needs returns a part of the list of forms that wait for the reader.
func (p *page) needs(q listQuery, before string, keys []string) (mailList, error) {
	who, err := p.site.locals(p.ctx(), p.principal)
	if err != nil {
		return mailList{}, err
	}
	waiting, err := questionsOf{}.look(p.ctx(), who, nil)
	if err != nil {
		return mailList{}, err
	}
	l := mailList{listQuery: q, Count: len(waiting), Newest: before == ""}
	slices.Reverse(waiting)
	if q.Group == "agent" {
		slices.SortStableFunc(waiting, func(a, b question) int { return cmp.Compare(a.From.String(), b.From.String()) })
	}
	var shown []row
	for _, w := range waiting {
		if key := ElementKey(w.name, w.Number); q.keeps(w.Message) && (len(keys) == 0 || slices.Contains(keys, key)) {
			r := newRow(p.base, w.local, w.Message)
			r.In = q.In()
			shown = append(shown, r)
		}
	}
	if at := slices.IndexFunc(shown, func(r row) bool { return r.Key == before }); at >= 0 {
		shown = shown[at+1:]
	}
	if len(shown) > firstPaint {
		shown, l.Before = shown[:firstPaint], shown[firstPaint-1].Key
	}
	l.Rows = grouped(shown, q.Group)
	return l, nil
}

// window returns the last messages before a number that are kept, as many as are wanted and fit on a page. It also returns
// the number before which there are more. It looks at maxScanned messages at most.
func window(ctx context.Context, a api.Agent, before uint64, want int, keep func(view.Message) bool) (found []view.Message, more uint64, err error) {
	scanned := uint64(0)
	for step := uint64(want); ; step = min(step*2, 500) {
		first := before - min(before, step)
		kept, err := keptBetween(ctx, a, first, before, keep)
		if err != nil {
			return nil, 0, err
		}
		found = append(kept, found...)
		scanned += before - first
		if before = first; before > 0 && len(found) < want && scanned < maxScanned {
			continue
		}
		fit, err := api.NewestFitting(found[len(found)-min(len(found), want):])
		if err == nil && len(fit) < len(found) {
			before = fit[0].Number
		}
		return fit, before, err
	}
}

// keptBetween returns the messages with numbers from first to before that are kept.
func keptBetween(ctx context.Context, a api.Agent, first, before uint64, keep func(view.Message) bool) (kept []view.Message, err error) {
	for first < before {
		in, err := a.Mail().Page(ctx, view.MessageFilter{All: true}, first, int(before-first))
		if err != nil {
			return nil, err
		}
		for _, e := range in.Messages {
			if e.Number < before && keep(e) {
				kept = append(kept, e)
			}
		}
		if in.Next == 0 {
			break
		}
		first = in.Next
	}
	return kept, nil
}

// endOfMail returns the number of an agent's next message, and a cursor from which to follow it. Mail is read from a
// number on, so endOfMail finds the end by bisection.
func endOfMail(ctx context.Context, a api.Agent) (end, cursor uint64, err error) {
	exists := func(n uint64) bool {
		if err != nil {
			return false
		}
		var in view.Inbox
		if in, err = a.Mail().Page(ctx, view.MessageFilter{All: true}, n, 1); cursor == 0 {
			cursor = in.Cursor // of the first look: messages that come during the others are shown again
		}
		return len(in.Messages) > 0
	}
	low, high := uint64(0), uint64(firstPaint) // all messages below low exist
	for exists(high) {
		low, high = high+1, high*2
	}
	for low < high {
		if middle := low + (high-low)/2; exists(middle) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, cursor, err
}
