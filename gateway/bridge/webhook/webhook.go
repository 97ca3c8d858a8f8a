package webhook

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/capabilities"
	"parley/gateway/bridge"
)

// Prefixes of the texts of keys.
const (
	secretPrefix = "whsk_"
	publicPrefix = "whpk_"
)

// Webhook is a receiver. It implements bridge.Receiver.
type Webhook struct {
	URL    string
	Key    ed25519.PrivateKey
	Client *http.Client
	Now    func() time.Time
}

// NewKey returns the text of a new signing key.
func NewKey() (string, error) {
	_, key, err := ed25519.GenerateKey(nil)
	return secretPrefix + base64.StdEncoding.EncodeToString(key), err
}

// ParseKey parses the text of a signing key.
func ParseKey(text string) (ed25519.PrivateKey, error) {
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, secretPrefix))
	if err != nil || len(b) != ed25519.PrivateKeySize {
		return nil, parley.Refuse(parley.InvalidArgument, "the signing key of the webhook is none")
	}
	return ed25519.PrivateKey(b), nil
}

// PublicKey returns the text of the key by which a receiver checks signatures.
func PublicKey(key ed25519.PrivateKey) string {
	return publicPrefix + base64.StdEncoding.EncodeToString(key.Public().(ed25519.PublicKey))
}

// payload is the body of a webhook.
type payload struct {
	Type      string            `json:"type"`
	Timestamp capabilities.Time `json:"timestamp"`
	Data      data              `json:"data"`
}

type data struct {
	Form     capabilities.ID   `json:"form"`
	Revision uint64            `json:"revision"`
	Kind     string            `json:"kind"`
	Title    string            `json:"title,omitempty"`
	Text     string            `json:"text"`
	Whole    bool              `json:"whole"`            // title and text are all of what is asked
	Folder   string            `json:"folder,omitempty"` // in which a call is made
	From     string            `json:"from"`
	Deadline capabilities.Time `json:"deadline,omitzero"`
	Page     string            `json:"page,omitempty"`
	Buttons  []button          `json:"buttons,omitempty"`
	Status   string            `json:"status"`
	By       string            `json:"by,omitempty"`
	Ended    capabilities.Time `json:"ended,omitzero"`
}

type button struct {
	Label   string `json:"label"`
	Outcome string `json:"outcome"`
	URL     string `json:"url"`
}

// Tell implements bridge.Receiver.
func (h *Webhook) Tell(ctx context.Context, n bridge.Notice) (mark string, err error) {
	return "", h.post(ctx, "form.opened", n.At, n)
}

// Withdraw implements bridge.Receiver.
func (h *Webhook) Withdraw(ctx context.Context, n bridge.Notice) error {
	return h.post(ctx, "form.withdrawn", n.Ended, n)
}

// Settle implements bridge.Receiver.
func (h *Webhook) Settle(ctx context.Context, n bridge.Notice) error {
	return h.post(ctx, "form.settled", n.Ended, n)
}

func (h *Webhook) post(ctx context.Context, kind string, at capabilities.Time, n bridge.Notice) error {
	p := payload{Type: kind, Timestamp: at, Data: data{
		Form: n.Form, Revision: n.Revision, Kind: n.Kind, Title: n.Title, Text: n.Text, Whole: n.Whole, Folder: n.Folder, From: n.From, Deadline: n.Deadline, Page: n.Page,
		Status: n.Status, By: n.By, Ended: n.Ended,
	}}
	for _, b := range n.Buttons {
		p.Data.Buttons = append(p.Data.Buttons, button{b.Label, b.Outcome, b.URL})
	}
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	stamp := strconv.FormatInt(h.Now().Unix(), 10)
	signed := n.Key + "." + stamp + "." + string(body)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", n.Key)
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", "v1a,"+base64.StdEncoding.EncodeToString(ed25519.Sign(h.Key, []byte(signed))))
	return bridge.Post(h.Client, r)
}
