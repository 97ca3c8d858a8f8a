package exchange

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

const (
	// AnswerField is the name of the only field of a form that begins an exchange.
	AnswerField = "answer"

	// DefaultAgent is the agent that is asked if none is named: the caller's host.
	DefaultAgent = "@host"

	maxKey      = 200 // bytes of a key given by a client
	pageSize    = 100
	maxSearched = 1000 // open forms among which a question is searched
)

// Exchange is a form as it is now, with what the agent wants from the caller meanwhile.
type Exchange struct {
	Form     view.Message
	Question *view.Message // the form that the caller is to answer; nil if there is none
	Approval *view.Message // an approval that waits for the caller, if there is no question
}

// ID returns the ID of the exchange.
func (e *Exchange) ID() string { return e.Form.MessageID.String() }

// Agent returns the ID of the other agent.
func (e *Exchange) Agent() string {
	if e.Form.Sent {
		return e.Form.To.String()
	}
	return e.Form.From.String()
}

// Ended reports whether the form of the exchange has ended.
func (e *Exchange) Ended() bool { return e.Form.Outcome != nil }

// IsSame reports whether two states of an exchange show the same to the caller.
func (e *Exchange) IsSame(o *Exchange) bool { return e.Mark() == o.Mark() }

// Mark returns a text that differs between two states of an exchange if they show the caller different things.
func (e *Exchange) Mark() string {
	switch {
	case e.Ended():
		return "ended"
	case e.Question != nil:
		return "question " + markOf(e.Question)
	case e.Approval != nil:
		return "approval " + markOf(e.Approval)
	case e.Form.Delivered:
		return "delivered"
	}
	return "begun"
}

func markOf(m *view.Message) string {
	return m.MessageID.String() + " " + strconv.FormatUint(m.AnswerRevision(), 10)
}

// Begin asks an agent, by its name or ID, for an answer to a text. A second call with the same key asks nothing new.
func Begin(ctx context.Context, c api.Client, agent, key, text string) (*Exchange, error) {
	switch {
	case strings.TrimSpace(text) == "":
		return nil, parley.Refuse(parley.InvalidArgument, "the message has no text")
	case key == "" || len(key) > maxKey || !utf8.ValidString(key):
		return nil, parley.Refuse(parley.InvalidArgument, "a message needs an ID of at most %d bytes", maxKey)
	}
	if agent == "" {
		agent = DefaultAgent
	}
	request := api.FormRequest{Form: parley.Form{
		To:          agent,
		Description: text,
		Key:         key,
		Fields:      []events.Field{{Name: AnswerField, Label: "Answer", Type: events.Textarea, Required: true}},
	}}
	asked, err := api.Form.Do(ctx, c, request)
	if err != nil {
		return nil, err
	}
	return Find(ctx, c, asked.Form.String())
}

// Find returns an exchange of the caller by its ID. It refuses with NO_SUCH_MESSAGE what is none.
func Find(ctx context.Context, c api.Client, id string) (*Exchange, error) {
	if _, err := capabilities.ParseID(id); err != nil {
		return nil, parley.Refuse(parley.NoSuchMessage, "there is no %s", parley.Quoted(id, 100))
	}
	m, err := api.GetMessage.Do(ctx, c, api.MessageRequest{FormRef: api.RefTo(id)})
	if err != nil {
		return nil, err
	}
	if m.Type != "form" || m.MessageID.String() != id {
		return nil, parley.Refuse(parley.NoSuchMessage, "there is no %s", parley.Quoted(id, 100))
	}
	e := &Exchange{Form: m}
	return e, e.look(ctx, c)
}

// look finds what the agent wants from the caller.
func (e *Exchange) look(ctx context.Context, c api.Client) error {
	if e.Ended() {
		return nil
	}
	if !e.Form.Sent {
		if e.Form.AnswerNeeded {
			e.Question = &e.Form
		}
		return nil
	}
	first := e.Form.Number + 1
	for searched := 0; searched < maxSearched; searched += pageSize {
		request := api.ListMessagesRequest{MessageFilter: view.MessageFilter{Pending: true, All: true}, First: first, Limit: pageSize}
		page, err := api.ListMessages.Do(ctx, c, request)
		if err != nil {
			return err
		}
		for i := range page.Messages {
			m := &page.Messages[i]
			if m.From != e.Form.To || m.Number <= e.Form.Number || !m.AnswerNeeded {
				continue
			}
			if m.Type == "form" {
				e.Question = m
				e.Approval = nil
				return nil
			}
			if m.Type == "approval" && e.Approval == nil {
				e.Approval = m
			}
		}
		if page.Next == 0 {
			break
		}
		first = page.Next
	}
	return nil
}

// List returns the exchanges among the caller's messages before a number, newest first. It also returns the number
// before which there are more; 0 if there are none. Before 0 is the end. At most so many messages are looked at.
func List(ctx context.Context, c api.Client, before uint64, limit int, picks func(*view.Message) bool) (list []*Exchange, next uint64, err error) {
	for searched := 0; searched < maxSearched && len(list) < limit; searched += pageSize {
		request := api.ListMessagesRequest{MessageFilter: view.MessageFilter{All: true}, Last: pageSize, Before: before}
		page, err := api.ListMessages.Do(ctx, c, request)
		if err != nil {
			return nil, 0, err
		}
		for i := len(page.Messages) - 1; i >= 0; i-- {
			m := page.Messages[i]
			if len(list) == limit {
				return list, before, nil
			}
			before = m.Number
			if m.Type != "form" || !picks(&m) {
				continue
			}
			e := &Exchange{Form: m}
			if err := e.look(ctx, c); err != nil {
				return nil, 0, err
			}
			list = append(list, e)
		}
		if len(page.Messages) == 0 || before == 0 {
			return list, 0, nil
		}
	}
	return list, before, nil
}
