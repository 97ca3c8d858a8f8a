package exchangetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// Client is a client with an open form for any ID, whose agent asks it something. The form takes no answer with text "no".
// What it is told must be a request that a node can read. It is good for calls at the same time.
type Client struct{}

// IDs of the client itself, the agent that it asks, the form that it asks first, and the agent's question.
var (
	Self     = id("1")
	Agent    = id("2")
	Form     = id("3")
	Question = id("4")
)

const node = "NAIU4HOEWUQD2VD32CCRA2GGSHHPULTUQ4QSAZNJCXVHH23IRHIV4RTS"

func id(end string) capabilities.ID {
	id, err := capabilities.ParseID("0000000000000000000000000" + end + "@" + node)
	if err != nil {
		panic(err)
	}
	return id
}

// Identity returns the ID of the client.
func (Client) Identity() string { return Self.String() }

// Credential returns the client, without a token.
func (Client) Credential() events.TokenRef { return events.TokenRef{Agent: Self} }

// May allows every operation.
func (Client) May(string) error { return nil }

// Call implements api.Client.
func (c Client) Call(_ context.Context, operation string, request, response any) error {
	if err := check(request); err != nil {
		return err
	}
	var got any
	switch r := request.(type) {
	case api.FormRequest:
		if !utf8.ValidString(r.Key) || r.Key == "" {
			return errors.New("a form is asked without a key")
		}
		got = view.Asked{Form: Form}
	case api.MessageRequest:
		id, err := capabilities.ParseID(string(r.ID))
		if err != nil {
			return err
		}
		got = view.Message{Type: "form", MessageID: id, Number: 1, Sent: true, Delivered: true, From: Self, To: Agent, Description: "hello"}
	case api.ListMessagesRequest:
		got = view.Inbox{Messages: []view.Message{{
			Type: "form", MessageID: Question, Number: 2, Received: true, From: Agent, To: Self, AnswerNeeded: true, Title: "Which\u202e?",
			Fields: []events.Field{{Name: "a", Required: true, Default: capabilities.String("x\u202e")}, {Name: "n", Type: events.Number}},
		}}}
	case api.RespondFormRequest:
		if len(r.Texts) > 0 && r.Texts[0].Text == "no" {
			e := parley.Refuse(parley.InvalidAnswer, "no\u202e")
			e.Fields = map[string]string{"a": "no\u202e"}
			return e
		}
	case api.FollowMessagesRequest:
		return parley.Refuse(parley.NotRunning, "the node is stopping")
	case api.FetchAgentsRequest:
		got = api.FetchAgentsResponse{}
	case api.EndRequest, api.DeclineRequest:
	default:
		return fmt.Errorf("%s is called with a %T", operation, request)
	}
	if response != nil {
		reflect.ValueOf(response).Elem().Set(reflect.ValueOf(got))
	}
	return nil
}

// check refuses a request that a node could not read.
func check(request any) error {
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	read := reflect.New(reflect.TypeOf(request))
	if err := json.Unmarshal(text, read.Interface()); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return nil
}
