package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/internal/eventually"
	"parley/mailbox"
)

// holdTest is a node whose agent fae asks for approvals, which processes hold.
type holdTest struct {
	t    *testing.T
	node *actors.Node
	s    *Server
	fae  *actors.Agent
}

// ask asks for an approval.
func (h *holdTest) ask(tool string) capabilities.ID {
	h.t.Helper()
	asked, err := h.fae.Approve(h.t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: tool, Input: `{}`}})
	if err != nil {
		h.t.Fatal(err)
	}
	return asked.Form
}

// send sends a hold, and returns the response.
func (h *holdTest) send(ctx context.Context, method string, hold api.Hold) *httptest.ResponseRecorder {
	hold.As = "fae"
	body, err := json.Marshal(hold)
	if err != nil {
		h.t.Error(err)
	}
	w := httptest.NewRecorder()
	h.s.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, api.HoldPath, strings.NewReader(string(body))))
	return w
}

// hold holds a form until release is called, which waits for the node.
func (h *holdTest) hold(hold api.Hold) (release func()) {
	h.t.Helper()
	before := len(h.s.holds.covered(h.t.Context(), api.Hold{Acting: api.Acting{As: "fae"}, Session: hold.Session, Whole: true}))
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	go func() { // ends with ctx
		defer close(done)
		h.send(ctx, http.MethodPost, hold)
	}()
	eventually.Holds(h.t, "the form is held", func() bool {
		return len(h.s.holds.covered(h.t.Context(), api.Hold{Acting: api.Acting{As: "fae"}, Session: hold.Session, Whole: true})) > before
	})
	return func() { cancel(); <-done }
}

// isOpen reports whether a form waits for an answer.
func (h *holdTest) isOpen(form capabilities.ID) bool {
	h.t.Helper()
	user := &toolUser{h.s, h.s.backend.Local()}
	var m view.Message
	if err := user.Call(h.t.Context(), "get_message", api.MessageRequest{Acting: api.Acting{As: "fae"}, FormRef: api.RefTo(form.String())}, &m); err != nil {
		h.t.Fatal(err)
	}
	return m.Outcome == nil
}

func TestHeldFormsEndWithTheirLastHolder(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	fae, err := node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	h := &holdTest{t, node, s, fae}

	shared := h.ask("shared")
	first := h.hold(api.Hold{Form: shared, Session: "a", Call: "1"})
	second := h.hold(api.Hold{Form: shared, Session: "a", Call: "1"})
	first()
	if !h.isOpen(shared) {
		t.Error("a form ends with the first of two holders")
	}
	second()
	if h.isOpen(shared) {
		t.Error("a form outlives its holders")
	}

	main, sub, other := h.ask("main"), h.ask("sub"), h.ask("other")
	for form, hold := range map[capabilities.ID]api.Hold{
		main: {Session: "b", Call: "1"}, sub: {Session: "b", Part: "sub", Call: "2"}, other: {Session: "c", Call: "1"},
	} {
		hold.Form = form
		defer h.hold(hold)()
	}
	for _, step := range []struct {
		end              api.Hold
		main, sub, other bool
	}{
		{api.Hold{Session: "b", Call: "2"}, true, true, true},
		{api.Hold{Session: "b"}, false, true, true},
		{api.Hold{Session: "b", Whole: true}, false, false, true},
	} {
		if w := h.send(t.Context(), http.MethodDelete, step.end); w.Code != http.StatusNoContent {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if h.isOpen(main) != step.main || h.isOpen(sub) != step.sub || h.isOpen(other) != step.other {
			t.Errorf("after %+v: %t, %t, %t", step.end, h.isOpen(main), h.isOpen(sub), h.isOpen(other))
		}
	}
}

// TestEqualCallsEndOneByOne ends calls that look alike, with IDs of their own and without.
func TestEqualCallsEndOneByOne(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	fae, err := node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	h := &holdTest{t, node, s, fae}
	held := func(use string) (capabilities.ID, func()) {
		form := h.ask("same")
		return form, h.hold(api.Hold{Form: form, Session: "a", Call: "1", Use: use})
	}
	end := func(use string) {
		t.Helper()
		if w := h.send(t.Context(), http.MethodDelete, api.Hold{Session: "a", Call: "1", Use: use}); w.Code != http.StatusNoContent {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	decide := func(form capabilities.ID, decision string) {
		t.Helper()
		user := &toolUser{s, s.backend.Local()}
		err := user.Call(t.Context(), "respond_form", api.RespondFormRequest{FormRef: api.RefTo(form.String()), Answer: parley.Answer{Values: map[string]capabilities.Value{"decision": capabilities.String(decision)}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
	open := func(want map[capabilities.ID]bool) {
		t.Helper()
		for form, is := range want {
			if h.isOpen(form) != is {
				t.Errorf("%s is open: %t", form, !is)
			}
		}
	}

	first, endFirst := held("x")
	second, endSecond := held("y")
	end("z") // another call
	open(map[capabilities.ID]bool{first: true, second: true})
	end("y")
	open(map[capabilities.ID]bool{first: true, second: false})
	end("x")
	open(map[capabilities.ID]bool{first: false})
	endFirst()
	endSecond()

	first, endFirst = held("")
	second, endSecond = held("")
	third, endThird := held("")
	defer endThird()
	decide(first, "deny") // it does not run
	endFirst()
	decide(second, "once")
	endSecond()
	end("x") // the second
	open(map[capabilities.ID]bool{third: true})
	end("y") // the third, allowed elsewhere
	open(map[capabilities.ID]bool{third: false})

	fourth, endFourth := held("")
	fifth, endFifth := held("")
	defer endFifth()
	decide(fourth, "once")
	end("x") // before the hook has gone
	endFourth()
	open(map[capabilities.ID]bool{fifth: true})
	end("y")
	open(map[capabilities.ID]bool{fifth: false})
}

// TestCallsThatRanOtherwiseAreTold ends calls that were allowed, with the input that was allowed and with another.
func TestCallsThatRanOtherwiseAreTold(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	fae, err := node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	h := &holdTest{t, node, s, fae}
	user := &toolUser{s, s.backend.Local()}
	host := func(operation string, request, response any) {
		t.Helper()
		if err := user.Call(t.Context(), operation, request, response); err != nil {
			t.Fatal(err)
		}
	}
	const input = `{"a":1,"b":"é"}`
	number, told := 0, 0
	for _, test := range []struct {
		name     string
		decision string
		edited   string // the input that is allowed in place of the one shown
		ran      string
		other    bool
	}{
		{"as it was shown", "once", "", input, false},
		{"in another order", "once", "", `{"b": "\u00e9", "a": 1}`, false},
		{"with another input", "once", "", `{"a":2,"b":"é"}`, true},
		{"as it was edited", "once", `{"a":3}`, `{"a": 3}`, false},
		{"as it was before it was edited", "once", `{"a":3}`, input, true},
		{"after a denial", "deny", "", `{"a":2}`, false},
		{"by what is always allowed", "always", "", input, false},
		{"by the rule", "", "", input, false},
		{"by the rule with another input", "", "", `{"a":2}`, true},
	} {
		number++
		hold := api.Hold{Acting: api.Acting{As: "fae"}, Session: "a", Call: "1", Use: fmt.Sprintf("use-%d", number)}
		ask := api.ApproveRequest{Acting: hold.Acting, Approval: parley.Approval{Tool: "T", Input: json.RawMessage(input), Folder: "/w", Editable: true}}
		if test.decision == "" {
			body, err := json.Marshal(api.HeldAsk{Hold: hold, Approval: &ask})
			if err != nil {
				t.Fatal(err)
			}
			gone, cancel := context.WithCancel(t.Context())
			cancel() // a form would be withdrawn at once
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequestWithContext(gone, http.MethodPost, api.HeldAskPath, strings.NewReader(string(body))))
			if !strings.Contains(w.Body.String(), `"decided":true`) {
				t.Fatalf("%s: %s", test.name, w.Body)
			}
		} else {
			var asked view.Permitted
			host("approve", ask, &asked)
			hold.Form = asked.Form
			release := h.hold(hold)
			values := map[string]capabilities.Value{"decision": capabilities.String(test.decision)}
			if test.edited != "" {
				values["input"] = capabilities.String(test.edited)
			}
			host("respond_form", api.RespondFormRequest{FormRef: api.RefTo(asked.Form.String()), Answer: parley.Answer{Values: values}}, nil)
			release()
		}
		ended := hold
		ended.Form, ended.Call, ended.Input = capabilities.ID{}, "of what ran", test.ran
		w := h.send(t.Context(), http.MethodDelete, ended)
		var got api.CallEnded
		if w.Code != http.StatusNoContent && json.Unmarshal(w.Body.Bytes(), &got) != nil || got.Other != test.other {
			t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
		}
		var mail view.Inbox
		host("list_messages", api.ListMessagesRequest{}, &mail)
		notes := slices.DeleteFunc(mail.Messages, func(m view.Message) bool { return m.Priority != events.Urgent })
		if test.other {
			told++
		}
		if len(notes) != told || test.other && !strings.HasPrefix(notes[told-1].Text, "It ran with:\n"+test.ran+"\n") {
			t.Errorf("%s: the host is told %d times: %+v", test.name, len(notes), notes)
		}
	}
}

// TestFalseReportsHideNothing reports calls that ran with another input, as a hook of others or a program of the agent may: before it that
// they ran as allowed, that their turn has ended, more than once, and too often.
func TestFalseReportsHideNothing(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	fae, err := node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	h := &holdTest{t, node, s, fae}
	user := &toolUser{s, s.backend.Local()}
	told := func() (texts []string) {
		t.Helper()
		var mail view.Inbox
		if err := user.Call(t.Context(), "list_messages", api.ListMessagesRequest{}, &mail); err != nil {
			t.Fatal(err)
		}
		for _, m := range mail.Messages {
			if m.Priority == events.Urgent {
				texts = append(texts, m.Text)
			}
		}
		return texts
	}
	number := 0
	allow := func() api.Hold {
		t.Helper()
		number++
		hold := api.Hold{Form: h.ask("T"), Session: "a", Call: "1", Use: strconv.Itoa(number)}
		release := h.hold(hold)
		err := user.Call(t.Context(), "respond_form", api.RespondFormRequest{FormRef: api.RefTo(hold.Form.String()), Answer: parley.Answer{Values: map[string]capabilities.Value{"decision": capabilities.String("once")}}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		release()
		hold.Form, hold.Call = capabilities.ID{}, "of what ran"
		return hold
	}
	report := func(of api.Hold, input string) {
		t.Helper()
		of.Input = input
		if w := h.send(t.Context(), http.MethodDelete, of); w.Code >= 400 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	hidden := allow()
	report(hidden, `{}`)
	report(api.Hold{Session: "a"}, "") // the end of the turn
	report(api.Hold{Session: "a", Whole: true}, "")
	if got := told(); len(got) != 0 {
		t.Errorf("told of what ran as it was allowed: %q", got)
	}
	report(hidden, `{"a":1}`)
	report(hidden, `{"a":2}`)
	if got := told(); len(got) != 1 || !strings.Contains(got[0], `{"a":1}`) {
		t.Errorf("after a false report it is told %q", got)
	}
	long := allow()
	long.Cut = true
	report(long, `{}`)
	if got := told(); len(got) != 2 {
		t.Errorf("of an input that no approval can have it is told %q", got)
	}
	for range maxRan {
		report(allow(), `{"a":3}`)
	}
	const last = "No more such messages"
	if got := told(); len(got) != maxRan || !strings.Contains(got[maxRan-1], last) || strings.Contains(got[maxRan-2], last) {
		t.Errorf("told %d times: %q", len(got), got)
	}
}

// TestCallsOfAGuestTakeNothingFromAnother has a guest make more calls than are kept until they end: another's is still known.
func TestCallsOfAGuestTakeNothingFromAnother(t *testing.T) {
	t.Parallel()
	h := &holds{server: &Server{}}
	call := func(as, use string) api.Hold { return api.Hold{Acting: api.Acting{As: as}, Session: "s", Use: use} }
	h.leave(h.add(&held{Hold: call("fae", "1")}))
	for i := range maxGone + 50 {
		h.leave(h.add(&held{Hold: call("bob", strconv.Itoa(i))}))
	}
	if h.ofUse(t.Context(), call("fae", "1")) == nil {
		t.Error("the call of another guest is forgotten")
	}
	if len(h.open) != 0 || len(h.gone["fae"]) != 1 || len(h.gone["bob"]) != maxGone || h.ofUse(t.Context(), call("bob", "0")) != nil {
		t.Errorf("%d and %d calls are kept", len(h.gone["fae"]), len(h.gone["bob"]))
	}
}

func TestFormsAreHeldOnTheSocketAlone(t *testing.T) {
	t.Parallel()
	node, s := openServer(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "http://127.0.0.1:7420"+api.HoldPath, strings.NewReader(`{}`))
	r.Header.Set("Authorization", "Bearer "+makeToken(t, node.Host(), "read", "ask", "answer", "admin"))
	w := httptest.NewRecorder()
	s.servePublic(w, r)
	if w.Code != http.StatusForbidden && w.Code != http.StatusNotFound {
		t.Errorf("a token's request is answered by %d %s", w.Code, w.Body)
	}
}
