package web

import (
	"cmp"
	"context"
	"html/template"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
	"parley/internal/fair"
)

// Bounds of what a page looks at for the messages of a thread: those that follow its first one, and the newest of the mail.
const (
	maxFollowing = 500
	maxNewest    = 200
	maxPosts     = 100 // that are drawn, of which the newest stay
)

// rootOf returns the first message of the thread that a message belongs to; zero for what belongs to none.
func rootOf(m *view.Message) capabilities.ID {
	switch {
	case m.Archived != nil:
		return capabilities.ID{}
	case !m.Thread.IsZero():
		return m.Thread
	}
	return m.MessageID
}

// threadOf returns the messages of a thread in an agent's mail, oldest first, with the questions that reply to one of them. It
// looks at what follows the first message and at the newest, so a thread with a long pause may lack some of its middle.
func threadOf(ctx context.Context, l local, m view.Message) (all []view.Message) {
	root, first := rootOf(&m), m.Number
	if root != m.MessageID {
		if begun, err := l.agent.Message(ctx, capabilities.FormID(root)); err == nil {
			first = min(first, begun.Number)
		}
	}
	looked := []view.Message{m}
	if in, err := l.agent.Mail().Page(ctx, view.MessageFilter{All: true}, first, maxFollowing); err == nil {
		looked = append(looked, in.Messages...)
	}
	if in, err := l.agent.Mail().Last(ctx, view.MessageFilter{All: true}, 0, maxNewest); err == nil {
		looked = append(looked, in.Messages...)
	}
	slices.SortFunc(looked, func(a, b view.Message) int { return cmp.Compare(a.Number, b.Number) })
	seen := map[uint64]bool{}
	in := map[capabilities.ID]bool{}
	for i := range looked {
		o := &looked[i]
		isIn := rootOf(o) == root || !o.ReplyTo.IsZero() && in[o.ReplyTo]
		if seen[o.Number] || o.Archived != nil || !isIn {
			continue
		}
		seen[o.Number], in[o.MessageID] = true, true
		all = append(all, *o)
	}
	return all[max(0, len(all)-maxPosts):]
}

// addThread has the card of a message show the thread that it belongs to.
func addThread(p *page, ctx context.Context, l local, c *card) {
	if c.Archived != nil {
		return
	}
	c.Root = rootOf(&c.Message)
	name := namer(ctx, l.agent)
	posts := func(all []view.Message) (posts []card) {
		for _, m := range all {
			p.name(&m)
			post := newCard(p.base, l.name, m, nil, name)
			post.Opened = m.Number == c.Number
			posts = append(posts, post)
		}
		return posts
	}
	if c.Type != "message" {
		found, err := api.Search.Do(fair.Until(ctx, time.Now().Add(maxLag)), p, api.DiscussionOf(api.Acting{As: l.name}, c.MessageID))
		c.Discussion = posts(found.Discussion(&c.Message))
		switch {
		case err != nil:
			c.Unsaid = "What was asked about it cannot be shown: " + api.Shown(err).Message
		case found.Behind > 0:
			c.Unsaid = "What was said of it last is not here yet: open it again in a moment"
		}
		return
	}
	c.Thread = posts(threadOf(ctx, l, c.Message))
	if to := c.Replied(); to != nil && to.Received {
		c.ReplyState = doingOf(p, to.From)
	}
}

// doingOf returns what an agent does now, in words; "" if the reader does not know it.
func doingOf(p *page, id capabilities.ID) string {
	all, err := p.statuses()
	if err != nil || !p.principal.IsHost() {
		return ""
	}
	for _, s := range all {
		if s.ID == id {
			return strings.ToLower(agentState{s.State}.Words())
		}
	}
	return ""
}

// Posts returns the messages that the card of a message shows: those of its thread, or itself.
func (c card) Posts() []card {
	if c.Thread == nil {
		return []card{c}
	}
	return c.Thread
}

// Said returns the text of a message as HTML.
func (c card) Said() template.HTML { return markdown(c.Text) }

// Topic returns the subject of the thread; "" if nobody gave one.
func (c card) Topic() string {
	for _, post := range c.Posts() {
		if post.Subject != "" {
			return post.Subject
		}
	}
	return ""
}

// With returns who takes part in the thread besides the reader, by name, in the order in which they come.
func (c card) With() []party {
	var all []party
	add := func(p party) {
		if p.ID != "" && !slices.ContainsFunc(all, func(o party) bool { return o.ID == p.ID }) {
			all = append(all, p)
		}
	}
	for _, post := range c.Posts() {
		if post.Received {
			add(senderOf(&post.Message))
		} else {
			add(partyOf(post.To, post.ToName))
		}
	}
	return all
}

// Replied returns the message of the thread that a reply is to: the newest that the reader received, or else the newest.
func (c card) Replied() *card {
	var to *card
	posts := c.Posts()
	for i := range posts {
		if post := &posts[i]; post.Type == "message" && post.Archived == nil && (post.Received || to == nil || !to.Received) {
			to = post
		}
	}
	return to
}

// UnreadPosts returns the numbers of the messages of the thread that the reader has not read, for the script.
func (c card) UnreadPosts() string {
	var all []string
	for _, post := range c.Posts() {
		if post.Unread {
			all = append(all, strconv.FormatUint(post.Number, 10))
		}
	}
	return strings.Join(all, " ")
}

// foldThreads makes one row of the messages of a thread, at the place of the newest, which comes first.
func foldThreads(rows []row) []row {
	at := map[capabilities.ID]int{}
	var folded []row
	for _, r := range rows {
		root := rootOf(&r.Message)
		if r.Type != "message" || root.IsZero() {
			folded = append(folded, r)
			continue
		}
		k, known := at[root]
		if !known {
			at[root] = len(folded)
			folded = append(folded, r)
			continue
		}
		first := &folded[k]
		first.Same = append(first.Same, row{Message: r.Message, Key: r.Key})
		first.Unread = first.Unread || r.Unread
		if first.Subject == "" {
			first.Subject = r.Subject
		}
	}
	return folded
}

// IsThread reports whether the row stands for the messages of a thread.
func (r row) IsThread() bool { return r.Type == "message" && len(r.Same) > 0 }

// Posts returns the number of messages of the thread that the row stands for.
func (r row) Posts() int { return 1 + len(r.Same) }

// Topic returns the subject in a line; "" for none.
func (r row) Topic() string {
	if r.Type != "message" {
		return ""
	}
	return lineOf(words(r.Subject))
}

// Said returns the text of a message in a line, for a row that has its subject above.
func (r row) Said() string { return lineOf(words(r.Text)) }

// Voices returns who takes part in a thread, in a line.
func (r row) Voices() string {
	var all []string
	add := func(m *view.Message) {
		name := sanitize.Line(cmp.Or(sentBy(m), senderOf(m).Name))
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	for i := len(r.Same) - 1; i >= 0; i-- {
		add(&r.Same[i].Message)
	}
	add(&r.Message)
	return strings.Join(all, ", ")
}
