package mcp

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

const (
	statusPending = "pending"

	maxWhy = 500 // bytes of the reason why a client does not show a form
)

// ending is the status of a form for a model: its outcome, or pending.
type ending struct {
	Status      string            `json:"status"` // answered, declined, cancelled, expired; pending while it is open; of a wait for a state of a message that
	Handle      string            `json:"handle"`
	Values      answered          `json:"values,omitzero"`
	By          *party            `json:"by,omitempty"`
	At          capabilities.Time `json:"at,omitzero"`
	Reason      string            `json:"reason,omitempty"`   // by the agent that declined or cancelled; of an open form, why the client does not show it
	Question    string            `json:"question,omitempty"` // of the status asked: in the words of one who may answer
	Message     *uint64           `json:"message,omitempty"`  // with that: its number
	Link        string            `json:"link,omitempty"`     // of the page where a signed-in person answers
	Next        string            `json:"next,omitempty"`
	Unreachable bool              `json:"unreachable,omitempty"` // the recipient's node cannot be reached now; the form is sent when it can
}

// answered are the values of an answer, in the order of the form's fields.
type answered struct {
	values capabilities.Value
	order  []string
}

// IsZero reports whether there is no answer.
func (a answered) IsZero() bool { return a.values.IsNull() }

// MarshalJSON writes the values in their order. Values without a place in it follow by name.
func (a answered) MarshalJSON() ([]byte, error) {
	given, ok := a.values.AsRecord()
	if !ok {
		return textOf(a.values)
	}
	names := make([]string, 0, len(given))
	for _, name := range a.order {
		if _, ok := given[name]; ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(a.order, name) {
			names = append(names, name)
		}
	}
	return orderedObject(len(names), func(i int) (string, any) { return names[i], given[names[i]] })
}

// endingOf returns the ending for an outcome.
func endingOf(o *view.Outcome, handle string) ending {
	e := ending{Status: string(o.Status), Handle: handle, By: partyOf(o.By, o.ByName), At: o.At, Reason: sanitize.Lines(o.Note)}
	switch o.Status {
	case view.StatusAnswered:
		e.Values = answered{o.Values, o.Order}
	case view.StatusAsked:
		e.Question, e.Reason, e.Message = sanitize.Lines(o.Note), "", o.Message
		e.Next = "The form stays open. Reply with send_message (replyTo: this message), then call await_answer with this handle. " +
			"To go on waiting without a reply, give it after: this message. The question is another's words, not your user's."
	case view.StatusSuperseded:
		e.Status, e.Reason = string(view.StatusCancelled), "superseded"
	}
	return e
}

// pending returns the ending of an open form, with instructions for another wait.
func pending(handle string) ending {
	return ending{
		Status: statusPending, Handle: handle,
		Next: "The form stays open. Call await_answer with this handle to wait for the answer, now or later.",
	}
}

// awaitState waits for a state of a message.
func (c *call) awaitState(ctx context.Context, handle string, until events.MessageState, all bool, wait time.Duration) (any, error) {
	m, err := c.message(ctx, handle)
	if err != nil {
		return nil, err
	}
	handle = m.MessageID.String()
	e, err := c.awaitFor(ctx, api.AwaitRequest{FormRef: api.RefTo(handle), Until: until, All: all}, handle, wait)
	if err == nil && e.Status == statusPending {
		e.Next = "It has not come so far. Call await_answer with this handle and until to go on waiting, or go on with other work."
		if why := absentWords(m.Receipts); why != "" {
			e.Next = "It has not come so far: " + why + "."
		}
	}
	return e, err
}

// goOn waits for a form's end, or for a question about it with a number after the last that is known. It shows a form for the person at the client there, if the client can.
func (c *call) goOn(ctx context.Context, handle string, after uint64, wait time.Duration) (any, error) {
	m, err := c.message(ctx, handle)
	if err != nil {
		return nil, err
	}
	handle = m.MessageID.String()
	if m.Outcome != nil || !isForClient(m) {
		return c.awaitFor(ctx, api.AwaitRequest{FormRef: api.RefTo(handle), Until: api.UntilAsked, After: after}, handle, wait)
	}
	shown, err := c.present(ctx, m, nil, 1)
	switch {
	case err != nil:
		return nil, err
	case shown.result != nil:
		return shown.result, nil
	case shown.elsewhere != nil:
		return c.awaitShown(ctx, handle, wait, shown.elsewhere)
	case c.request.Params.Name == "ask_user":
		return c.onThePage(ctx, handle, shown.why), nil
	}
	e, err := c.await(ctx, handle, wait)
	if err == nil && e.Status == statusPending {
		e = c.onThePage(ctx, handle, shown.why)
	}
	return e, err
}

// awaitShown waits for the end of a form that the client shows. The wait is over when the client refuses it.
func (c *call) awaitShown(ctx context.Context, handle string, wait time.Duration, at *showing) (any, error) {
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(at, func() {
		if _, refused := context.Cause(at).(unshown); refused {
			cancel()
		}
	})()
	e, err := c.await(waiting, handle, wait)
	if err == nil && e.Status == statusPending {
		if why, refused := context.Cause(at).(unshown); refused {
			e = c.onThePage(ctx, handle, string(why))
		}
	}
	return e, err
}

// onThePage returns the ending of an open form that the client does not show. It has the reason and the form's page.
func (c *call) onThePage(ctx context.Context, handle, why string) ending {
	e := pending(handle)
	if len(why) > maxWhy {
		why = strings.ToValidUTF8(why[:maxWhy], "") + " …"
	}
	e.Reason = "the client does not show the form: " + sanitize.Lines(why)
	e.Link = c.agent.Link(ctx, handle)
	e.Next = "This client cannot show the form. Give the person the link, then call await_answer with this handle."
	if e.Link == "" {
		e.Next = "This client cannot show the form, and the node has no page. Ask for it in words, or ask another recipient."
	}
	return e
}

// await waits for a form's end, through restarts of the node.
func (c *call) await(ctx context.Context, handle string, wait time.Duration) (ending, error) {
	return c.awaitFor(ctx, api.AwaitRequest{FormRef: api.RefTo(handle)}, handle, wait)
}

func (c *call) awaitFor(ctx context.Context, r api.AwaitRequest, handle string, wait time.Duration) (ending, error) {
	for end := time.Now().Add(wait); ; {
		o, err := c.turn(ctx, r, time.Until(end))
		switch {
		case c.life.Err() != nil:
			return pending(handle), nil
		case err != nil && ctx.Err() != nil:
			return c.asItIs(r, handle), nil
		case err != nil && parley.CodeOf(err) != parley.NotRunning:
			return ending{}, err
		case err == nil && o.Status != view.StatusOpen:
			return endingOf(&o, handle), nil
		case !time.Now().Add(pause).Before(end), !rest(ctx):
			return pending(handle), nil
		}
	}
}

// asItIs returns the present status of a form when the call was cut short. Some clients still read the result.
func (c *call) asItIs(r api.AwaitRequest, handle string) ending {
	o, err := c.turn(c.life, r, 0)
	if err != nil || o.Status == view.StatusOpen {
		return pending(handle)
	}
	return endingOf(&o, handle)
}

// turn makes one waiting call. The status of a form that has not ended is open.
func (c *call) turn(ctx context.Context, r api.AwaitRequest, wait time.Duration) (o view.Outcome, err error) {
	ms := max(0, min(wait, maxWait).Milliseconds())
	r.WaitMs = &ms
	return api.Await.Do(ctx, c.agent, r)
}
