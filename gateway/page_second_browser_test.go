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

// TestSecondVoteIsAnActOfItsOwn votes as the host, and then as another host for whom the person stands. The page says so
// before the press, and takes it once a box of its own is ticked.
func TestSecondVoteIsAnActOfItsOwn(t *testing.T) {
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
			b.until(`document.querySelector("#alone .ask") && !document.querySelector("#alone .second *")`)
			b.shotIfWanted(fmt.Sprintf("second-first-%d", width))
			b.fill("#alone .field input", "typed before")
			h.voteAsHost(asked.Form)
			b.reads("#alone .ask .second", "You have voted as yourself already.") // while it is open, and the input stays
			b.reads("#alone .ask .second label", "Vote as ops too")
			b.until(`document.querySelector("#alone .field input").value === "typed before"`)
			if wide := b.text(`document.documentElement.scrollWidth > innerWidth`); wide != "false" {
				t.Error("it is wider than its window")
			}
			b.shotIfWanted(fmt.Sprintf("second-said-%d", width))
			b.click("#alone .ask .acts > button[value=answer]")
			b.until(`document.activeElement.matches("#alone .ask .second input")`)
			b.run(`document.querySelector("#alone [value=decline]").closest("details").open = true`)
			b.click("#alone [value=decline]")
			b.until(`document.activeElement.matches("#alone .panel .second input")`)
			if h.hasVoted(ops, asked.Form) {
				t.Fatal("a press votes a second time, without the box")
			}
			b.click("#alone .ask .second input")
			b.click("#alone .ask .acts > button[value=answer]")
			eventually.Holds(t, "the second vote is there", func() bool { return h.hasVoted(ops, asked.Form) })
			b.until(`document.querySelector("#alone [data-status=voted], #alone > :not([data-as=ops])")`)
			b.shotIfWanted(fmt.Sprintf("second-voted-%d", width))
			b.checkNoFaults()
		})
	}
}

// TestSecondVoteOnACallIsAnActOfItsOwn decides on a call that two have to allow, by keys and buttons.
func TestSecondVoteOnACallIsAnActOfItsOwn(t *testing.T) {
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
	if b.text(`document.querySelector("#alone .second *")`) != "null" {
		t.Error("the vote of another person is told as the reader's")
	}

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
	b.open("/forms/" + again.Form.String() + "?in=questions")
	b.live()
	b.reads(asking(again)+" .second", "You have voted as ops already.")
	b.reads(asking(again)+" .second", "Vote as yourself too")
	b.shotIfWanted("second-call")
	b.until(`document.querySelector("#alone [data-keys], #alone > [data-keys]")`)
	b.press("a")
	b.until(`document.activeElement.matches("#alone .second input")`)
	if m, err := h.node.Host().Message(t.Context(), capabilities.FormID(again.Form)); err != nil || m.Outcome != nil || m.Votes.Own != "" {
		t.Fatalf("a key votes a second time: %+v, %v", m.Votes, err)
	}
	b.press(" ")
	b.click(asking(again) + " button[value=once]")
	if !h.permitted(again) {
		t.Error("it is denied")
	}
	b.checkNoFaults()
}

// TestElementTakesASecondVoteByItsBox opens the form in the element for other pages.
func TestElementTakesASecondVoteByItsBox(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	ops := h.second()
	asked := h.askBoth(ops, parley.Form{Need: 3, Fields: []events.Field{{Name: "a"}}})
	b := h.openBrowser()
	b.openEmpty(`<parley-form as="ops" form="` + asked.Form.String() + `"></parley-form>`)
	b.until(within("form.ask"))
	h.voteAsHost(asked.Form)
	b.readsWithin("form.ask .second", "You have voted as yourself already.")
	b.clickWithin(answerPart)
	b.until(`window.element.shadowRoot.activeElement?.matches(".second input")`)
	if h.hasVoted(ops, asked.Form) {
		t.Fatal("a press votes a second time, without the box")
	}
	b.clickWithin("form.ask .second input")
	b.clickWithin(answerPart)
	eventually.Holds(t, "the second vote is there", func() bool { return h.hasVoted(ops, asked.Form) })
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
