package actors

import (
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// reviewedNode returns a node whose agent fae is reviewed by bob. Calls whose input says so are of risk, or have a secret.
func reviewedNode(t *testing.T, folder string, terms parley.ReviewTerms) (n *Node, fae, bob *Agent) {
	t.Helper()
	n = openNode(t, folder)
	SetRisk(n, func(p *parley.Permission) mailbox.Risk {
		r := mailbox.Risk{Secret: strings.Contains(p.Input, "secret")}
		switch {
		case strings.Contains(p.Input, "high"):
			r.Level = mailbox.HighRisk
		case strings.Contains(p.Input, "some"):
			r.Level = mailbox.SomeRisk
		}
		return r
	})
	fae, bob = guest(t, n, "fae"), guest(t, n, "bob")
	terms.Reviewer = "bob"
	if err := n.Host().Agents().SetPolicy(t.Context(), fae, mailbox.Review, &terms); err != nil {
		t.Fatal(err)
	}
	return n, fae, bob
}

// review has an agent ask for a call, and the reviewer say something: a decision, or "" to leave it to the host.
func review(t *testing.T, fae, bob *Agent, input, says, reason string) (capabilities.FormRef, view.Outcome) {
	t.Helper()
	p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "run", Input: `{"x":"` + input + `"}`}})
	if err != nil || p.Form.IsZero() {
		t.Fatal(p, err)
	}
	form := capabilities.FormID(p.Form)
	var o view.Outcome
	if says == "" {
		o, err = bob.Decline(t.Context(), form, 0, reason)
	} else {
		o, err = bob.Answer(t.Context(), form, parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: says}, {Name: "reason", Text: reason}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return form, o
}

// TestReviewerDecidesWithinItsBound has a reviewer decide on calls of each risk. What it may not allow waits for the host, with its opinion,
// and what has a secret in it is not shown to it at all.
func TestReviewerDecidesWithinItsBound(t *testing.T) {
	n, fae, bob := reviewedNode(t, t.TempDir(), parley.ReviewTerms{})
	seen := func(a *Agent, form capabilities.FormRef) (m view.Message) {
		t.Helper()
		eventually.Holds(t, "the message is there", func() (ok bool) {
			var err error
			m, err = a.Message(t.Context(), form)
			return err == nil
		})
		return m
	}
	form, o := review(t, fae, bob, "some", mailbox.Once, "it is fine")
	if allowed, _, err := fae.AwaitApproval(t.Context(), form); err != nil || !allowed || o.Status != view.StatusAnswered || !o.Allowed {
		t.Errorf("allowed %v, %+v, %v", allowed, o, err)
	}
	m := seen(n.Host(), form)
	if m.AnswerNeeded || m.Outcome == nil || m.Outcome.By != bob.id || !m.Outcome.Allowed || m.Review == nil || m.Review.How != events.ReviewAllowed || m.Outcome.Text("reason") != "it is fine" {
		t.Errorf("to the host: %+v, %+v", m.Outcome, m.Review)
	}
	form, o = review(t, fae, bob, "some more", mailbox.Deny, "it is not fine")
	if allowed, _, err := fae.AwaitApproval(t.Context(), form); err != nil || allowed || o.Status != view.StatusAnswered {
		t.Errorf("allowed %v, %+v, %v", allowed, o, err)
	}
	for input, says := range map[string]string{"high": mailbox.Once, "low": ""} {
		form, o = review(t, fae, bob, input, says, "an <b>opinion</b>")
		m = seen(n.Host(), form)
		if o.Status != view.StatusSuperseded || !strings.Contains(o.Note, "handed on") || !m.AnswerNeeded || m.Review == nil || m.Review.Note != "an <b>opinion</b>" || m.Review.ByName != "bob" {
			t.Errorf("%s: %+v; to the host %+v, %+v", input, o, m, m.Review)
		}
		if _, err := bob.Answer(t.Context(), form, parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: mailbox.Once}}}); parley.CodeOf(err) != parley.AlreadyCancelled {
			t.Errorf("the reviewer answers again: %v", err)
		}
		if _, err := n.Host().Answer(t.Context(), form, parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: mailbox.Once}}}); err != nil {
			t.Error(err)
		}
		if allowed, _, err := fae.AwaitApproval(t.Context(), form); err != nil || !allowed {
			t.Error(allowed, err)
		}
	}
	p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "run", Input: `{"x":"secret"}`}})
	if err != nil {
		t.Fatal(err)
	}
	if m := seen(n.Host(), capabilities.FormID(p.Form)); !m.AnswerNeeded || m.Review != nil {
		t.Errorf("%+v", m)
	}
	if _, err := bob.Message(t.Context(), capabilities.FormID(p.Form)); parley.CodeOf(err) != parley.NoSuchMessage {
		t.Errorf("the reviewer has a call with a secret: %v", err)
	}
}

// TestReviewerWhoIsGoneIsPassedOver archives the reviewer, and lets the time for another pass. The host decides then.
func TestReviewerWhoIsGoneIsPassedOver(t *testing.T) {
	n, fae, bob := reviewedNode(t, t.TempDir(), parley.ReviewTerms{Wait: 1000})
	ask := func(input string) capabilities.FormRef {
		t.Helper()
		p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "run", Input: `"` + input + `"`}})
		if err != nil {
			t.Fatal(err)
		}
		return capabilities.FormID(p.Form)
	}
	for _, want := range []events.ReviewEnd{events.ReviewLate, events.ReviewUnreachable} {
		form := ask(string(want))
		var m view.Message
		eventually.Holds(t, "the host is asked", func() bool {
			var err error
			m, err = n.Host().Message(t.Context(), form)
			return err == nil
		})
		if !m.AnswerNeeded || m.Review == nil || m.Review.How != want {
			t.Fatalf("%+v, want %s", m.Review, want)
		}
		if want == events.ReviewLate {
			if err := n.Host().Agents().Archive(t.Context(), bob); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := n.Host().Agents().SetPolicy(t.Context(), fae, mailbox.Review, &parley.ReviewTerms{Reviewer: "bob", Sample: 1}); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("a reviewer that is archived: %v", err)
	}
}
