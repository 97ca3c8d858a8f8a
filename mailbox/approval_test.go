package mailbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
	"parley/mailbox/quota"
)

// TestEachOfSeveralEqualsOne compares SettleEach with the same decisions one after the other: it makes the same events and
// refuses the same. Some of the calls are identical. None of the rules says the same as another.
func TestEachOfSeveralEqualsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		together, alone := mailboxtest.New(t), mailboxtest.New(t)
		var several [2][]mailbox.SettleForm
		n := rapid.IntRange(1, 5).Draw(t, "forms")
		which := rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 0, n, rapid.ID[int]).Draw(t, "decided")
		decisions := rapid.SliceOfN(rapid.SampledFrom([]string{mailbox.Deny, mailbox.Once, mailbox.Always, mailbox.Never}), n, n).Draw(t, "decisions")
		ended := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "ended")
		for side, v := range []*mailboxtest.Harness{together, alone} {
			v.Add("host")
			v.Add("fae")
			for i := range n {
				v.Must("fae", mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: fmt.Sprint(i % 3), Folder: "/srv"}})
			}
			v.Deliver(false)
			for _, i := range which {
				c, _, err := v.States["host"].DraftAnswer(mailbox.Reply{Form: capabilities.FormNumber(uint64(i)), Answer: parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: decisions[i]}}}}, v.Now, v.IDsOf("host"))
				if err != nil {
					t.Fatal(err)
				}
				several[side] = append(several[side], c)
			}
			for i := range n {
				if ended[i] {
					v.Must("fae", mailbox.CancelForm{Form: capabilities.FormNumber(uint64(i))})
				}
			}
		}
		evs, refused := together.States["fae"].SettleEach(several[0], together.Now, together.IDsOf("fae"))
		together.Apply("fae", evs...)
		var want []string
		for i, c := range several[1] {
			made, err := alone.Decide("fae", c)
			if parley.CodeOf(err) != parley.CodeOf(refused[i]) {
				t.Fatalf("decision %d: together %v, alone %v", i, refused[i], err)
			}
			for _, e := range made {
				want = append(want, events.Name(e))
			}
		}
		var got []string
		for _, e := range evs {
			got = append(got, events.Name(e))
		}
		if !slices.Equal(got, want) || together.Snapshot("fae") != alone.Snapshot("fae") {
			t.Fatalf("together %v, alone %v", got, want)
		}
		said := map[string]bool{}
		for _, r := range together.States["fae"].Rules.Valid(together.Now) {
			says := fmt.Sprint(r.Tool, r.Allow, r.Words())
			if said[says] {
				t.Fatalf("two rules are %s", says)
			}
			said[says] = true
		}
	})
}

// TestEditedCallMakesNoRule answers approvals in any way. A rule follows only from an answer without another input, and a
// call is allowed with another input only where it was asked so.
func TestEditedCallMakesNoRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		v.Add("host")
		v.Add("fae")
		ask := mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"ls"}`}, Editable: rapid.Bool().Draw(t, "editable")}
		if rapid.Bool().Draw(t, "folder") {
			ask.Folder = "/srv"
		}
		v.Must("fae", ask)
		v.Deliver(false)
		texts := []events.FieldText{{Name: mailbox.DecisionField, Text: rapid.SampledFrom([]string{mailbox.Deny, mailbox.Once, mailbox.Always, mailbox.Never}).Draw(t, "decision")}}
		input := rapid.SampledFrom([]string{"", ask.Input, `{"command":"ls -l"}`, ` {"command":"ls"}`, `{}`, `"ls"`, `{"a":1,"a":2}`, "{"}).Draw(t, "input")
		for name, text := range map[string]string{mailbox.InputField: input, mailbox.UntilField: rapid.SampledFrom([]string{"", "2h", "never"}).Draw(t, "until")} {
			if text != "" {
				texts = append(texts, events.FieldText{Name: name, Text: text})
			}
		}
		c, _, err := v.States["host"].DraftAnswer(mailbox.Reply{Form: capabilities.FormNumber(0), Answer: parley.Answer{Texts: texts}}, v.Now, v.IDsOf("host"))
		if err != nil {
			return // it has no such field
		}
		evs, err := v.Decide("fae", c)
		if err != nil {
			if parley.CodeOf(err) != parley.InvalidAnswer {
				t.Fatal(err)
			}
			return
		}
		edited := mailbox.EditedInput(evs[0].(*events.FormAnswered).Values)
		if made := slices.ContainsFunc(evs, func(e events.Event) bool { _, ok := e.(*events.RuleAdded); return ok }); made && edited != "" {
			t.Fatalf("a rule follows from %q", edited)
		}
		if edited != "" && (!ask.Editable || edited == ask.Input || edited != input || texts[0].Text != mailbox.Once) {
			t.Fatalf("%+v allows the input %q", texts, edited)
		}
		result := v.States["fae"].ApprovalResult(v.Messages("fae")[0].Form, ask.Call())
		if result.Allowed && result.Input != edited {
			t.Fatalf("allowed is %q, answered %q", result.Input, edited)
		}
	})
}

// TestDecisionIsOfTheShownCall reads an approval as a decision about the call that it shows, and about others. Only the
// first allows anything, and only by the host.
func TestDecisionIsOfTheShownCall(t *testing.T) {
	agent, host := capabilities.ID{ULID: ulid.ULID{15: 1}}, capabilities.ID{ULID: ulid.ULID{15: 2}}
	s := &mailbox.State{ID: agent, Profile: mailbox.Profile{Host: host}}
	answered := func(by capabilities.ID) *mailbox.Form {
		return &mailbox.Form{
			Question: mailbox.Question{FormRequested: &events.FormRequested{Kind: events.Approval, From: agent, Title: "shell", Description: `{"command":"ls"}`}},
			Outcome:  mailbox.Outcome{Answered: &events.FormAnswered{By: by, Values: capabilities.Record(map[string]capabilities.Value{"decision": capabilities.String(mailbox.Once)})}},
		}
	}
	if !s.ApprovalResult(answered(host), (&parley.Permission{Tool: "shell", Input: `{"command":"ls"}`}).Call()).Allowed {
		t.Error("the call that was shown is not allowed")
	}
	for _, other := range [][2]string{{"shell", `{"command":"ls -l"}`}, {"terminal", `{"command":"ls"}`}, {"", ""}} {
		if s.ApprovalResult(answered(host), (&parley.Permission{Tool: other[0], Input: other[1]}).Call()).Allowed {
			t.Errorf("%q is allowed, and was not shown", other)
		}
	}
	if s.ApprovalResult(answered(host), "").Allowed || s.ApprovalResult(answered(agent), (&parley.Permission{Tool: "shell", Input: `{"command":"ls"}`}).Call()).Allowed {
		t.Error("no call, or one that the agent decided itself, is allowed")
	}
}

// TestFolderIsOfTheCall asks about equal calls in two folders, with and without votes. Each is a call of its own, and who
// received it knows its folder.
func TestFolderIsOfTheCall(t *testing.T) {
	for _, need := range []uint32{1, 2} {
		v := mailboxtest.New(t)
		v.Add("host")
		v.Add("fae")
		digests := map[string]string{}
		for i, folder := range []string{"/", "/tmp/scratch", ""} {
			v.Must("fae", mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"rm -rf ."}`, Folder: folder}, Need: need})
			v.Deliver(false)
			f := v.Messages("host")[i].Form
			if f.Permission().Folder != folder || digests[f.Digest()] != "" {
				t.Errorf("need %d: the call in %q has the folder %q and the digest of %q", need, folder, f.Permission().Folder, digests[f.Digest()])
			}
			digests[f.Digest()] = folder + "."
		}
		other := v.Messages("host")[1].Form.Digest()
		_, _, err := v.States["host"].DraftAnswer(mailbox.Reply{Form: capabilities.FormNumber(0), Answer: parley.Answer{Digest: other, Texts: []events.FieldText{{Name: "decision", Text: mailbox.Once}}}}, v.Now, v.IDsOf("host"))
		if parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("need %d: the call in / is allowed as that in /tmp/scratch: %v", need, err)
		}
	}
}

// TestCallThatCannotBeAllowed asks for an asker that cannot be told that it may make the call. No standing rule and no host
// allows it.
func TestCallThatCannotBeAllowed(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	call := mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `{"command":"ls"}`, Folder: "/srv"}}
	settle := func(form uint64, decision string) error {
		c, _, err := v.States["host"].DraftAnswer(mailbox.Reply{Form: capabilities.FormNumber(form), Answer: parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: decision}}}}, v.Now, v.IDsOf("host"))
		if err == nil {
			v.Must("fae", c)
			v.Deliver(false)
		}
		return err
	}
	v.Must("fae", call)
	v.Deliver(false)
	if err := settle(0, mailbox.Always); err != nil {
		t.Fatal(err)
	}
	call.DenyOnly = true
	if evs := v.Must("fae", call); len(evs) != 1 || events.Name(evs[0]) != "FormRequested" {
		t.Fatalf("a rule decides: %v", evs)
	}
	v.Deliver(false)
	for _, decision := range []string{mailbox.Once, mailbox.Always, mailbox.Never} {
		if err := settle(1, decision); parley.CodeOf(err) != parley.InvalidAnswer {
			t.Errorf("it takes %s: %v", decision, err)
		}
	}
	if err := settle(1, mailbox.Deny); err != nil {
		t.Error(err)
	}
	if f := v.Messages("fae")[1].Form; v.States["fae"].ApprovalResult(f, f.Permission().Call()).Decision != mailbox.Deny || f.Fields[0].Help == "" {
		t.Errorf("the form is %+v", f)
	}
}

// TestOpenApprovalsAreBounded has an agent ask for as many approvals as may be open, and for another, and again when one has
// ended. Its forms are counted apart.
func TestOpenApprovalsAreBounded(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	s := v.States["fae"]
	const most = 40
	l := &quota.Limits{Quotas: quota.Agent()}
	l.Quotas[quota.Forms], l.Quotas[quota.Approvals] = 1, most
	ask := func() error {
		return v.DecideWithin("fae", l, mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: `"x"`}})
	}
	for range most {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Errorf("one more: %v", err)
	}
	if evs, err := s.Decide(mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d", Fields: []events.Field{{Name: "f"}}}}, v.Now, v.NewID); err != nil || len(evs) != 1 {
		t.Errorf("a form: %v, %v", evs, err)
	}
	newest, all := s.Mail.Approvals(3)
	if all != most || len(newest) != 3 || newest[2].Number != most-1 || newest[0].Number != most-3 {
		t.Errorf("%d approvals, the newest %v", all, newest)
	}
	if err := s.Apply(events.Recorded{At: v.Now, Event: &events.FormCancelled{Form: newest[1].Form.ID, Reason: events.Cancelled, By: s.ID, Date: v.Now}}); err != nil {
		t.Fatal(err)
	}
	if err := ask(); err != nil {
		t.Errorf("after the end of one: %v", err)
	}
	if newest, _ := s.Mail.Approvals(3); newest[1].Number != most-1 || newest[0].Number != most-3 {
		t.Errorf("the newest are %v", newest)
	}
}

// TestDecisionIsOfWhatWasSaid asks about one call with several reasons and parts. It is one call, and each approval has the
// digest of its own: none is decided by that of another.
func TestDecisionIsOfWhatWasSaid(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	digests := map[string]bool{}
	for i, said := range []parley.Permission{{}, {Reason: "to ship it"}, {Reason: "to try it"}, {Part: "to ship it"}} {
		said.Tool, said.Input, said.Folder = "shell", `{"command":"make"}`, "/srv/shop"
		v.Must("fae", mailbox.RequestApproval{Permission: said})
		v.Deliver(false)
		asked, shown := v.Messages("fae")[i].Form, v.Messages("host")[i].Form.Permission()
		if shown.Reason != said.Reason || shown.Part != said.Part || shown.Call() != said.Call() || asked.Digest() != shown.Digest() || digests[shown.Digest()] {
			t.Errorf("%+v is shown as %+v, by the digest %s of %v", said, shown, shown.Digest(), digests)
		}
		digests[shown.Digest()] = true
	}
	answer := func(n uint64, digest string) error {
		_, _, err := v.States["host"].DraftAnswer(mailbox.Reply{Form: capabilities.FormNumber(n), Answer: parley.Answer{Digest: digest, Texts: []events.FieldText{{Name: "decision", Text: mailbox.Once}}}}, v.Now, v.IDsOf("host"))
		return err
	}
	if err := answer(1, v.Messages("host")[2].Form.Digest()); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("a call is decided by what is said of another: %v", err)
	}
	if err := answer(1, v.Messages("host")[1].Form.Digest()); err != nil {
		t.Error(err)
	}
	call := parley.Permission{Tool: "shell", Input: "1"}
	for name, wrong := range map[string]struct {
		ask  func(*parley.Permission)
		code parley.Code
	}{
		"a long reason":  {func(p *parley.Permission) { p.Reason = strings.Repeat("x", 5<<10) }, parley.TooLarge},
		"a long part":    {func(p *parley.Permission) { p.Part = strings.Repeat("x", 300) }, parley.TooLarge},
		"no UTF-8":       {func(p *parley.Permission) { p.Reason = "\xff" }, parley.InvalidArgument},
		"offers as well": {func(p *parley.Permission) { p.Offers = []parley.Offer{{ID: "call"}} }, parley.InvalidArgument},
	} {
		asks := call
		wrong.ask(&asks)
		if _, err := v.Decide("fae", mailbox.RequestApproval{Permission: asks}); parley.CodeOf(err) != wrong.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}
