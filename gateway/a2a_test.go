package gateway

import (
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/a2a"
	"parley/gateway/api"
	"parley/internal/eventually"
)

// a2aClient connects the official client by the node's card, with a token and a binding of the protocol.
func (h *testServer) a2aClient(agent string, binding sdk.TransportProtocol) *a2aclient.Client {
	h.t.Helper()
	card, err := agentcard.DefaultResolver.Resolve(h.t.Context(), "http://"+h.server.Address())
	if err != nil {
		h.t.Fatal(err)
	}
	hc := &http.Client{Transport: bearer(h.tokens[agent])}
	c, err := a2aclient.NewFromCard(h.t.Context(), card, a2aclient.WithJSONRPCTransport(hc), a2aclient.WithRESTTransport(hc),
		a2aclient.WithConfig(a2aclient.Config{PreferredTransports: []sdk.TransportProtocol{binding}}))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Destroy() })
	return c
}

// a2aSend sends a message without waiting for the task to end.
func a2aSend(t *testing.T, c *a2aclient.Client, m *sdk.Message) *sdk.Task {
	t.Helper()
	got, err := c.SendMessage(t.Context(), &sdk.SendMessageRequest{Message: m, Config: &sdk.SendMessageConfig{ReturnImmediately: true}})
	if err != nil {
		t.Fatal(err)
	}
	return got.(*sdk.Task) //nolint:forcetypeassert // the node sends tasks alone
}

// a2aTask waits until a task has a state.
func a2aTask(t *testing.T, c *a2aclient.Client, id sdk.TaskID, want sdk.TaskState) (task *sdk.Task) {
	t.Helper()
	eventually.Holds(t, "the task is "+string(want), func() bool {
		var err error
		if task, err = c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: id}); err != nil {
			t.Fatal(err)
		}
		return task.Status.State == want
	})
	return task
}

// answerLast answers the last form that an agent received.
func answerLast(t *testing.T, a *actors.Agent, field, text string) {
	t.Helper()
	var in view.Inbox
	eventually.Holds(t, "a form waits", func() bool {
		var err error
		if in, err = a.Mail().Last(t.Context(), view.MessageFilter{Pending: true}, 0, 1); err != nil {
			t.Fatal(err)
		}
		return len(in.Messages) == 1
	})
	ref, answer := capabilities.FormNumber(in.Messages[0].Number), parley.Answer{Texts: []events.FieldText{{Name: field, Text: text}}}
	if _, err := a.Answer(t.Context(), ref, answer); err != nil {
		t.Fatal(err)
	}
}

var flightFields = []events.Field{
	{Name: "day", Label: "Day", Type: events.Date, Required: true},
	{Name: "seats", Type: events.Number, Required: true},
}

func TestA2ATaskRequiresInput(t *testing.T) {
	t.Parallel()
	for _, binding := range []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON} {
		t.Run(strings.ReplaceAll(string(binding), "+", ""), func(t *testing.T) {
			t.Parallel()
			h := openTestServer(t)
			h.guest("fae")
			h.guest("bob")
			c := h.a2aClient("fae", binding)
			m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Book a flight"))
			begun := a2aSend(t, c, m)
			if again := a2aSend(t, c, m); again.ID != begun.ID {
				t.Errorf("the same message began %s and %s", begun.ID, again.ID)
			}
			a2aTask(t, c, begun.ID, sdk.TaskStateWorking)

			ask := parley.Form{To: "fae", Title: "Which flight?", Description: "I need\u202e a day.", Fields: flightFields}
			if _, err := h.node.Host().Ask(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
			asked := a2aTask(t, c, begun.ID, sdk.TaskStateInputRequired)
			if text := asked.Status.Message.Parts[0].Text(); text != "Which flight?\n\nI need\\u{202e} a day." {
				t.Errorf("the question is %q", text)
			}
			form, _ := asked.Status.Message.Parts[1].Data().(map[string]any)
			schema, _ := form["schema"].(map[string]any)
			if required, _ := schema["required"].([]any); len(required) != 2 {
				t.Errorf("the form is %v", form)
			}

			answer := func(parts ...*sdk.Part) *sdk.Task {
				return a2aSend(t, c, sdk.NewMessageForTask(sdk.MessageRoleUser, asked, parts...))
			}
			for _, wrong := range []*sdk.Part{
				sdk.NewTextPart("tomorrow"), sdk.NewDataPart(map[string]any{"day": "tomorrow", "seats": 2}),
				sdk.NewDataPart(map[string]any{"day": "2026-12-01", "seats": 2, "pets": true}), sdk.NewDataPart(map[string]any{"day": "2026-12-01", "seats": 1 << 60}),
			} {
				got := answer(wrong)
				if got.Status.State != sdk.TaskStateInputRequired || !strings.Contains(got.Status.Message.Parts[1].Text(), "not accepted") {
					t.Errorf("after a wrong answer: %s, %v", got.Status.State, got.Status.Message)
				}
			}
			right := sdk.NewMessageForTask(sdk.MessageRoleUser, asked, sdk.NewDataPart(map[string]any{"day": "2026-12-01", "seats": 2}))
			right.Metadata = map[string]any{a2a.Extension: map[string]any{"form": form["form"], "revision": form["revision"]}}
			for range 2 { // the second is a repeat
				if got := a2aSend(t, c, right); got.Status.State != sdk.TaskStateWorking {
					t.Fatalf("after the answer: %s", got.Status.State)
				}
			}

			h.close()
			h.open(nil)
			c = h.a2aClient("fae", binding)
			a2aTask(t, c, begun.ID, sdk.TaskStateWorking)
			_, err := c.SendMessage(t.Context(), &sdk.SendMessageRequest{Message: right}) // a repeat after the restart
			if !errors.Is(err, sdk.ErrUnsupportedOperation) {
				t.Errorf("a late repeat: %v", err)
			}
			other := h.a2aClient("bob", binding)
			if _, err := other.GetTask(t.Context(), &sdk.GetTaskRequest{ID: begun.ID}); !errors.Is(err, sdk.ErrTaskNotFound) {
				t.Errorf("to another client: %v", err)
			}
			if _, err := other.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: begun.ID}); !errors.Is(err, sdk.ErrTaskNotFound) {
				t.Errorf("a cancellation by another client: %v", err)
			}
			answerLast(t, h.node.Host(), "answer", "Booked.")
			done := a2aTask(t, c, begun.ID, sdk.TaskStateCompleted)
			if len(done.Artifacts) != 1 || done.Artifacts[0].Parts[0].Text() != "Booked." {
				t.Errorf("the artifacts are %v", done.Artifacts)
			}
			list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{})
			if err != nil || len(list.Tasks) != 2 || list.Tasks[1].ID != begun.ID || list.Tasks[0].Status.State != sdk.TaskStateCompleted {
				t.Errorf("the list has %v, %v", list, err)
			}
		})
	}
}

// a2aStates returns the states of a task that a stream shows until it ends, without SUBMITTED.
func a2aStates(t *testing.T, stream iter.Seq2[sdk.Event, error], on func(sdk.TaskState, sdk.TaskID)) (states []sdk.TaskState) {
	t.Helper()
	for event, err := range stream {
		if err != nil {
			t.Fatal(err)
		}
		state := sdk.TaskStateUnspecified
		switch e := event.(type) {
		case *sdk.Task:
			state = e.Status.State
		case *sdk.TaskStatusUpdateEvent:
			state = e.Status.State
		case *sdk.TaskArtifactUpdateEvent:
			if e.Artifact.Parts[0].Text() != "Done." {
				t.Errorf("the artifact is %v", e.Artifact)
			}
			continue
		}
		if state != sdk.TaskStateSubmitted {
			states = append(states, state)
			on(state, event.TaskInfo().TaskID)
		}
	}
	return states
}

// TestA2AStreamEndsWhereInputIsRequired follows a task by three streams: two end with a question, the last with the task.
func TestA2AStreamEndsWhereInputIsRequired(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	c := h.a2aClient("fae", sdk.TransportProtocolJSONRPC)
	var id sdk.TaskID
	asks := func(state sdk.TaskState, task sdk.TaskID) {
		if id = task; state != sdk.TaskStateWorking {
			return
		}
		if _, err := h.node.Host().Ask(t.Context(), parley.Form{To: "fae", Description: "Where?", Fields: []events.Field{{Name: "place"}}}); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(got []sdk.TaskState, want ...sdk.TaskState) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Fatalf("the states were %v, want %v", got, want)
		}
	}
	reply := func() *sdk.Message {
		return sdk.NewMessageForTask(sdk.MessageRoleUser, sdk.TaskInfo{TaskID: id}, sdk.NewTextPart("staging"))
	}
	m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Deploy"))
	wants(a2aStates(t, c.SendStreamingMessage(t.Context(), &sdk.SendMessageRequest{Message: m}), asks), sdk.TaskStateWorking, sdk.TaskStateInputRequired)

	subscription := c.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: id})
	wants(a2aStates(t, subscription, func(state sdk.TaskState, task sdk.TaskID) {
		if asks(state, task); state == sdk.TaskStateInputRequired && reply != nil {
			a2aSend(t, c, reply())
			reply = nil
		}
	}), sdk.TaskStateInputRequired, sdk.TaskStateWorking, sdk.TaskStateInputRequired)

	last := sdk.NewMessageForTask(sdk.MessageRoleUser, sdk.TaskInfo{TaskID: id}, sdk.NewTextPart("production"))
	wants(a2aStates(t, c.SendStreamingMessage(t.Context(), &sdk.SendMessageRequest{Message: last}), func(state sdk.TaskState, _ sdk.TaskID) {
		if state == sdk.TaskStateWorking {
			answerLast(t, h.node.Host(), "answer", "Done.")
		}
	}), sdk.TaskStateWorking, sdk.TaskStateCompleted)
	for _, err := range c.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: id}) {
		if !errors.Is(err, sdk.ErrUnsupportedOperation) {
			t.Errorf("a subscription to a task that has ended: %v", err)
		}
	}
}

func TestA2ACancelEndsAForm(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	c := h.a2aClient("fae", sdk.TransportProtocolJSONRPC)
	own := a2aSend(t, c, sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart("Never mind")))
	asked, err := h.node.Host().Ask(t.Context(), parley.Form{To: "fae", Description: "And you?", Fields: []events.Field{{Name: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []sdk.TaskID{own.ID, sdk.TaskID(asked.Form.String())} {
		eventually.Holds(t, "the task is there", func() bool {
			_, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: id})
			return err == nil
		})
		got, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: id})
		if err != nil || got.Status.State != sdk.TaskStateCanceled {
			t.Fatalf("%v, %v", got, err)
		}
		if _, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: id}); !errors.Is(err, sdk.ErrTaskNotCancelable) {
			t.Errorf("a second time: %v", err)
		}
	}
}

func TestA2ARefusesStrangersAndOversize(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	h.tokens["reader"] = makeToken(t, fae, "read")
	do := func(method, path, token, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, "http://"+h.server.Address()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		return got.StatusCode, string(text)
	}
	send := func(message string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":` + message + `,"configuration":{"returnImmediately":true}}}`
	}
	good := send(`{"messageId":"1","role":"ROLE_USER","parts":[{"text":"hello"}]}`)
	cached, err := http.Head("http://" + h.server.Address() + a2a.CardPath)
	if err != nil || cached.Header.Get("Cache-Control") != "max-age=300" || cached.Header.Get("ETag") == "" {
		t.Errorf("the card is cached by %v, %v", cached, err)
	}
	_ = cached.Body.Close()
	status, card := do(http.MethodGet, a2a.CardPath, "", "")
	if status != 200 || strings.Contains(card, "fae") || !strings.Contains(card, `"httpAuthSecurityScheme"`) {
		t.Errorf("the card: %d %s", status, card)
	}
	for _, x := range []struct {
		name, path, token, body string
		status                  int
		want                    string
	}{
		{"fine", a2a.Path, "fae", good, 200, `"task"`},
		{"a slash more", a2a.Path + "/", "fae", good, 200, `"task"`},
		{"no token", a2a.Path, "", good, 401, "UNAUTHENTICATED"},
		{"no token for REST", a2a.RESTPath + "/message:send", "", good, 401, "UNAUTHENTICATED"},
		{"a token that may only read", a2a.Path, "reader", good, 200, "-31403"},
		{"too large", a2a.Path, "fae", send(`{"messageId":"2","parts":[{"text":"` + strings.Repeat("x", api.MaxBody) + `"}]}`), 413, "TOO_LARGE"},
		{"too deep", a2a.Path, "fae", send(strings.Repeat("[", 64) + strings.Repeat("]", 64)), 413, "TOO_LARGE"},
		{"no message", a2a.Path, "fae", send(`null`), 200, "-32602"},
		{"a null part", a2a.Path, "fae", send(`{"messageId":"3","parts":[null]}`), 200, "-32602"},
		{"no parts", a2a.Path, "fae", send(`{"messageId":"4"}`), 200, "-32602"},
		{"a file", a2a.Path, "fae", send(`{"messageId":"5","parts":[{"url":"http://127.0.0.1/"}]}`), 200, "-32005"},
		{"a long ID", a2a.Path, "fae", send(`{"messageId":"` + strings.Repeat("x", 200) + `","parts":[{"text":"x"}]}`), 200, "-32602"},
		{"a context of its own", a2a.Path, "fae", send(`{"messageId":"6","contextId":"mine","parts":[{"text":"x"}]}`), 200, "-32602"},
		{"an unknown task", a2a.Path, "fae", send(`{"messageId":"7","taskId":"1","parts":[{"text":"x"}]}`), 200, "-32001"},
		{"an unknown agent", a2a.RESTPath + "/nobody/message:send", "fae", `{"message":{"messageId":"8","parts":[{"text":"x"}]}}`, 400, "INVALID_PARAMS"},
		{"no params", a2a.Path, "fae", `{"jsonrpc":"2.0","id":1,"method":"GetTask"}`, 200, "-32700"},
	} {
		if status, text := do(http.MethodPost, x.path, h.tokens[x.token], x.body); status != x.status || !strings.Contains(text, x.want) {
			t.Errorf("%s: %d %.300s", x.name, status, text)
		}
	}
	if _, text := do(http.MethodGet, a2a.RESTPath+"/extendedAgentCard", h.tokens["fae"], ""); !strings.Contains(text, `"ask fae"`) && !strings.Contains(text, "ask HOST") && !strings.Contains(text, "ask @") {
		t.Errorf("the card for fae: %s", text)
	}
}
