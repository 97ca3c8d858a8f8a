package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"math"
	"time"

	"parley"
	"parley/capabilities"
)

const (
	defaultWait = 45 * time.Second
	maxWait     = 50 * time.Second // clients give up soon after

	atHost   = "@host"
	atClient = "@me" // whoever is at the client: mail of the agent to itself
)

// question is what sends a form.
type question struct {
	Title     string          `json:"title"`
	Message   string          `json:"message"`
	Fields    json.RawMessage `json:"fields"`
	Recipient string          `json:"recipient"`
	Key       string          `json:"key"`
	ExpiresIn float64         `json:"expiresInSeconds"`
}

// waiting is how long a call waits.
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

// asked is an accepted ask.
type asked struct {
	Form        string   `json:"form"`
	Number      uint64   `json:"number"`
	Outcome     *outcome `json:"outcome"` // of an ask that was made before
	Unreachable bool     `json:"unreachable"`
}

// send sends a form. The key, which is made here where there is none, lets it be repeated.
func (c *call) send(ctx context.Context, q question) (asked, error) {
	request := map[string]any{"recipient": q.Recipient, "title": q.Title, "description": q.Message, "fields": q.Fields, "key": q.Key}
	switch q.Recipient {
	case "":
		request["recipient"] = atHost
	case atClient:
		request["recipient"] = capabilities.NameSelf
	}
	if len(q.Fields) == 0 {
		return asked{}, parley.Refuse(parley.InvalidForm, "a form has at least one field")
	}
	if q.Key == "" {
		request["key"] = "mcp " + rand.Text()
	}
	switch {
	case q.ExpiresIn < 0 || math.IsNaN(q.ExpiresIn) || q.ExpiresIn > 1e9:
		return asked{}, parley.Refuse(parley.InvalidArgument, "expiresInSeconds %v is no time to wait", q.ExpiresIn)
	case q.ExpiresIn > 0:
		request["deadline"] = capabilities.At(time.Now().Add(time.Duration(q.ExpiresIn * float64(time.Second))))
	}
	var a asked
	err := steadily(ctx, c.agent, "form", request, &a)
	return a, err
}

// askUser sends a form and waits for its answer.
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
		return a.Outcome.ending(a.Form), nil
	}
	return c.goOn(ctx, a.Form, wait)
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
		return a.Outcome.ending(a.Form), nil
	}
	e := pending(a.Form)
	e.Unreachable = a.Unreachable
	if arguments.Recipient == atClient {
		e.Link = c.agent.Link(ctx, a.Form)
	}
	return e, nil
}

// awaitAnswer goes on waiting for a form.
func awaitAnswer(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Handle string `json:"handle"`
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
	return c.goOn(ctx, arguments.Handle, wait)
}
