package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// TestFormsOfBeforeAStartEndUnlessTheyAreHeldAgain stops a node while processes wait for forms. One of them comes back. The node starts on the
// same machine, and on another, which has its log and not the file with its coding agents.
func TestFormsOfBeforeAStartEndUnlessTheyAreHeldAgain(t *testing.T) {
	t.Parallel()
	for name, elsewhere := range map[string]bool{"on the machine": false, "on another": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			startWithForms(t, elsewhere)
		})
	}
}

func startWithForms(t *testing.T, elsewhere bool) {
	h := openTestServer(t)
	done, err := register(t, h.server, api.Register{Program: "claude-code", Title: "Claude Code", Folder: "/home/a/app", Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	hold := api.Hold{Acting: api.Acting{As: done.Name}, Session: "s"}
	post := func(path string, body any) (release func()) {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		server := h.server
		go func() { // ends with ctx or the node
			defer close(ended)
			server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(string(text))))
		}()
		return func() { cancel(); <-ended }
	}
	open := func() map[string]view.Message {
		t.Helper()
		all := map[string]view.Message{}
		guest, err := h.node.ActAs(t.Context(), done.Name)
		if err != nil {
			t.Fatal(err)
		}
		for m, err := range guest.Mail().All(t.Context(), view.MessageFilter{All: true, Open: true}) {
			if err != nil {
				t.Fatal(err)
			}
			all[m.Title] = m
		}
		return all
	}
	approve := func(tool string) api.HeldAsk {
		return api.HeldAsk{Hold: hold, Approval: &api.ApproveRequest{Acting: hold.Acting, Approval: parley.Approval{Tool: tool, Input: json.RawMessage(`{}`)}}}
	}
	question := parley.Form{To: "@host", Title: "question", Description: "d", Fields: parley.Fields{{Name: "a", Type: events.Text}}}
	for _, ask := range []api.HeldAsk{approve("comes back"), approve("does not"), {Hold: hold, Question: &api.FormRequest{Acting: hold.Acting, Form: question}}} {
		defer post(api.HeldAskPath, ask)()
	}
	guest, err := h.node.ActAs(t.Context(), done.Name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := guest.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "by another way", Input: `{}`}}); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "all are asked", func() bool { return len(open()) == 4 })
	h.close()
	if elsewhere {
		if err := os.Remove(filepath.Join(h.folder, "coders.json")); err != nil {
			t.Fatal(err)
		}
	}
	h.open(nil)

	again := hold
	again.Form = open()["comes back"].MessageID
	release := post(api.HoldPath, again)
	eventually.Holds(t, "one is held again", func() bool { return h.server.holds.isHeld(again.Form) })
	eventually.Holds(t, "the others are found", func() bool {
		h.server.holds.mu.Lock()
		defer h.server.holds.mu.Unlock()
		return len(h.server.holds.abandoned) == 3
	})
	if all := open(); len(all) != 4 {
		t.Errorf("some have ended at once: %v", all)
	}
	h.server.holds.settle(t.Context())
	all := open()
	if _, held := all["comes back"]; !held || len(all) != 2 || all["by another way"].Number == 0 && all["by another way"].MessageID.IsZero() {
		t.Errorf("open are %v", all)
	}
	release()
	if all := open(); len(all) != 1 {
		t.Errorf("once it is held no more, open are %v", all)
	}
}

// TestWhatCannotBeWithdrawnIsTriedAgain has the end of a form fail in several ways: all but one may pass, as a full disk does.
func TestWhatCannotBeWithdrawnIsTriedAgain(t *testing.T) {
	t.Parallel()
	h := &holds{}
	tries := map[parley.Code]int{}
	for i, code := range []parley.Code{parley.Timeout, parley.ReadOnly, parley.AlreadyAnswered} {
		form := capabilities.ID{ULID: [16]byte{byte(i) + 1}}
		h.abandon(form, func(context.Context) error {
			tries[code]++
			return parley.Refuse(code, "for the test")
		})
	}
	h.settle(t.Context())
	h.settle(t.Context())
	if want := map[parley.Code]int{parley.Timeout: 2, parley.ReadOnly: 2, parley.AlreadyAnswered: 1}; !maps.Equal(tries, want) {
		t.Errorf("tried %v", tries)
	}
}

// TestEqualCallsAreCountedOverAStart allows one of two equal calls without IDs, and stops the node before the end of that is reported. Its
// report does not end the other, which waits for its own. Both are counted once.
func TestEqualCallsAreCountedOverAStart(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	done, err := register(t, h.server, api.Register{Program: "claude-code", Title: "Claude Code", Folder: "/home/a/app", Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	hold := api.Hold{Acting: api.Acting{As: done.Name}, Session: "s", Call: "1", Part: "a part"}
	guest := func() *actors.Agent {
		agent, err := h.node.ActAs(t.Context(), done.Name)
		if err != nil {
			t.Fatal(err)
		}
		return agent
	}
	open := func() (forms []capabilities.ID) {
		for m, err := range guest().Mail().All(t.Context(), view.MessageFilter{All: true, Open: true}) {
			if err != nil {
				t.Fatal(err)
			}
			forms = append(forms, m.MessageID)
		}
		return forms
	}
	post := func(path string, body any) (ended chan struct{}) {
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		server := h.server
		ended = make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(func() { cancel(); <-ended })
		go func() { // ends with ctx or the node
			defer close(ended)
			server.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, path, strings.NewReader(string(text))))
		}()
		return ended
	}
	end := func() {
		text, err := json.Marshal(hold)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodDelete, api.HoldPath, strings.NewReader(string(text))))
		if w.Code != http.StatusNoContent {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	restart := func() {
		h.close()
		h.open(nil)
	}
	ask := api.HeldAsk{Hold: hold, Approval: &api.ApproveRequest{Acting: hold.Acting, Approval: parley.Approval{Tool: "T", Input: json.RawMessage(`{}`)}}}
	post(api.HeldAskPath, ask)
	post(api.HeldAskPath, ask)
	eventually.Holds(t, "both are asked", func() bool { return len(open()) == 2 })
	first := open()[0]
	other := open()[1]
	m, err := h.node.Host().Message(t.Context(), capabilities.FormID(first))
	if err != nil {
		t.Fatal(err)
	}
	if got := h.node.Host().Decide(t.Context(), "", []parley.Decision{{Form: first, Digest: m.Digest, Decision: mailbox.Once}}); got[0].Err != nil {
		t.Fatal(got[0].Err)
	}
	restart()
	again := hold
	again.Form = other
	post(api.HoldPath, again)
	eventually.Holds(t, "the other is held again", func() bool { return h.server.holds.isHeld(other) })
	end() // of the first
	if left := open(); len(left) != 1 {
		t.Fatalf("the end of a call that was allowed before the start ends another: open are %v", left)
	}
	restart()
	post(api.HoldPath, again)
	eventually.Holds(t, "the other is held again", func() bool { return h.server.holds.isHeld(other) })
	end() // of the other, which was decided elsewhere
	if left := open(); len(left) != 0 {
		t.Errorf("a call that has ended counts again after a start: open are %v", left)
	}
}
