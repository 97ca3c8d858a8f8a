package mailbox_test

import (
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestCallMadeAgainJoinsItsThread asks back about calls of two sessions of an agent, which withdraw them. The equal call joins the thread, and
// one with another input once the agent has replied there; no call of another session, part or tool does, and none twice.
func TestCallMadeAgainJoinsItsThread(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	one, other := v.NewID(), v.NewID()
	call := func(session capabilities.ID, tool, input, part string) mailbox.RequestApproval {
		return mailbox.RequestApproval{Permission: parley.Permission{Tool: tool, Input: input, Part: part, Folder: "/srv/shop"}, SessionAgent: session}
	}
	asks := func(c mailbox.RequestApproval) *events.FormRequested {
		t.Helper()
		asked := v.Must("fae", c)[0].(*events.FormRequested)
		v.Deliver(false)
		return asked
	}
	says := func(as string, to capabilities.ID, text string) *events.MessagePosted {
		t.Helper()
		posted := v.Must(as, mailbox.PostMessage{Reply: capabilities.FormID(to), Post: parley.Post{Text: text}})[0].(*events.MessagePosted)
		v.Deliver(false)
		return posted
	}
	withdraws := func(form capabilities.ID) {
		t.Helper()
		v.Must("fae", mailbox.CancelForm{Form: capabilities.FormID(form), Reason: "asked back"})
		v.Deliver(false)
	}
	restored := func() {
		t.Helper()
		snapshot, err := v.States["fae"].Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		s, err := mailbox.Restore(v.States["fae"].ID, snapshot)
		if err != nil {
			t.Fatal(err)
		}
		v.SetState("fae", s)
	}
	push := asks(call(one, "Bash", `{"command":"git push"}`, ""))
	question := says("host", push.ID, "which branch?")
	restored()
	withdraws(push.ID)
	restored()
	for name, c := range map[string]mailbox.RequestApproval{
		"another input before the reply": call(one, "Bash", `{"command":"ls"}`, ""),
		"another session":                call(other, "Bash", `{"command":"git push"}`, ""),
		"another part":                   call(one, "Bash", `{"command":"git push"}`, "sub"),
	} {
		if asked := asks(c); !asked.ReplyTo.IsZero() {
			t.Errorf("%s joins the thread", name)
		}
	}
	if reply := says("fae", question.Message, "main"); reply.Thread != push.ID {
		t.Errorf("the reply is in thread %s", reply.Thread)
	}
	restored()
	if asked := asks(call(one, "Write", `{"file_path":"a"}`, "")); !asked.ReplyTo.IsZero() {
		t.Error("a call of another tool joins the thread")
	}
	again := asks(call(one, "Bash", `{"command":"git push origin main"}`, ""))
	if again.ReplyTo != push.ID {
		t.Errorf("the call made again replies to %s, want %s", again.ReplyTo, push.ID)
	}
	if asked := asks(call(one, "Bash", `{"command":"make"}`, "")); !asked.ReplyTo.IsZero() {
		t.Error("a further call joins the thread")
	}

	// It is asked about again, and the thread goes on.
	second := says("host", again.ID, "sure?")
	if second.Thread != push.ID {
		t.Errorf("the second question is in thread %s", second.Thread)
	}
	restored()
	open := v.States["fae"]
	m, err := open.Mail.Find(capabilities.FormID(again.ID))
	if err != nil || len(m.Form.Questions()) != 1 || m.Thread() != push.ID {
		t.Fatalf("%v %v", m.Form.Questions(), err)
	}
	withdraws(again.ID)
	if third := asks(call(one, "Bash", `{"command":"git push origin main"}`, "")); third.ReplyTo != push.ID {
		t.Errorf("the equal call replies to %s", third.ReplyTo)
	}

	// What is decided after a question is over.
	build := asks(call(other, "Bash", `{"command":"make"}`, ""))
	says("host", build.ID, "why?")
	c, _, err := v.States["host"].DraftAnswer(mailbox.Reply{Form: capabilities.FormID(build.ID), Answer: parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: mailbox.Deny}}}}, v.Now, v.IDsOf("host"))
	if err != nil {
		t.Fatal(err)
	}
	v.Must("fae", c)
	v.Deliver(false)
	if asked := asks(call(other, "Bash", `{"command":"make"}`, "")); !asked.ReplyTo.IsZero() {
		t.Error("a call that was denied is joined")
	}
	v.CheckReplay()
}
