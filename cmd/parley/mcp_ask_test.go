package main

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func TestToolsAreListedOnEveryTransport(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		m := h.connect(w, nil)
		if got := m.session.InitializeResult(); got.ProtocolVersion != w.version || !strings.Contains(got.Instructions, "never an instruction") {
			t.Errorf("%+v", got)
		}
		list, err := m.session.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 25 {
			t.Fatalf("%v %v", list, err)
		}
	})
}

func TestMethodsWithoutCapabilityAreRefused(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		m := h.connect(w, nil)
		if c := m.session.InitializeResult().Capabilities; c.Tools == nil || c.Prompts != nil || c.Resources != nil || c.Completions != nil {
			t.Errorf("%+v", c)
		}
		for method, call := range map[string]func() error{
			"prompts/list":             func() error { _, err := m.session.ListPrompts(t.Context(), nil); return err },
			"resources/list":           func() error { _, err := m.session.ListResources(t.Context(), nil); return err },
			"resources/templates/list": func() error { _, err := m.session.ListResourceTemplates(t.Context(), nil); return err },
		} {
			if no, ok := errors.AsType[*jsonrpc.Error](call()); !ok || no.Code != jsonrpc.CodeMethodNotFound {
				t.Errorf("%s: %v", method, no)
			}
		}
		if got := m.use("list_inbox", nil); got.Error != nil { // the session goes on
			t.Error(got.raw)
		}
	})
}

func TestAnswerArrivesWithinTheCall(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		m := h.connect(w, nil)
		var answering sync.WaitGroup
		answering.Go(func() { answer(t, h.node.Host(), awaitForm(t, h.node.Host()).MessageID.String(), "port", "443") })
		got := m.use("ask_user", portForm(nil))
		answering.Wait()
		if got.Status != "answered" || got.Values["port"] != 443.0 || got.By.Name != "@host" && got.By.Name != "HOST" {
			t.Errorf("%s", got.raw)
		}
	})
}

func TestSlowAnswerIsAwaitedByFurtherCalls(t *testing.T) {
	t.Parallel()
	onEveryTransport(t, func(t *testing.T, h *modelServer, w toolTransport) {
		m := h.connect(w, nil)
		got := m.use("ask_user", portForm(arguments{"timeoutSeconds": 0.1}))
		if got.Status != "pending" || got.Handle == "" {
			t.Fatalf("%s", got.raw)
		}
		handle := arguments{"handle": got.Handle, "timeoutSeconds": 0.1}
		if got = m.use("await_answer", handle); got.Status != "pending" {
			t.Fatalf("%s", got.raw)
		}
		var answering sync.WaitGroup
		answering.Go(func() { answer(t, h.node.Host(), handle["handle"].(string), "port", "443") })
		got = m.use("await_answer", arguments{"handle": handle["handle"]})
		answering.Wait()
		if got.Status != "answered" || got.Values["port"] != 443.0 {
			t.Errorf("%s", got.raw)
		}
		if again := m.use("await_answer", handle); again.raw != got.raw {
			t.Errorf("an answer changed: %s", again.raw)
		}
	})
}

func TestOutcomesOfAFormAreDistinct(t *testing.T) {
	t.Parallel()
	h := openModelServer(t)
	m := h.connect(toolTransport{"stdio", "2026-07-28"}, nil)
	host := h.node.Host()
	ask := func(more arguments) toolResult { return m.use("send_form", portForm(more)) }
	no, back, late := ask(nil), ask(nil), ask(arguments{"expiresInSeconds": 1})
	if _, err := host.Decline(t.Context(), mustRef(no.Handle), 0, "not today"); err != nil {
		t.Fatal(err)
	}
	if got := m.use("cancel_form", arguments{"form": back.Handle, "reason": "found it"}); got.Status != "cancelled" || got.Reason != "found it" {
		t.Errorf("%s", got.raw)
	}
	if got := m.use("await_answer", arguments{"handle": no.Handle}); got.Status != "declined" || got.Reason != "not today" {
		t.Errorf("%s", got.raw)
	}
	if got := m.use("await_answer", arguments{"handle": back.Handle}); got.Status != "cancelled" {
		t.Errorf("%s", got.raw)
	}
	if got := m.use("await_answer", arguments{"handle": late.Handle}); got.Status != "expired" {
		t.Errorf("%s", got.raw)
	}
}

func TestHandleSurvivesRestart(t *testing.T) {
	t.Parallel()
	for _, w := range []toolTransport{{"stdio", "2026-07-28"}, {"http", "2026-07-28"}, {"stdio", "2025-06-18"}} {
		t.Run(w.transport+" "+w.version, func(t *testing.T) {
			h := openModelServer(t)
			m := h.connect(w, nil)
			got := m.use("ask_user", portForm(arguments{"timeoutSeconds": 0}))
			if got.Status != "pending" {
				t.Fatalf("%s", got.raw)
			}
			h.close()
			h.open()
			answer(t, h.node.Host(), got.Handle, "port", "443")
			if got = m.use("await_answer", arguments{"handle": got.Handle}); got.Status != "answered" || got.Values["port"] != 443.0 {
				t.Errorf("%s", got.raw)
			}
		})
	}
}

func TestWaitSurvivesRestart(t *testing.T) {
	t.Parallel()
	h := openModelServer(t)
	m := h.connect(toolTransport{"stdio", "2026-07-28"}, nil)
	type ended struct {
		got toolResult
		err error
	}
	done := make(chan ended, 1)
	go func() {
		got, err := m.call(t.Context(), "ask_user", portForm(nil))
		done <- ended{got, err}
	}()
	form := awaitForm(t, h.node.Host()).MessageID.String()
	h.close()
	h.open()
	answer(t, h.node.Host(), form, "port", "443")
	if e := <-done; e.err != nil || e.got.Status != "answered" {
		t.Errorf("%s %v", e.got.raw, e.err)
	}
}

func TestAskWithSameKeyReturnsSameForm(t *testing.T) {
	t.Parallel()
	h := openModelServer(t)
	m := h.connect(toolTransport{"stdio", "2026-07-28"}, nil)
	ask := portForm(arguments{"key": "port", "timeoutSeconds": 0})
	first, again := m.use("ask_user", ask), m.use("ask_user", ask)
	if first.Handle == "" || first.Handle != again.Handle {
		t.Fatalf("%s %s", first.raw, again.raw)
	}
	answer(t, h.node.Host(), first.Handle, "port", "443")
	if got := m.use("send_form", portForm(arguments{"key": "port"})); got.Status != "answered" || got.Values["port"] != 443.0 {
		t.Errorf("%s", got.raw)
	}
}
