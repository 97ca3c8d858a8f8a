package actors

import (
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// voteOn answers a form as an agent.
func voteOn(t *testing.T, a *Agent, ref capabilities.FormRef) view.Outcome {
	t.Helper()
	o, err := a.Answer(t.Context(), ref, parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "x"}}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// awaitOwnVote returns the state of an agent's vote in its copy of a form, once it is as wanted.
func awaitOwnVote(t *testing.T, a *Agent, ref capabilities.FormRef, want view.OwnVote) view.Message {
	t.Helper()
	var m view.Message
	eventually.Holds(t, "the vote of "+a.id.String()+" to be "+string(want), func() bool {
		var err error
		m, err = a.Message(t.Context(), ref)
		return err == nil && m.Votes != nil && m.Votes.Own == want
	})
	return m
}

// TestVotesAcrossNodes decides a form by two of three nodes. One of them takes its vote back, votes again, and votes while
// the home does not respond. Who is late learns that its answer does not count.
func TestVotesAcrossNodes(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	fae := guest(t, a.Node, "fae")
	holders := []*Agent{a.Host(), b.Host(), c.Host()}
	ref := capabilities.FormID(askAndForward(t, fae, holders, parley.Form{To: "HOST", Need: 2, Veto: new(bool)}))
	o := voteOn(t, b.Host(), ref)
	if o.Status != view.StatusVoted || o.Votes == nil || o.Votes.Have != 1 || o.Votes.Need != 2 {
		t.Fatalf("the first vote: %+v, %+v", o, o.Votes)
	}
	if m := awaitOwnVote(t, b.Host(), ref, view.VoteStands); m.AnswerNeeded || len(m.Votes.Waiting) != 0 {
		t.Fatalf("the voter's copy: %+v", m.Votes)
	}
	if m, err := fae.Message(t.Context(), ref); err != nil || m.Votes.Have != 1 || len(m.Votes.Waiting) != 1 || m.Votes.Waiting[0].ID != c.Host().id {
		t.Fatalf("the asker's form: %+v, %v", m.Votes, err)
	}
	if queued, err := b.Host().Withdraw(t.Context(), ref); err != nil || queued {
		t.Fatal(queued, err)
	}
	if m := awaitOwnVote(t, b.Host(), ref, ""); !m.AnswerNeeded || m.Votes.Have != 0 {
		t.Fatalf("after the withdrawal: %+v", m.Votes)
	}
	if _, err := b.Host().Withdraw(t.Context(), ref); parley.CodeOf(err) != parley.InvalidArgument {
		t.Fatalf("no vote to withdraw: %v", err)
	}
	b.proxy.setMode(stalled)
	done := make(chan view.Outcome, 1)
	go func() {
		o, _ := b.Host().Answer(t.Context(), ref, parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "y"}}})
		done <- o
	}()
	if o := <-done; o.Status != view.StatusAnswering {
		t.Fatalf("while the home does not respond: %+v", o)
	}
	behind := make(chan error, 1)
	BeginAnswer(t.Context(), b.Host(), ref, parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "y"}}}, func(_ view.Outcome, err error) { behind <- err })
	b.proxy.setMode(forwarding)
	if err := <-behind; err != nil {
		t.Fatalf("an answer behind one that is on its way: %v", err)
	}
	awaitOwnVote(t, b.Host(), ref, view.VoteStands)
	if o := voteOn(t, c.Host(), ref); o.Status != view.StatusAnswered || fieldText(o, "a") != "x" {
		t.Fatalf("the last vote: %+v", o)
	}
	awaitOwnVote(t, b.Host(), ref, view.VoteCounted)
	awaitOwnVote(t, c.Host(), ref, view.VoteCounted)
	_, err := a.Host().Answer(t.Context(), ref, parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "z"}}})
	if parley.CodeOf(err) != parley.AlreadyAnswered || !strings.Contains(parley.AsError(err).Hint, "does not count") {
		t.Fatalf("a late answer: %v", err)
	}
	if _, err := b.Host().Withdraw(t.Context(), ref); parley.CodeOf(err) != parley.AlreadyAnswered {
		t.Fatalf("a withdrawal after the end: %v", err)
	}
}

// TestWithdrawalWhileHomeIsUnreachable takes a vote back while its home cannot be reached. The withdrawal survives a restart
// of the voter's node, and the home records it once.
func TestWithdrawalWhileHomeIsUnreachable(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	fae := guest(t, a.Node, "fae")
	ref := capabilities.FormID(askAndForward(t, fae, []*Agent{a.Host(), b.Host(), c.Host()}, parley.Form{To: "HOST", Need: 2}))
	voteOn(t, b.Host(), ref)
	awaitOwnVote(t, b.Host(), ref, view.VoteStands)
	setMode(disconnected, a, b)
	awaitUnreachable(t, a, b)
	if queued, err := b.Host().Withdraw(t.Context(), ref); err != nil || !queued {
		t.Fatalf("while the home cannot be reached: %t, %v", queued, err)
	}
	if m, err := b.Host().Message(t.Context(), ref); err != nil || !m.Answering || m.AnswerNeeded {
		t.Fatalf("the voter's copy: %+v, %v", m, err)
	}
	if _, err := b.Host().Withdraw(t.Context(), ref); parley.CodeOf(err) != parley.AnswerPending {
		t.Fatalf("a second withdrawal: %v", err)
	}
	closeNode(t, b.Node)
	b.open(t)
	setMode(forwarding, a, b)
	if m := awaitOwnVote(t, b.Host(), ref, ""); m.Votes.Have != 0 {
		t.Fatalf("after the withdrawal: %+v", m.Votes)
	}
	eventually.Holds(t, "the withdrawal to be acknowledged", func() bool {
		m, err := b.Host().Message(t.Context(), ref)
		return err == nil && !m.Answering && m.AnswerNeeded
	})
	if o := voteOn(t, c.Host(), ref); o.Status != view.StatusVoted || o.Votes.Have != 1 {
		t.Fatalf("the vote of another: %+v", o)
	}
	if o := voteOn(t, b.Host(), ref); o.Status != view.StatusAnswered {
		t.Fatalf("the new vote: %+v", o)
	}
}

// TestApprovalNeedsHostAndAnother asks for a call that two have to allow. It may be made once the host and the host of
// another node have allowed it.
func TestApprovalNeedsHostAndAnother(t *testing.T) {
	t.Parallel()
	a, b, _ := openThreeNodes(t)
	fae := guest(t, a.Node, "fae")
	input := `{"command":"ls"}`
	p, err := fae.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "shell", Input: input}, Need: 2})
	if err != nil {
		t.Fatal(err)
	}
	ref := capabilities.FormID(p.Form)
	if err := a.Host().Forward(t.Context(), ref, "b"); err != nil {
		t.Fatal(err)
	}
	awaitMessage(t, b.Host(), p.Form)
	decide := func(h *Agent) Decided {
		return h.Decide(t.Context(), "", []parley.Decision{{Form: p.Form, Digest: digestOf(t, fae, p.Form), Decision: mailbox.Once}})[0]
	}
	if d := b.Host().Decide(t.Context(), "", []parley.Decision{{Form: p.Form, Digest: strings.Repeat("0", 64), Decision: mailbox.Once}})[0]; parley.CodeOf(d.Err) != parley.InvalidArgument {
		t.Fatalf("another call than the one that was shown: %+v", d)
	}
	if d := decide(b.Host()); d.Err != nil || d.Outcome.Status != view.StatusVoted {
		t.Fatalf("the vote of another: %+v", d)
	}
	if m, err := fae.Message(t.Context(), ref); err != nil || len(m.Votes.Waiting) != 1 || m.Votes.Waiting[0].ID != a.Host().id {
		t.Fatalf("the asker's approval: %+v, %v", m.Votes, err)
	}
	if d := decide(a.Host()); d.Err != nil || d.Outcome.Status != view.StatusAnswered {
		t.Fatalf("the host's decision: %+v", d)
	}
	if allowed, o, err := fae.AwaitApproval(t.Context(), ref); err != nil || !allowed || o.Digest != digestOf(t, fae, p.Form) {
		t.Fatalf("the call: %t, %+v, %v", allowed, o, err)
	}
}

// checkSecondVote checks that a second vote was refused with some words, and with no ID.
func checkSecondVote(t *testing.T, err error, words string) {
	t.Helper()
	e := parley.AsError(err)
	if err == nil || e.Code != parley.NotPermitted || e.Fields[mailbox.SecondVote] == "" || len(e.Fields) != 1 || !strings.Contains(e.Message, words) {
		t.Errorf("the second vote: %v %v", err, e)
	}
}

// TestOnePersonVotesOnce votes as two hosts that one person stands for. The second vote needs to be wanted as one; that of
// another person does not.
func TestOnePersonVotesOnce(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	defer closeNode(t, n)
	ops, err := n.Host().Make(t.Context(), NewAgent{Kind: events.Host, Name: "ops"})
	if err != nil {
		t.Fatal(err)
	}
	fae := guest(t, n, "fae")
	asked := func() capabilities.FormRef {
		asked := ask(t, fae, parley.Form{To: "HOST", Need: 2})
		awaitMessage(t, n.Host(), asked.Form)
		if err := n.Host().Forward(t.Context(), capabilities.FormID(asked.Form), "ops"); err != nil {
			t.Fatal(err)
		}
		awaitMessage(t, ops, asked.Form)
		return capabilities.FormID(asked.Form)
	}
	person := n.Host().ID()
	answer := func(a *Agent, ref capabilities.FormRef) (view.Outcome, error) {
		return a.Answer(t.Context(), ref, parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "x"}}})
	}
	host := n.Host()
	named := map[*Agent]string{host: "HOST", ops: "ops"}
	for _, first := range []*Agent{host, ops} {
		second := ops
		if first == ops {
			second = host
		}
		ref := asked()
		if o, err := answer(ActingFor(person, first), ref); err != nil || o.Status != view.StatusVoted {
			t.Fatal(o, err)
		}
		eventually.Holds(t, "the form says as whom the person has voted", func() bool {
			m, err := ActingFor(person, second).Message(t.Context(), ref)
			in, failed := ActingFor(person, second).Mail().Inbox(t.Context(), view.MessageFilter{Pending: true})
			return err == nil && failed == nil && m.Votes.VotedAs != nil && *m.Votes.VotedAs == view.Party{ID: first.id, Name: named[first]} &&
				in.Messages[len(in.Messages)-1].Votes.VotedAs != nil
		})
		if m, err := ops.Message(t.Context(), ref); err != nil || m.Votes.VotedAs != nil {
			t.Errorf("another person is told of the vote as if it were its own: %+v, %v", m.Votes, err)
		}
		_, err := answer(ActingFor(person, second), ref)
		checkSecondVote(t, err, fmt.Sprintf("you have voted as %q already, and this votes as %q", named[first], named[second]))
		_, err = ActingFor(person, second).Decline(t.Context(), ref, 0, "")
		checkSecondVote(t, err, named[first])
		later := make(chan error, 1)
		BeginAnswer(t.Context(), ActingFor(person, second), ref, parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "x"}}}, func(_ view.Outcome, err error) { later <- err })
		checkSecondVote(t, <-later, named[first])
		if o, err := answer(ActingFor(person, first), ref); err != nil || o.Status != view.StatusVoted {
			t.Errorf("the same vote again: %v, %v", o, err)
		}
		if o, err := answer(VotingAgain(ActingFor(person, second), true), ref); err != nil || o.Status != view.StatusAnswered {
			t.Errorf("a second vote that is wanted: %v, %v", o, err)
		}
	}
	ref := asked()
	if _, err := answer(ops, ref); err != nil { // by a token of its own
		t.Fatal(err)
	}
	if o, err := answer(ActingFor(person, n.Host()), ref); err != nil || o.Status != view.StatusAnswered {
		t.Errorf("the vote of another person: %v, %v", o, err)
	}
}
