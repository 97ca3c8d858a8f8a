package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"parley"
	"parley/capabilities"
	"parley/gateway/exchange"
)

// take takes a message: it begins a task, or answers the question of one. Trouble is the reason why an answer was not
// accepted: nothing has changed then.
func (h *handler) take(ctx context.Context, r *a2a.SendMessageRequest) (e *exchange.Exchange, trouble, err error) {
	c, err := callerOf(ctx)
	if err != nil {
		return nil, nil, err
	}
	m := r.Message
	switch {
	case m == nil:
		return nil, nil, wrong("there is no message")
	case m.ID == "" || len(m.ID) > maxMessageID:
		return nil, nil, wrong("a message has an ID of 1 to %d bytes", maxMessageID)
	}
	reply, err := replyOf(m)
	if err != nil {
		return nil, nil, err
	}
	if r.Config == nil || r.Config.PushConfig == nil {
		return h.deliver(ctx, c, r, reply)
	}
	if err = h.checkPush(c, r.Config.PushConfig); err != nil { // before anything changes
		return nil, nil, err
	}
	var known string // what the client knows of a task that was there before
	if m.TaskID != "" {
		if e, err = exchange.Find(ctx, c, string(m.TaskID)); err != nil {
			return nil, nil, refusal(err)
		}
		known = e.Mark()
	}
	if e, trouble, err = h.deliver(ctx, c, r, reply); err == nil && !e.Ended() {
		_, err = h.push(c, e, r.Config.PushConfig, cmp.Or(known, e.Mark()))
	}
	return e, trouble, err
}

// deliver begins a task with a message, or answers the question of its task.
func (h *handler) deliver(ctx context.Context, c *caller, r *a2a.SendMessageRequest, reply exchange.Reply) (e *exchange.Exchange, trouble, err error) {
	if r.Message.TaskID == "" {
		return h.begin(ctx, c, r, reply)
	}
	return h.answer(ctx, c, r.Message, reply)
}

const maxMessageID = 128

var errContext = wrong("the context of a task is its agent's ID: leave it out")

// begin begins a task. The ID of the agent may stand in the context in place of a tenant.
func (h *handler) begin(ctx context.Context, c *caller, r *a2a.SendMessageRequest, reply exchange.Reply) (*exchange.Exchange, error, error) {
	agent := r.Tenant
	if given := r.Message.ContextID; given != "" {
		if _, err := capabilities.ParseID(given); err != nil {
			return nil, nil, errContext
		}
		agent = given
	}
	text := reply.Text
	if reply.Values != nil {
		data, err := json.MarshalIndent(reply.Values, "", "  ")
		if err != nil {
			return nil, nil, wrong("the data part is not JSON")
		}
		text = strings.TrimSpace(text + "\n\n" + string(data))
	}
	e, err := exchange.Begin(ctx, c, agent, "a2a "+r.Message.ID, text)
	if err != nil {
		return nil, nil, refusal(err)
	}
	return e, nil, nil
}

// answer answers the question of a task. A message that has answered one before changes nothing.
func (h *handler) answer(ctx context.Context, c *caller, m *a2a.Message, reply exchange.Reply) (e *exchange.Exchange, trouble, err error) {
	e, err = exchange.Find(ctx, c, string(m.TaskID))
	if err != nil {
		return nil, nil, refusal(err)
	}
	if m.ContextID != "" && m.ContextID != e.Agent() {
		return nil, nil, errContext
	}
	mark := c.Identity() + " " + m.ID
	if !h.answered.begin(mark) {
		return e, nil, nil
	}
	if err := e.Answer(ctx, c, reply); err != nil {
		h.answered.forget(mark)
		switch parley.CodeOf(err) {
		case parley.InvalidAnswer, parley.Amended:
			trouble = err
		default:
			return nil, nil, refusal(err)
		}
	}
	if e, err = exchange.Find(ctx, c, string(m.TaskID)); err != nil {
		return nil, nil, refusal(err)
	}
	return e, trouble, nil
}

// replyOf reads the parts of a message: texts, and one object of data.
func replyOf(m *a2a.Message) (exchange.Reply, error) {
	var r exchange.Reply
	var texts []string
	for _, p := range m.Parts {
		if p == nil {
			return r, wrong("a part is null")
		}
		switch content := p.Content.(type) {
		case a2a.Text:
			texts = append(texts, string(content))
		case a2a.Data:
			values, ok := content.Value.(map[string]any)
			if !ok || r.Values != nil {
				return r, wrong("a message has one data part at most, an object")
			}
			r.Values = values
		default:
			return r, a2a.NewError(a2a.ErrUnsupportedContentType, "only texts and data are taken")
		}
	}
	r.Text = strings.Join(texts, "\n\n")
	shown, ok := m.Metadata[Extension].(map[string]any)
	if !ok {
		return r, nil
	}
	r.Form, _ = shown["form"].(string)
	if revision, ok := shown["revision"].(float64); ok && revision >= 1 && revision < 1<<53 {
		r.Revision = uint64(revision)
	}
	return r, nil
}
