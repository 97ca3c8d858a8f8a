package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// person answers the elicitations of a client.
func person(does func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error)) *sdk.ClientOptions {
	return &sdk.ClientOptions{ElicitationHandler: func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		return does(ctx, r.Params)
	}}
}

// nobody returns options of a client whose person must not be asked.
func nobody(t *testing.T) *sdk.ClientOptions {
	return person(func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		t.Errorf("a client was asked: %q", p.Message)
		return &sdk.ElicitResult{Action: "cancel"}, nil
	})
}

func dateForm(more arguments) arguments {
	a := arguments{"title": "Release", "message": "Which day?", "recipient": "@me", "fields": []arguments{{"name": "day", "label": "Day", "type": "date", "required": true}}}
	for k, v := range more {
		a[k] = v
	}
	return a
}

func accept(values map[string]any) *sdk.ElicitResult {
	return &sdk.ElicitResult{Action: "accept", Content: values}
}

func TestElicitationActionsHaveDistinctOutcomes(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		var does atomic.Pointer[sdk.ElicitResult]
		m := h.connect(w, person(func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			if p.Message != "Release\n\nWhich day?" {
				t.Errorf("%q", p.Message)
			}
			return does.Load(), nil
		}))
		fae := h.agent("fae").ID().String()
		for _, x := range []struct {
			does   *sdk.ElicitResult
			status string
		}{
			{accept(map[string]any{"day": "2026-02-28"}), "answered"},
			{&sdk.ElicitResult{Action: "decline"}, "declined"},
			{&sdk.ElicitResult{Action: "cancel"}, "cancelled"},
		} {
			does.Store(x.does)
			got := m.use("ask_user", dateForm(nil))
			if got.Status != x.status || (got.Values["day"] == "2026-02-28") != (x.status == "answered") || !strings.Contains(got.raw, `"by":{"id":"`+fae) {
				t.Errorf("%s: %s", x.does.Action, got.raw)
			}
		}
		if in, err := h.node.Host().Mail().Inbox(t.Context(), view.MessageFilter{All: true}); err != nil || len(in.Messages) != 0 {
			t.Errorf("the host was asked: %v %v", in, err)
		}
	})
}

func TestInvalidElicitationIsRepeated(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		days := []string{"2026-02-31", "2026-04-31", "2026-04-30"}
		var asked []string
		var mu sync.Mutex
		m := h.connect(w, person(func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, p.Message)
			return accept(map[string]any{"day": days[len(asked)-1]}), nil
		}))
		got := m.use("ask_user", dateForm(nil))
		if got.Status != "answered" || got.Values["day"] != "2026-04-30" || len(asked) != 3 || !strings.Contains(asked[1], "day: there is no such date") {
			t.Errorf("%s %q", got.raw, asked)
		}
	})
}

func TestInvalidElicitationsAreBounded(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		var asked atomic.Int64
		m := h.connect(w, person(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			asked.Add(1)
			return accept(map[string]any{"day": "2026-02-31"}), nil
		}))
		got := m.use("ask_user", dateForm(arguments{"timeoutSeconds": 1}))
		if n := asked.Load(); n > 5 || got.Status == "answered" || got.Error != nil && got.Error.Code != "INVALID_ANSWER" ||
			!strings.Contains(got.raw, "no such date") || !strings.Contains(got.raw, "http://"+h.listen+"/forms/") {
			t.Errorf("asked %d times: %s", n, got.raw)
		}
	})
}

func TestElicitationOutlastsTheCall(t *testing.T) {
	t.Parallel()
	for _, w := range []toolTransport{{"stdio", "2025-11-25"}, {"http", "2025-11-25"}, {"stdio", "2025-06-18"}, {"http", "2025-06-18"}} {
		t.Run(w.transport+" "+w.version, func(t *testing.T) {
			h := openModelServer(t)
			var asked atomic.Int64
			think := make(chan struct{})
			m := h.connect(w, person(func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
				asked.Add(1)
				select {
				case <-think:
				case <-ctx.Done():
				}
				return accept(map[string]any{"day": "2026-02-28"}), nil
			}))
			got := m.use("ask_user", dateForm(arguments{"timeoutSeconds": 0.1}))
			if got.Status != "pending" {
				t.Fatal(got.raw)
			}
			if again := m.use("await_answer", arguments{"handle": got.Handle, "timeoutSeconds": 0.1}); again.Status != "pending" {
				t.Fatal(again.raw)
			}
			// Calls that read the form while it is open, and go on when it has ended, do not show it again.
			var waits sync.WaitGroup
			for range 8 {
				waits.Go(func() {
					for m.use("await_answer", arguments{"handle": got.Handle, "timeoutSeconds": 0.01}).Status == "pending" {
					}
				})
			}
			close(think)
			waits.Wait()
			if got = m.use("await_answer", arguments{"handle": got.Handle}); got.Status != "answered" || asked.Load() != 1 {
				t.Errorf("asked %d times: %s", asked.Load(), got.raw)
			}
		})
	}
}

func TestAnswerOnThePageEndsElicitation(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		fae := h.agent("fae")
		shown, gone := make(chan struct{}), make(chan struct{})
		m := h.connect(w, person(func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			close(shown)
			if w.transport == "stdio" && w.version < "2026-07-28" { // over HTTP the client may have no stream for the notice
				<-ctx.Done()
			} else {
				<-gone
			}
			return accept(map[string]any{"day": "2026-01-01"}), nil
		}))
		go func() {
			<-shown
			answer(t, fae, awaitForm(t, fae).MessageID.String(), "day", "2026-12-24")
			close(gone)
		}()
		if got := m.use("ask_user", dateForm(nil)); got.Status != "answered" || got.Values["day"] != "2026-12-24" {
			t.Error(got.raw)
		}
	})
}

func TestElicitationShowsOnlyOwnForms(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		m := h.connect(w, nobody(t))
		fae, host := h.agent("fae"), h.node.Host()
		if got := m.use("ask_user", dateForm(arguments{"recipient": "@host", "timeoutSeconds": 0.1})); got.Status != "pending" {
			t.Error(got.raw)
		}
		approval, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"rm"}`}, To: "@self"})
		if err == nil {
			if got := m.use("await_answer", arguments{"handle": approval.Form.String(), "timeoutSeconds": 0.1}); got.Status != "pending" {
				t.Error(got.raw)
			}
		}
		approval, err = fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"rm"}`}})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.use("await_answer", arguments{"handle": approval.Form.String(), "timeoutSeconds": 0.1}); got.Status != "pending" {
			t.Error(got.raw)
		}
		asked, err := host.Ask(t.Context(), parley.Form{To: "fae", Description: "x", Fields: []events.Field{{Name: "a"}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.use("await_answer", arguments{"handle": asked.Form.String(), "timeoutSeconds": 0.1}); got.Status != "pending" {
			t.Error(got.raw)
		}
	})
}

func TestClientWithoutElicitationGetsLink(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		m := h.connect(w, nil)
		got := m.use("ask_user", dateForm(nil))
		if got.Status != "pending" || got.Link != "http://"+h.listen+"/forms/"+got.Handle+"?as=fae" || !strings.Contains(got.Reason, "it has no elicitation") {
			t.Fatal(got.raw)
		}
		if again := m.use("await_answer", arguments{"handle": got.Handle, "timeoutSeconds": 0}); again.Link != got.Link || again.Reason != got.Reason {
			t.Error(again.raw)
		}
		for _, tool := range []string{"answer_form", "decline_form"} { // a model must not answer for the person
			a := arguments{"form": got.Handle}
			if tool == "answer_form" {
				a["values"] = arguments{"day": "2026-01-01"}
			}
			if no := m.use(tool, a); no.Error == nil || no.Error.Code != "NOT_PERMITTED" {
				t.Error(no.raw)
			}
		}
		h.pageAnswers(got.Link, "2026-12-24")
		if got = m.use("await_answer", arguments{"handle": got.Handle}); got.Status != "answered" || got.Values["day"] != "2026-12-24" {
			t.Error(got.raw)
		}
	})
}

// pageAnswers answers a form of one field on the page, as the signed-in host.
func (h *modelServer) pageAnswers(link, value string) {
	h.t.Helper()
	made, err := h.node.Host().Tokens().Make(h.t.Context(), actors.NewToken{Scopes: []string{"read", "answer"}})
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, link, strings.NewReader("do=answer&f0="+value))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "Bearer "+made.Text)
	got, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	_ = got.Body.Close()
	if got.StatusCode != http.StatusSeeOther {
		h.t.Errorf("the page answered %d", got.StatusCode)
	}
}

// TestRefusedElicitationHasReasonAndLink refuses to show a form. The wait ends at once. A client of 2026-07-28 refuses
// without a call of the server.
func TestRefusedElicitationHasReasonAndLink(t *testing.T) {
	t.Parallel()
	for _, w := range []toolTransport{{"stdio", "2025-11-25"}, {"http", "2025-11-25"}, {"stdio", "2025-06-18"}, {"http", "2025-06-18"}} {
		t.Run(w.transport+" "+w.version, func(t *testing.T) {
			t.Parallel()
			h := openModelServer(t)
			m := h.connect(w, person(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
				return nil, errors.New("nobody\u202e is here")
			}))
			got := m.use("ask_user", dateForm(nil))
			if got.Status != "pending" || got.Link != "http://"+h.listen+"/forms/"+got.Handle+"?as=fae" ||
				!strings.HasSuffix(got.Reason, `it refused: nobody\u{202e} is here`) {
				t.Fatal(got.raw)
			}
			h.pageAnswers(got.Link, "2026-12-24")
			if got = m.use("await_answer", arguments{"handle": got.Handle}); got.Status != "answered" {
				t.Error(got.raw)
			}
		})
	}
}

func TestSecretsAreAnsweredByLink(t *testing.T) {
	t.Parallel()
	secret := arguments{"message": "The key?", "recipient": "@me", "fields": []arguments{{"name": "key", "type": "secret"}}}
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		fae := h.agent("fae")
		if got := h.connect(w, nobody(t)).use("ask_user", secret); got.Status != "pending" || got.Link == "" || !strings.Contains(got.Reason, `the field "key" is a secret`) {
			t.Error(got.raw)
		}
		awaitForm(t, fae)
		o := person(func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			if p.Mode != "url" || !strings.Contains(p.URL, "/forms/") || p.RequestedSchema != nil {
				t.Errorf("%+v", p)
			}
			id := strings.TrimSuffix(p.URL[strings.Index(p.URL, "/forms/")+len("/forms/"):], "?as=fae")
			answer(t, fae, id, "key", "sk-1")
			return &sdk.ElicitResult{Action: "accept"}, nil
		})
		o.Capabilities = &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}}
		if got := h.connect(w, o).use("ask_user", secret); got.Status != "answered" || got.Values["key"] != "sk-1" {
			t.Error(got.raw)
		}
	})
}

// ask calls a tool and returns the result unchanged, which may request input.
func (m *model) ask(p *sdk.CallToolParams) *sdk.CallToolResult {
	m.t.Helper()
	r, err := m.session.CallTool(m.t.Context(), p)
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

func refusal(r *sdk.CallToolResult) string {
	if len(r.Content) == 0 {
		return "nothing"
	}
	text, _ := r.Content[0].(*sdk.TextContent)
	return text.Text
}

func TestClientStateIsGoodOnceForItsAgent(t *testing.T) {
	t.Parallel()
	byHand := func(t *testing.T) *sdk.ClientOptions {
		o := nobody(t)
		o.MultiRoundTrip = &sdk.MultiRoundTripOptions{Disabled: true}
		return o
	}
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			h := openModelServer(t)
			w := toolTransport{transport, "2026-07-28"}
			m := h.connect(w, byHand(t))
			first := m.ask(&sdk.CallToolParams{Name: "ask_user", Arguments: dateForm(nil)})
			if !first.NeedsInput() {
				t.Fatal(refusal(first))
			}
			day := func(day string) sdk.InputResponseMap {
				return sdk.InputResponseMap{"form": accept(map[string]any{"day": day})}
			}
			retry := func(m *model, state, on string) string {
				return refusal(m.ask(&sdk.CallToolParams{Name: "ask_user", Arguments: dateForm(nil), RequestState: state, InputResponses: day(on)}))
			}
			forged := []byte(first.RequestState)
			forged[len(forged)/2] ^= 1
			for _, state := range []string{"", "x", string(forged), first.RequestState + "A", first.RequestState[:20], strings.Repeat("A", 1<<16)} {
				if got := retry(m, state, "2026-01-01"); !strings.Contains(got, "NOT_PERMITTED") {
					t.Errorf("%.40q: %s", state, got)
				}
			}
			mine := h.token
			if transport == "http" {
				h.token = h.guest("bob", "read", "ask", "answer", "reveal")
				if got := retry(h.connect(w, byHand(t)), first.RequestState, "2026-01-01"); !strings.Contains(got, "NOT_PERMITTED") {
					t.Errorf("another's: %s", got)
				}
				h.token = mine
			}
			again := m.ask(&sdk.CallToolParams{Name: "ask_user", Arguments: dateForm(nil), RequestState: first.RequestState, InputResponses: day("2026-02-31")})
			if !again.NeedsInput() || again.RequestState == first.RequestState {
				t.Fatal(refusal(again))
			}
			if got := retry(m, first.RequestState, "2026-01-01"); !strings.Contains(got, "NOT_PERMITTED") || !strings.Contains(got, "was used") {
				t.Errorf("replayed: %s", got)
			}
			if transport == "http" { // sealed state survives the node's process
				h.close()
				h.open()
			}
			if got := retry(m, again.RequestState, "2026-01-01"); !strings.Contains(got, `"answered"`) {
				t.Errorf("the right one: %s", got)
			}
			if got := retry(m, again.RequestState, "2026-01-02"); !strings.Contains(got, "NOT_PERMITTED") {
				t.Errorf("replayed after the end: %s", got)
			}
			in, err := h.agent("fae").Mail().Inbox(t.Context(), view.MessageFilter{All: true})
			if err != nil || len(in.Messages) != 1 {
				t.Errorf("%d forms, %v", len(in.Messages), err)
			}
		})
	}
}

func TestModelsAskConcurrently(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		m := h.connect(w, nil)
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				got, err := m.call(t.Context(), "ask_user", portForm(arguments{"timeoutSeconds": 30}))
				if err != nil || got.Status != "answered" {
					t.Errorf("%s %v", got.raw, err)
				}
			})
		}
		answered := map[string]bool{}
		eventually.Holds(t, "all have asked", attempt(t, func(ctx context.Context) bool {
			in, err := h.node.Host().Mail().Inbox(ctx, view.MessageFilter{Pending: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range in.Messages {
				answer(t, h.node.Host(), e.MessageID.String(), "port", "443")
				answered[e.MessageID.String()] = true
			}
			return len(answered) == 20
		}))
		all.Wait()
	})
}
