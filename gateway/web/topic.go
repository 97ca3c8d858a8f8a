package web

import (
	"crypto/rand"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// TopicsPath is the address of the topics. With a name behind it, it is that of one.
const TopicsPath = "/topics"

// topicAddress returns the address of a topic for the agent of a name; "" are the topics, or the reader.
func topicAddress(name, as string) string {
	q := url.Values{}
	if as != "" {
		q.Set("as", as)
	}
	at := TopicsPath
	if name != "" {
		at += "/" + url.PathEscape(name)
	}
	return at + suffix(q, "")
}

// shownTopic is a topic as a page shows it.
type shownTopic struct {
	view.Topic
	Base    string // the beginning of the addresses of pages
	Address string
	Every   []choice // how often its digests come
}

// How often digests come, in minutes.
var digests = []choice{{Value: "15", Label: "every 15 minutes"}, {Value: "60", Label: "every hour"}, {Value: "240", Label: "every 4 hours"}, {Value: "1440", Label: "every day"}, {Value: "stream", Label: "each post, at once"}}

// newTopic returns a topic for a page.
func newTopic(t view.Topic, base, as string) shownTopic {
	now := "60"
	switch {
	case t.Stream:
		now = "stream"
	case t.Subscribed:
		now = strconv.FormatInt(t.EveryMs/time.Minute.Milliseconds(), 10)
	}
	all := digests
	if labelOf(digests, now) == "" {
		all = append([]choice{{Value: now, Label: "every " + now + " minutes"}}, digests...)
	}
	return shownTopic{Topic: t, Base: base, Address: topicAddress(t.Topic, as), Every: chosen(all, now)}
}

// Comes returns how the reader gets the posts, in words.
func (t shownTopic) Comes() string {
	switch {
	case t.Stream:
		return "Each post comes to Mail"
	case t.Subscribed:
		return "A digest comes to Mail " + labelOf(t.Every, strconv.FormatInt(t.EveryMs/time.Minute.Milliseconds(), 10))
	}
	return "Not subscribed"
}

// topicPage is the data of the page of the topics, or of one of them.
type topicPage struct {
	Topics []shownTopic
	One    *shownTopic // nil for all
	Posts  []topicPost // the newest of one, oldest first
	Older  string      // the address of those before; "" if there are none
	MayAct bool        // the session may subscribe and post

	Subject, Text string   // that are being written
	FileTexts     []string // the files of it, as the form sends them
	Files         []events.File
	Key           string // under which that is sent once
	Wrong         string // why it was not done
}

// topicPost is a post as a page shows it.
type topicPost struct {
	view.TopicPost
	By       party
	Attached []attachment // without an address for a reader who cannot fetch them here
}

// Said returns the text of the post as HTML.
func (t topicPost) Said() template.HTML { return markdown(t.Text) }

// topics shows the topics that the reader may join, or the posts of one. By POST it subscribes, ends that, or posts.
func topics(p *page) error {
	name := strings.TrimPrefix(strings.TrimPrefix(p.r.URL.Path, TopicsPath), "/")
	d := topicPage{Key: rand.Text(), MayAct: p.principal.May(pageOperation(api.ScopeAsk)) == nil}
	status := http.StatusOK
	if p.r.Method == http.MethodPost && name != "" {
		err := d.act(p, name)
		if err == nil {
			http.Redirect(p.w, p.r, p.base+topicAddress(name, p.as), http.StatusSeeOther)
			return nil
		}
		shown := api.Shown(err)
		d.Wrong, status = shown.Message, api.HTTPStatus(shown.Code)
	} else if err := p.readsOnly(); err != nil {
		return err
	}
	got, err := api.ListTopics.Do(p.ctx(), p, api.ListTopicsRequest{Acting: api.Acting{As: p.as}})
	if err != nil {
		return err
	}
	for _, t := range got.Topics {
		d.Topics = append(d.Topics, newTopic(t, p.base, p.as))
	}
	if name == "" {
		return p.show(status, "topics.html", layout{Title: "Topics", Main: d})
	}
	at := slices.IndexFunc(d.Topics, func(t shownTopic) bool { return t.Topic.Topic == name })
	if at < 0 {
		return parley.Refuse(parley.UnknownName, "no topic %s", parley.Quoted(name, 80))
	}
	d.One = &d.Topics[at]
	if err := d.read(p, name); err != nil {
		return err
	}
	return p.show(status, "topics.html", layout{Title: sanitize.Line(name), Main: d})
}

// read reads the newest posts of a topic, or those before the number in the address.
func (d *topicPage) read(p *page, name string) error {
	end, err := endOf(p.r.URL.Query().Get("before"))
	if err != nil {
		return err
	}
	got, err := api.ListPosts.Do(p.ctx(), p, api.ListPostsRequest{Acting: api.Acting{As: p.as}, Topic: name, Before: end, Limit: firstPaint})
	if err != nil {
		return err
	}
	for _, post := range got.Posts {
		m := view.Message{From: post.From, FromName: post.FromName, FromSaid: post.FromSaid}
		p.name(&m)
		by := senderOf(&m)
		if m.From == p.agent.ID() {
			by = party{Name: "You", ID: m.From.String(), Own: true}
		}
		shown := topicPost{TopicPost: post, By: by}
		for _, f := range post.Files {
			at := attachment{File: f}
			if p.principal.IsHost() { // who is no host has what was posted in its mail
				at.Address = p.base + FormsPath + post.Message.String() + "?" + url.Values{"as": {name}, "file": {f.Digest}}.Encode()
			}
			shown.Attached = append(shown.Attached, at)
		}
		d.Posts = append(d.Posts, shown)
	}
	if got.More && len(got.Posts) > 0 {
		q := url.Values{"before": {strconv.FormatUint(got.Posts[0].Number, 10)}}
		if p.as != "" {
			q.Set("as", p.as)
		}
		d.Older = TopicsPath + "/" + url.PathEscape(name) + suffix(q, "")
	}
	return nil
}

// act does what the plain HTML form of a topic asks for.
func (d *topicPage) act(p *page, name string) error {
	p.r.Body = http.MaxBytesReader(p.w, p.r.Body, maxPlainForm)
	if err := p.r.ParseForm(); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the form cannot be read")
	}
	sent, as := p.r.PostForm, api.Acting{As: p.as}
	r := api.SubscribeRequest{Acting: as, Topic: name}
	switch sent.Get("do") {
	case "post":
		d.Subject, d.Text, d.Key = sent.Get("subject"), strings.ReplaceAll(sent.Get("text"), "\r\n", "\n"), sent.Get("key")
		d.FileTexts = sent["files"]
		var err error
		if d.Files, err = filesOf(d.FileTexts); err != nil {
			return err
		}
		if strings.TrimSpace(d.Text) == "" && len(d.Files) == 0 {
			return parley.Refuse(parley.InvalidArgument, "there is nothing to post")
		}
		return api.Post.Run(p.ctx(), p, api.PostRequest{Acting: as, Topic: name, Post: parley.Post{Header: parley.Header{Subject: d.Subject, Files: d.Files}, Text: d.Text, Key: d.Key}})
	case "unsubscribe":
		r.End = true
	case "subscribe":
		if every := sent.Get("every"); every == "stream" {
			r.Stream = true
		} else if minutes, err := strconv.ParseInt(every, 10, 64); err != nil || minutes < 1 || minutes > 7*24*60 {
			return parley.Refuse(parley.InvalidArgument, "%.40q is no time of a digest", every)
		} else {
			r.EveryMs = minutes * time.Minute.Milliseconds()
		}
	default:
		return parley.Refuse(parley.InvalidArgument, "nothing is known of %.40q", sent.Get("do"))
	}
	return api.Subscribe.Run(p.ctx(), p, r)
}
