package mcp

import (
	"context"
	"crypto/rand"
	"math"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

const (
	defaultWait = 45 * time.Second
	maxWait     = 50 * time.Second // clients time out soon after

	atHost   = "@host"
	atClient = "@me" // the person at the client: mail of the agent to itself
)

// question has the arguments of the tools that send a form.
type question struct {
	Title     string        `json:"title"`
	Message   string        `json:"message"`
	Fields    parley.Fields `json:"fields"`
	Recipient string        `json:"recipient"`
	Key       string        `json:"key"`
	ExpiresIn float64       `json:"expiresInSeconds"`

	Remind   []events.Delay      `json:"remind"`
	Escalate []parley.Escalation `json:"escalate"`
	Need     uint32              `json:"need"`
	Veto     *bool               `json:"veto"`
	NoSelf   bool                `json:"noSelf"`
	Passkey  bool                `json:"passkey"`
}

// waiting has the longest wait of a call.
type waiting struct {
	Timeout *float64 `json:"timeoutSeconds"`
}

func (w waiting) duration() (time.Duration, error) {
	if w.Timeout == nil {
		return defaultWait, nil
	}
	if !(*w.Timeout >= 0) {
		return 0, parley.Refuse(parley.InvalidArgument, "timeoutSeconds %v is negative", *w.Timeout)
	}
	return time.Duration(min(*w.Timeout, maxWait.Seconds()) * float64(time.Second)), nil
}

// send sends a form. It makes a key if there is none, so that the operation can be repeated. It goes on when the call is
// cancelled, so that the form is known and can be withdrawn.
func (c *call) send(ctx context.Context, q question) (a view.Asked, err error) {
	request := api.FormRequest{Form: parley.Form{To: q.Recipient, Title: q.Title, Description: q.Message, Fields: q.Fields, Key: q.Key, Remind: q.Remind, Escalate: q.Escalate, Need: q.Need, Veto: q.Veto, NoSelf: q.NoSelf, Passkey: q.Passkey}}
	switch q.Recipient {
	case "":
		request.To = atHost
	case atClient:
		request.To = capabilities.NameSelf
	}
	if q.Fields == nil {
		return a, parley.Refuse(parley.InvalidForm, "a form has at least one field")
	}
	if q.Key == "" {
		request.Key = "mcp " + rand.Text()
	}
	switch {
	case q.ExpiresIn < 0 || math.IsNaN(q.ExpiresIn) || q.ExpiresIn > 1e9:
		return a, parley.Refuse(parley.InvalidArgument, "expiresInSeconds %v is no time to wait", q.ExpiresIn).WithHint("it counts from now, in seconds")
	case q.ExpiresIn > 0:
		request.Deadline = capabilities.At(time.Now().Add(time.Duration(q.ExpiresIn * float64(time.Second))))
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(c.life, stop)()
	a, err = api.Form.Do(ctx, steady{c.agent}, request)
	if err == nil && q.Key == "" { // another call may have asked with a given key, and wait
		c.sent = a.Form.String()
	}
	return a, err
}

// askUser sends a form and waits for its outcome.
func askUser(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		question
		waiting
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	wait, err := arguments.duration()
	if err != nil {
		return nil, err
	}
	if c.isRetry() {
		return c.takeUp(ctx, wait)
	}
	a, err := c.send(ctx, arguments.question)
	if err != nil {
		return nil, err
	}
	if a.Outcome != nil {
		return endingOf(a.Outcome, a.Form.String()), nil
	}
	if arguments.Recipient != atClient && arguments.Timeout == nil && c.takesTasks() {
		return c.createdTask(ctx, a.Form.String())
	}
	return c.goOn(ctx, a.Form.String(), 0, wait)
}

// sendForm sends a form and does not wait.
func sendForm(ctx context.Context, c *call) (any, error) {
	var arguments question
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	a, err := c.send(ctx, arguments)
	if err != nil {
		return nil, err
	}
	if a.Outcome != nil {
		return endingOf(a.Outcome, a.Form.String()), nil
	}
	e := pending(a.Form.String())
	e.Unreachable = a.Unreachable
	if a.Promised != nil {
		e.Reason = "it " + sanitize.Line(a.Promised.Words())
	}
	if arguments.Recipient == atClient {
		e.Link = c.agent.Link(ctx, a.Form.String())
	}
	return e, nil
}

// awaitAnswer continues the wait for a form.
func awaitAnswer(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Handle string              `json:"handle"`
		Until  events.MessageState `json:"until"`
		All    bool                `json:"all"`
		After  uint64              `json:"after"`
		waiting
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	wait, err := arguments.duration()
	if err != nil {
		return nil, err
	}
	if c.isRetry() {
		return c.takeUp(ctx, wait)
	}
	if arguments.Handle == "" {
		return nil, parley.Refuse(parley.InvalidArgument, "which form? give its handle")
	}
	if arguments.Until != "" {
		return c.awaitState(ctx, arguments.Handle, arguments.Until, arguments.All, wait)
	}
	return c.goOn(ctx, arguments.Handle, arguments.After, wait)
}
