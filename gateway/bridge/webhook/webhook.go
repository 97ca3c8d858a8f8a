package webhook

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
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
	sharedPrefix = "whsec_"
)

// Bounds of a shared secret, and the size of a new one, in bytes.
const (
	minShared = 24
	maxShared = 64
	newShared = 32
)

// Webhook is a receiver. It implements bridge.Receiver.
type Webhook struct {
	URL    string
	Key    ed25519.PrivateKey
	Shared []byte // the secret that the receiver has too; none for no signature by it
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

// NewShared returns the text of a new secret that is shared with the receiver.
func NewShared() string {
	b := make([]byte, newShared)
	_, _ = rand.Read(b) // it never fails
	return sharedPrefix + base64.StdEncoding.EncodeToString(b)
}

// IsShared reports whether a text is meant to be a secret that is shared with a receiver.
func IsShared(text string) bool { return strings.HasPrefix(text, sharedPrefix) }

// ParseShared parses the text of a secret that is shared with the receiver. It refuses with INVALID_ARGUMENT, and repeats no
// part of it.
func ParseShared(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, sharedPrefix)
	b, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(b) < minShared || len(b) > maxShared {
		return nil, parley.Refuse(parley.InvalidArgument, "the secret of the webhook is none").
			WithHint("it is %s and %d to %d bytes in base64; without one, a new one is made", sharedPrefix, minShared, maxShared)
	}
	return b, nil
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
	Whole    bool              `json:"whole"`             // title and text are all of what is asked
	Folder   string            `json:"folder,omitempty"`  // in which a call is made
	Reason   string            `json:"reason,omitempty"`  // of the call, in the agent's own words
	Part     string            `json:"part,omitempty"`    // of the agent, as it calls it
	Session  string            `json:"session,omitempty"` // of a coding agent, as the node calls it
	From     string            `json:"from"`
	Deadline capabilities.Time `json:"deadline,omitzero"`
	Page     string            `json:"page,omitempty"`
	Buttons  []button          `json:"buttons,omitempty"`
	Status   string            `json:"status"`
	Votes    string            `json:"votes,omitempty"` // of a form that needs several answers, as in "1 of 2"
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
	if n.Waits() {
		return h.post(ctx, "form.waiting", capabilities.At(h.Now()), n)
	}
	return h.post(ctx, "form.settled", n.Ended, n)
}

func (h *Webhook) post(ctx context.Context, kind string, at capabilities.Time, n bridge.Notice) error {
	p := payload{Type: kind, Timestamp: at, Data: data{
		Form: n.Form, Revision: n.Revision, Kind: n.Kind, Title: n.Title, Text: n.Text, Whole: n.Whole, Folder: n.Folder, Reason: n.Reason, Part: n.Part, Session: n.Session, From: n.From, Deadline: n.Deadline, Page: n.Page,
		Status: n.Status, Votes: n.Votes, By: n.By, Ended: n.Ended,
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
	r.Header.Set("Webhook-Signature", h.sign(signed))
	return bridge.Post(h.Client, r)
}

// sign returns the signatures of a text. A receiver takes the one of a version that it knows.
func (h *Webhook) sign(text string) string {
	signatures := "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(h.Key, []byte(text)))
	if len(h.Shared) == 0 {
		return signatures
	}
	mac := hmac.New(sha256.New, h.Shared)
	mac.Write([]byte(text))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)) + " " + signatures
}
