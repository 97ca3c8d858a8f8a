package push

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"

	"parley/gateway/bridge"
	"parley/gateway/call"
)

// Bounds of a notification. A phone shows a few lines of it, and no more.
const (
	maxMessage = 3 << 10 // bytes of a message before encryption
	maxTitle   = 80      // characters
	maxBody    = 240
)

// room bounds the body: about what a phone shows.
var room = call.Bounds{Lines: 8, Width: 45, Characters: maxBody}

// maxWait is how long a push service keeps a message for a browser that cannot be reached.
const maxWait = 4 * 24 * time.Hour

// Push is a receiver: one browser. It implements bridge.Receiver.
type Push struct {
	Subscription
	Key     Key
	Address string // of the node's pages
	Client  *http.Client
	Now     func() time.Time
}

// message is what the service worker of the page gets.
type message struct {
	Tag     string   `json:"tag"` // of the notification that it replaces
	Open    bool     `json:"open"`
	Title   string   `json:"title"`
	Body    string   `json:"body"`
	Page    string   `json:"page"` // of the form, below the node's address
	Answers []answer `json:"answers,omitempty"`
}

// answer is a button: what is posted to its address answers the form, once.
type answer struct {
	Outcome string `json:"outcome"`
	Label   string `json:"label"`
	URL     string `json:"url"`
}

// Tell implements bridge.Receiver.
func (p *Push) Tell(ctx context.Context, n bridge.Notice) (mark string, err error) {
	m := message{Open: true, Title: "Question from " + n.From}
	if n.Title != "" {
		m.Title += ": " + n.Title
	}
	m.Title = line(m.Title)
	title := bridge.Cut(m.Title, maxTitle)
	body, whole := n.Brief(room)
	whole = whole && title == m.Title
	m.Title, m.Body = title, n.Labelled(body)
	for _, b := range n.Buttons {
		if b.Outcome == "deny" || whole { // nobody allows what they do not see
			m.Answers = append(m.Answers, answer{Outcome: b.Outcome, Label: b.Label, URL: b.URL})
		}
	}
	return "", p.send(ctx, n, m, webpush.UrgencyHigh)
}

// Withdraw implements bridge.Receiver.
func (p *Push) Withdraw(ctx context.Context, n bridge.Notice) error { return p.end(ctx, n) }

// Settle implements bridge.Receiver.
func (p *Push) Settle(ctx context.Context, n bridge.Notice) error { return p.end(ctx, n) }

// end replaces what was told of a form, without buttons and quietly.
func (p *Push) end(ctx context.Context, n bridge.Notice) error {
	title, body := n.Done()
	m := message{Title: bridge.Cut(line(title), maxTitle), Body: bridge.Cut(body, maxBody)}
	return p.send(ctx, n, m, webpush.UrgencyNormal)
}

func (p *Push) send(ctx context.Context, n bridge.Notice, m message, urgency webpush.Urgency) error {
	m.Tag, m.Page = n.Form.ULID.String(), "forms/"+n.Form.String()
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(body) > maxMessage { // characters of four bytes, or that JSON escapes
		m.Title = bridge.Cut(m.Title, maxTitle/4)
		less, _ := n.Brief(call.Bounds{Lines: room.Lines, Width: room.Width, Characters: maxBody / 4})
		m.Body = n.Labelled(less)
		m.Answers = deniesOf(m.Answers)
		if body, err = json.Marshal(m); err != nil {
			return err
		}
	}
	resp, err := webpush.SendNotificationWithContext(ctx, body, &webpush.Subscription{
		Endpoint: p.Endpoint, Keys: webpush.Keys{Auth: p.Auth, P256dh: p.Public},
	}, &webpush.Options{
		HTTPClient: p.Client, Subscriber: subscriber(p.Address), Topic: m.Tag, TTL: p.wait(n, m.Open), Urgency: urgency,
		VAPIDPublicKey: p.Key.Public(), VAPIDPrivateKey: p.Key.secret(),
	})
	if err != nil {
		return bridge.WithoutAddress(err) // it is a secret of the browser
	}
	defer resp.Body.Close()                                     //nolint:errcheck // nothing in it is needed
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 4096)) // so that the connection is kept
	if resp.StatusCode == http.StatusNotFound {
		return bridge.ErrGone
	}
	return bridge.Taken(resp)
}

func deniesOf(all []answer) (some []answer) {
	for _, a := range all {
		if a.Outcome == "deny" {
			some = append(some, a)
		}
	}
	return some
}

// wait returns for how many seconds a push service keeps a message: that a form is open, no longer than it is.
func (p *Push) wait(n bridge.Notice, open bool) int {
	wait := maxWait
	if open && n.Deadline != 0 {
		wait = min(wait, max(n.Deadline.Std().Sub(p.Now()), 0))
	}
	return int(wait.Seconds())
}

// subscriber returns whom a push service may turn to. Some services take no address of this machine.
func subscriber(address string) string {
	if strings.HasPrefix(address, "https:") {
		return address
	}
	return "push@parley.invalid"
}

// line returns a text in one line.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }
