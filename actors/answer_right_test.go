package actors

import (
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// approvalRight asks an approval of the host, and returns a right of the host to answer it.
func approvalRight(t *testing.T, n *Node, asker *Agent, tool string) (view.Permitted, view.AnswerRight) {
	t.Helper()
	p, err := asker.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: tool, Input: `"ls"`}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := n.Host().GrantAnswer(t.Context(), mailbox.GrantAnswer{Form: capabilities.FormID(p.Form), Facet: capabilities.Facet{Uses: 1}, Name: "phone"})
	if err != nil {
		t.Fatal(err)
	}
	return p, r
}

func TestRightAnswersOnceForItsBearer(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	fae := guest(t, n, "fae")
	_, r := approvalRight(t, n, fae, "shell")
	if _, err := n.Credentials().AnswerWith(t.Context(), RightUse{Secret: r.Secret[:len(r.Secret)-1] + "x", Outcome: mailbox.Once}); parley.CodeOf(err) != parley.Unauthenticated {
		t.Fatalf("a guessed secret: %v", err)
	}
	if _, err := n.Credentials().AnswerWith(t.Context(), RightUse{Secret: r.Secret, Outcome: mailbox.Always}); parley.CodeOf(err) != parley.NotPermitted {
		t.Fatalf("an outcome that the right has not: %v", err)
	}
	grants, err := n.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil || len(grants) != 1 || grants[0].ID != r.Grant || strings.Join(grants[0].Outcomes, " ") != "deny once" {
		t.Fatalf("listed: %+v, %v", grants, err)
	}
	var wg sync.WaitGroup
	outcomes := make([]error, 8)
	for i := range outcomes {
		wg.Go(func() {
			_, outcomes[i] = n.Credentials().AnswerWith(t.Context(), RightUse{Secret: r.Secret, Outcome: []string{mailbox.Once, mailbox.Deny}[i%2]})
		})
	}
	wg.Wait()
	won := 0
	for _, err := range outcomes {
		switch parley.CodeOf(err) {
		case "":
			won++
		case parley.AlreadyAnswered, parley.NotPermitted:
		default:
			t.Errorf("a press at the same time: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d presses settled the form", won)
	}
	if grants, err := n.Host().Names().Grants(t.Context(), view.GrantFilter{}); err != nil || len(grants) != 0 {
		t.Errorf("the right to answer what has ended is listed: %+v, %v", grants, err)
	}
	closeNode(t, n)
	n = openNode(t, folder)
	if _, err := n.Credentials().AnswerWith(t.Context(), RightUse{Secret: r.Secret, Outcome: mailbox.Deny}); parley.CodeOf(err) != parley.AlreadyAnswered || !strings.Contains(err.Error(), "answered by") {
		t.Errorf("late, after a restart: %v", err)
	}
}

func TestRightEndsWithItsMaker(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	p, r := approvalRight(t, n, fae, "shell")
	made := makeToken(t, n.Host(), NewToken{Scopes: []string{mailbox.ScopeAnswer}})
	byToken, err := agentByToken(t, n, made.Text).GrantAnswer(t.Context(), mailbox.GrantAnswer{Form: capabilities.FormID(p.Form)})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Host().Tokens().Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	_, err = n.Credentials().AnswerWith(t.Context(), RightUse{Secret: byToken.Secret, Outcome: mailbox.Once})
	wantCode(t, "a right of a token that has ended", err, parley.Unauthenticated)
	if err := n.Host().Names().Revoke(t.Context(), r.Grant); err != nil {
		t.Fatal(err)
	}
	_, err = n.Credentials().AnswerWith(t.Context(), RightUse{Secret: r.Secret, Outcome: mailbox.Once})
	wantCode(t, "a revoked right", err, parley.NotPermitted)
	if o, err := n.Host().Answer(t.Context(), capabilities.FormID(p.Form), parley.Answer{Values: text("decision", mailbox.Once)}); err != nil || o.Status != view.StatusAnswered {
		t.Errorf("its maker can no longer answer: %+v, %v", o, err)
	}
}

// TestSpentRightCastsNoVoteAgain takes back a vote that was cast by a right with one use. The bearer cannot cast it again.
func TestSpentRightCastsNoVoteAgain(t *testing.T) {
	n := openNode(t, t.TempDir())
	asked, err := guest(t, n, "fae").Ask(t.Context(), parley.Form{To: "HOST", Description: "d", Fields: []events.Field{{Name: "a"}}, Need: 2})
	if err != nil {
		t.Fatal(err)
	}
	ref := capabilities.FormID(asked.Form)
	r, err := n.Host().GrantAnswer(t.Context(), mailbox.GrantAnswer{Form: ref, Facet: capabilities.Facet{Uses: 1}})
	if err != nil {
		t.Fatal(err)
	}
	use := RightUse{Secret: r.Secret, Outcome: "answer", Texts: []events.FieldText{{Name: "a", Text: "x"}}}
	if o, err := n.Credentials().AnswerWith(t.Context(), use); err != nil || o.Status != view.StatusVoted {
		t.Fatalf("%+v, %v", o, err)
	}
	awaitOwnVote(t, n.Host(), ref, view.VoteStands)
	if _, err := n.Host().Withdraw(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	awaitOwnVote(t, n.Host(), ref, "")
	_, err = n.Credentials().AnswerWith(t.Context(), use)
	wantCode(t, "a spent right", err, parley.NotPermitted)
}

// TestRepeatedUseIsOneVote sends the same answer to a form that needs two, by a right with two uses. Each time it is the
// vote that stands.
func TestRepeatedUseIsOneVote(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	asked, err := guest(t, n, "fae").Ask(t.Context(), parley.Form{To: "HOST", Description: "d", Fields: []events.Field{{Name: "a"}}, Need: 2})
	if err != nil {
		t.Fatal(err)
	}
	ref := capabilities.FormID(asked.Form)
	r, err := n.Host().GrantAnswer(t.Context(), mailbox.GrantAnswer{Form: ref, Facet: capabilities.Facet{Uses: 2}})
	if err != nil {
		t.Fatal(err)
	}
	use := func(text string, used uint32) {
		t.Helper()
		o, err := n.Credentials().AnswerWith(t.Context(), RightUse{Secret: r.Secret, Outcome: "answer", Texts: []events.FieldText{{Name: "a", Text: text}}})
		if err != nil || o.Status != view.StatusVoted || o.Votes == nil || len(o.Votes.Cast) != 1 {
			t.Fatalf("%+v, %v", o, err)
		}
		grants, err := n.Host().Names().Grants(t.Context(), view.GrantFilter{})
		if err != nil || len(grants) != 1 || grants[0].Used != used {
			t.Fatalf("want %d uses: %+v, %v", used, grants, err)
		}
	}
	for range 3 {
		use("x", 1)
	}
	awaitOwnVote(t, n.Host(), ref, view.VoteStands)
	use("x", 1)
	closeNode(t, n)
	n = openNode(t, folder)
	use("x", 1)
	use("y", 2)
	use("y", 2)
	_, err = n.Credentials().AnswerWith(t.Context(), RightUse{Secret: r.Secret, Outcome: "answer", Texts: []events.FieldText{{Name: "a", Text: "z"}}})
	wantCode(t, "a spent right", err, parley.NotPermitted)
}
