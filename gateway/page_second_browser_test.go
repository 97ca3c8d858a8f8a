package gateway

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// askBoth asks a form that needs several answers, of the host and of ops, another host for whom the same person stands.
func (h *pageServer) askBoth(ops *actors.Agent, what parley.Form) (asked view.Asked) {
	h.t.Helper()
	asked = h.ask(what)
	h.passOn(ops, asked.Form)
	return asked
}

// passOn forwards a form to ops.
func (h *pageServer) passOn(ops *actors.Agent, form capabilities.ID) {
	h.t.Helper()
	eventually.Holds(h.t, "the host has the form", func() bool {
		_, err := h.node.Host().Message(h.t.Context(), capabilities.FormID(form))
		return err == nil
	})
	if err := h.node.Host().Forward(h.t.Context(), capabilities.FormID(form), "ops"); err != nil {
		h.t.Fatal(err)
	}
	eventually.Holds(h.t, "ops has the form", func() bool {
		_, err := ops.Message(h.t.Context(), capabilities.FormID(form))
		return err == nil
	})
}

// voteAsHost votes on a form as the host.
func (h *pageServer) voteAsHost(form capabilities.ID) {
	h.t.Helper()
	if _, err := h.node.Host().Answer(h.t.Context(), capabilities.FormID(form), parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "x"}}}); err != nil {
		h.t.Fatal(err)
	}
}

// second returns another host of the node.
func (h *pageServer) second() *actors.Agent {
	h.t.Helper()
	ops, err := h.node.Host().Make(h.t.Context(), actors.NewAgent{Kind: events.Host, Name: "ops"})
	if err != nil {
		h.t.Fatal(err)
	}
	return ops
}

// hasVoted reports whether ops has voted on a form.
func (h *pageServer) hasVoted(ops *actors.Agent, form capabilities.ID) bool {
	m, err := ops.Message(h.t.Context(), capabilities.FormID(form))
	return err == nil && m.Votes.Own != ""
}

// TestSecondVoteIsRefused begins a vote as another host for whom the person stands, and votes as itself meanwhile. The page says as whom it
// votes, and takes the form away once one person would vote twice. The vote that stands is withdrawn by its link, and the other may be given.
func TestSecondVoteIsRefused(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{390, 1280} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			h := openPageServer(t)
			ops := h.second()
			asked := h.askBoth(ops, parley.Form{Need: 3, Fields: []events.Field{{Name: "a"}}})
			b := h.openBrowser()
			b.do(chromedp.EmulateViewport(width, 800))
			b.open("/forms/" + asked.Form.String() + "?as=ops")
			b.live()
			b.reads("#alone .ask .votes-as", "You vote as ops. One person has one vote.")
			b.shotIfWanted(fmt.Sprintf("second-first-%d", width))
			b.fill("#alone .field input", "typed before")
			h.voteAsHost(asked.Form)
			b.reads("#alone .outcome", "You have voted as yourself. One person has one vote.") // while it is open
			b.reads("#alone .hint", "What you typed here was not sent.")
			b.until(`!document.querySelector("#alone form.ask")`)
			if wide := b.text(`document.documentElement.scrollWidth > innerWidth`); wide != "false" {
				t.Error("it is wider than its window")
			}
			b.shotIfWanted(fmt.Sprintf("second-said-%d", width))
			if h.hasVoted(ops, asked.Form) {
				t.Fatal("there is a second vote")
			}
			b.click("#alone .outcome a")
			b.until(`document.documentElement.dataset.live && !location.search.includes("as=") && document.querySelector("#alone [value=withdraw]")`)
			b.click("#alone [value=withdraw]")
			b.until(`document.querySelector("#alone form.ask")`)
			b.open("/forms/" + asked.Form.String() + "?as=ops")
			b.live()
			b.fill("#alone .field input", "now")
			b.click("#alone .ask .acts > button[value=answer]")
			eventually.Holds(t, "the vote is there", func() bool { return h.hasVoted(ops, asked.Form) })
			b.checkNoFaults()
		})
	}
}

// TestSecondVoteOnACallIsRefused votes on a call that two have to allow as another, and presses keys where the page says so.
func TestSecondVoteOnACallIsRefused(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ops := h.second()
	p, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"make"}`}, Need: 2})
	if err != nil {
		t.Fatal(err)
	}
	h.passOn(ops, p.Form)
	if d := ops.Decide(t.Context(), "", []parley.Decision{{Form: p.Form, Digest: h.digest(p), Decision: mailbox.Once}})[0]; d.Err != nil {
		t.Fatal(d.Err)
	}
	b := h.openBrowser()
	b.open("/forms/" + p.Form.String() + "?in=questions")
	b.live()
	b.reads(asking(p)+" .ask", "Allow once")
	b.reads(asking(p)+" .votes-as", "You vote as yourself. One person has one vote.")

	again, err := h.fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"make test"}`}, Need: 2})
	if err != nil {
		t.Fatal(err)
	}
	h.passOn(ops, again.Form)
	acting := actors.ActingFor(h.node.Host().ID(), ops)
	if d := acting.Decide(t.Context(), "", []parley.Decision{{Form: again.Form, Digest: h.digest(again), Decision: mailbox.Once}})[0]; d.Err != nil {
		t.Fatal(d.Err)
	}
	eventually.Holds(t, "the host's copy has the vote", func() bool {
		m, err := h.node.Host().Message(t.Context(), capabilities.FormID(again.Form))
		return err == nil && len(m.Votes.Cast) == 1
	})
	b.open("/forms/" + again.Form.String()) // in the list of what needs the person, the next item would be opened
	b.live()
	b.reads("#alone .outcome", "You have voted as ops. One person has one vote.")
	b.shotIfWanted("second-call")
	b.until(`!document.querySelector("#alone form.ask, #alone > [data-waits]")`)
	b.run(`document.querySelector("#alone > .message").focus()`)
	b.press("a")
	if m, err := h.node.Host().Message(t.Context(), capabilities.FormID(again.Form)); err != nil || m.Outcome != nil || m.Votes.Own != "" {
		t.Fatalf("a key votes a second time: %+v, %v", m.Votes, err)
	}
	b.checkNoFaults()
}

// TestElementRefusesASecondVote opens the form in the element for other pages.
func TestElementRefusesASecondVote(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ops := h.second()
	asked := h.askBoth(ops, parley.Form{Need: 3, Fields: []events.Field{{Name: "a"}}})
	b := h.openBrowser()
	b.openEmpty(`<parley-form as="ops" form="` + asked.Form.String() + `"></parley-form>`)
	b.readsWithin("form.ask .votes-as", "You vote as ops.")
	h.voteAsHost(asked.Form)
	b.readsWithin(".outcome", "You have voted as yourself. One person has one vote.")
	b.until(`!window.element.shadowRoot.querySelector("form.ask")`)
	b.checkNoFaults()
}

// TestVotedFormNeedsThePersonNoMore votes as the host on a form that other agents have too, for whom the same person stands. It
// waits for neither in the list of what needs the person, until the vote is taken back.
func TestVotedFormNeedsThePersonNoMore(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ops := h.second()
	helper, err := h.node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "helper"})
	if err != nil {
		t.Fatal(err)
	}
	asked := h.askBoth(ops, parley.Form{Need: 2, Fields: []events.Field{{Name: "a"}}})
	if err := h.node.Host().Forward(t.Context(), capabilities.FormID(asked.Form), "helper"); err != nil {
		t.Fatal(err)
	}
	needs := func(want bool) {
		t.Helper()
		eventually.Holds(t, fmt.Sprintf("the form is in the list: %t", want), func() bool {
			_, _, body := h.get("/questions", "text/html")
			return strings.Contains(body, asked.Form.String()) == want && strings.Contains(body, `<span id="count">`+map[bool]string{true: "1", false: "0"}[want]+`</span>`)
		})
	}
	waits := func(a *actors.Agent) bool {
		m, err := a.Message(t.Context(), capabilities.FormID(asked.Form))
		if err != nil {
			t.Fatal(err)
		}
		return m.AnswerNeeded
	}
	eventually.Holds(t, "the helper has the form", func() bool {
		_, err := helper.Message(t.Context(), capabilities.FormID(asked.Form))
		return err == nil
	})
	needs(true)
	h.voteAsHost(asked.Form)
	needs(false)
	if waits(helper) || !waits(ops) {
		t.Error("the form waits for one whose vote would replace the host's, or not for one who has a vote of its own")
	}
	if c, err := helper.Mail().Counts(t.Context()); err != nil || c.Pending != 0 {
		t.Errorf("the helper's inbox counts %+v, %v", c, err)
	}
	if _, err := h.node.Host().Withdraw(t.Context(), capabilities.FormID(asked.Form)); err != nil {
		t.Fatal(err)
	}
	needs(true)
	if !waits(helper) {
		t.Error("the form does not wait for the helper once the vote is taken back")
	}
}
