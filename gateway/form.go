package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
)

// Bounds of one waiting call. A client that wants to wait longer calls again.
const (
	defaultWait = 25 * time.Second
	minWait     = 50 * time.Millisecond // what it takes to find out, also on a busy node
	maxWait     = 50 * time.Second
)

// FormRequest sends a form.
type FormRequest struct {
	Acting
	Recipient   string            `json:"recipient"`
	Description string            `json:"description"`
	Title       string            `json:"title,omitempty"`
	Fields      Fields            `json:"fields"`
	Name        string            `json:"name,omitempty"`
	Key         string            `json:"key,omitempty"`
	Deadline    capabilities.Time `json:"deadline,omitzero"`
	NoForward   bool              `json:"noForward,omitempty"`
}

// Fields are field definitions, read as strictly as those of a person: what is not known is refused.
type Fields []events.Field

// UnmarshalJSON reads a list of definitions. The strict reader is slow, and is asked only about what the
// fast one would not take: it says best what is wrong.
func (f *Fields) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var fields []events.Field
	if dec.Decode(&fields) == nil && fields != nil {
		*f = fields
		return nil
	}
	fields, err := form.ParseFields(b)
	*f = fields
	return err
}

func requestForm(ctx context.Context, a *actors.Agent, r FormRequest) (view.Asked, error) {
	return a.Ask(ctx, actors.Ask{
		To: r.Recipient, Description: r.Description, Title: r.Title, Fields: r.Fields,
		Name: r.Name, Key: r.Key, Deadline: r.Deadline, NoForward: r.NoForward,
	})
}

// CapabilityRequest asks for a capability in words.
type CapabilityRequest struct {
	Acting
	Recipient string            `json:"recipient"`
	Text      string            `json:"text"`
	Name      string            `json:"name,omitempty"`
	Key       string            `json:"key,omitempty"`
	Deadline  capabilities.Time `json:"deadline,omitzero"`
	NoForward bool              `json:"noForward,omitempty"`
}

func request(ctx context.Context, a *actors.Agent, r CapabilityRequest) (view.Asked, error) {
	return a.Request(ctx, actors.Request{
		To: r.Recipient, Text: r.Text, Name: r.Name, Key: r.Key, Deadline: r.Deadline, NoForward: r.NoForward,
	})
}

// AwaitRequest waits for a form to end. When WaitMs has passed and it is still open, the answer has the
// status "open" and nothing else: call again.
type AwaitRequest struct {
	Acting
	Subject
	WaitMs *int64 `json:"waitMs,omitempty"` // default 25,000, at most 50,000
}

func await(ctx context.Context, a *actors.Agent, r AwaitRequest) (view.Outcome, error) {
	which, err := r.which()
	if err != nil {
		return view.Outcome{}, err
	}
	ctx, cancel, err := bounded(ctx, r.WaitMs)
	if err != nil {
		return view.Outcome{}, err
	}
	defer cancel()
	o, err := a.Await(ctx, which)
	if err != nil && ctx.Err() != nil && waitPassed(err) {
		return view.Outcome{Status: view.StatusOpen}, nil
	}
	return o, err
}

// bounded gives the context of one waiting call.
func bounded(ctx context.Context, waitMs *int64) (context.Context, context.CancelFunc, error) {
	wait := defaultWait
	if waitMs != nil {
		if *waitMs < 0 {
			return nil, nil, parley.Refuse(parley.InvalidArgument, "waitMs %d is negative", *waitMs)
		}
		wait = min(max(time.Duration(min(*waitMs, maxWait.Milliseconds()))*time.Millisecond, minWait), maxWait)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	return ctx, cancel, nil
}

// waitPassed reports whether err says no more than that the wait is over, or that the node cuts it.
func waitPassed(err error) bool {
	code := parley.CodeOf(err)
	return code == parley.Timeout || code == parley.NotRunning || isContextEnd(err)
}

// RespondFormRequest answers a form. Values are typed; Texts are read by their fields' types. Digest is of the call that was
// shown, as list_messages has it: an approval of another call is refused.
type RespondFormRequest struct {
	Acting
	Subject
	Digest string                        `json:"digest,omitempty"`
	Values map[string]capabilities.Value `json:"values,omitempty"`
	Texts  []Text                        `json:"texts,omitempty"`
}

// Text is what someone wrote for a field.
type Text struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func respondForm(ctx context.Context, a *actors.Agent, r RespondFormRequest) (view.Outcome, error) {
	which, err := r.which()
	if err != nil {
		return view.Outcome{}, err
	}
	texts := make([]form.Text, len(r.Texts))
	for i, t := range r.Texts {
		texts[i] = form.Text(t)
	}
	return a.Answer(ctx, actors.Answer{Which: which, Digest: r.Digest, Values: r.Values, Texts: texts})
}

// EndRequest ends a form without an answer, or says no to a request.
type EndRequest struct {
	Acting
	Subject
	Reason string `json:"reason,omitempty"`
}

func declineForm(ctx context.Context, a *actors.Agent, r EndRequest) (view.Outcome, error) {
	return r.end(ctx, a.Decline)
}

func cancelForm(ctx context.Context, a *actors.Agent, r EndRequest) (view.Outcome, error) {
	return r.end(ctx, a.Cancel)
}

func reject(ctx context.Context, a *actors.Agent, r EndRequest) (view.Outcome, error) {
	return r.end(ctx, a.Reject)
}

func (r EndRequest) end(ctx context.Context, how func(context.Context, actors.Which, string) (view.Outcome, error)) (view.Outcome, error) {
	which, err := r.which()
	if err != nil {
		return view.Outcome{}, err
	}
	return how(ctx, which, r.Reason)
}

// ForwardFormRequest hands a form on.
type ForwardFormRequest struct {
	Acting
	Subject
	Recipient string `json:"recipient"`
}

func forwardForm(ctx context.Context, a *actors.Agent, r ForwardFormRequest) (Done, error) {
	which, err := r.which()
	if err != nil {
		return Done{}, err
	}
	return Done{}, a.Forward(ctx, which, r.Recipient)
}

// ResolveRequest gives what was requested: what stands under Name.
type ResolveRequest struct {
	Acting
	Subject
	Name string `json:"name"`
}

func resolve(ctx context.Context, a *actors.Agent, r ResolveRequest) (view.Outcome, error) {
	which, err := r.which()
	if err != nil {
		return view.Outcome{}, err
	}
	return a.Resolve(ctx, which, r.Name)
}
