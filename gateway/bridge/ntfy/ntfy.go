package ntfy

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"parley"
	"parley/gateway/bridge"
)

// Ntfy is a receiver. It implements bridge.Receiver.
type Ntfy struct {
	Server string // address of the server
	Topic  string
	Token  string // of the server's access; "" for none
	Client *http.Client
}

// Parse returns the server and topic of an address such as https://ntfy.example/topic.
func Parse(address string) (server, topic string, err error) {
	u, err := url.Parse(address)
	if err == nil {
		topic = strings.Trim(u.Path, "/")
	}
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || topic == "" || strings.Contains(topic, "/") {
		return "", "", parley.Refuse(parley.InvalidArgument, "%s is no topic of an ntfy server", parley.Quoted(address, 80)).
			WithHint("a topic looks like https://ntfy.example/TOPIC")
	}
	u.Path = "/"
	return u.String(), topic, nil
}

// publication is the body by which a message is published.
type publication struct {
	Topic    string   `json:"topic"`
	Sequence string   `json:"sequence_id"`
	Title    string   `json:"title"`
	Message  string   `json:"message"`
	Priority int      `json:"priority,omitempty"`
	Click    string   `json:"click,omitempty"`
	Actions  []action `json:"actions,omitempty"`
}

type action struct {
	Action string `json:"action"`
	Label  string `json:"label"`
	URL    string `json:"url"`
	Method string `json:"method"`
	Clear  bool   `json:"clear"`
}

// Tell implements bridge.Receiver.
func (r *Ntfy) Tell(ctx context.Context, n bridge.Notice) (mark string, err error) {
	title := "Question from " + n.From
	if n.Title != "" {
		title += ": " + n.Title
	}
	p := publication{Title: title, Message: n.Labelled(n.Text), Click: n.Page}
	for _, b := range n.Buttons {
		p.Actions = append(p.Actions, action{Action: "http", Label: b.Label, URL: b.URL, Method: http.MethodPost, Clear: true})
	}
	return "", r.publish(ctx, n, p)
}

// Withdraw implements bridge.Receiver.
func (r *Ntfy) Withdraw(ctx context.Context, n bridge.Notice) error { return r.end(ctx, n) }

// Settle implements bridge.Receiver.
func (r *Ntfy) Settle(ctx context.Context, n bridge.Notice) error { return r.end(ctx, n) }

// end replaces what was told of a form, without buttons and quietly.
func (r *Ntfy) end(ctx context.Context, n bridge.Notice) error {
	title, text := n.Done()
	return r.publish(ctx, n, publication{Title: title, Message: text, Priority: 1})
}

func (r *Ntfy) publish(ctx context.Context, n bridge.Notice, p publication) error {
	p.Topic, p.Sequence = r.Topic, n.Form.ULID.String()
	p.Title = strings.ReplaceAll(p.Title, "\n", " ")
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Server, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if r.Token != "" {
		req.Header.Set("Authorization", "Bearer "+r.Token)
	}
	return bridge.Post(r.Client, req)
}
