package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// reviewedNodeEnv is the environment variable with the folder of a node whose agents are reviewed until it is killed.
const reviewedNodeEnv = "PARLEY_TEST_REVIEWED_NODE"

// runReviewedNode runs a node whose agent asks for calls, which a reviewer allows, denies or leaves to the host. It prints each call whose
// review has ended, with what the reviewer was told. It never returns.
func runReviewedNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "reviewed"})
	if err == nil {
		SetRisk(n, riskByInput)
		err = reviewForever(ctx, n)
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

// riskByInput returns the risk of a call of these tests: it says so itself.
func riskByInput(p *parley.Permission) mailbox.Risk {
	if strings.Contains(p.Input, "high") {
		return mailbox.Risk{Level: mailbox.HighRisk}
	}
	return mailbox.Risk{}
}

func reviewForever(ctx context.Context, n *Node) error {
	var agents [2]*Agent
	for i, name := range []string{"fae", "bob"} {
		a, err := n.ActAs(ctx, name)
		if parley.CodeOf(err) == parley.UnknownName {
			a, err = n.Host().Make(ctx, NewAgent{Kind: events.Guest, Name: name})
		}
		if err != nil {
			return err
		}
		agents[i] = a
	}
	fae, bob := agents[0], agents[1]
	if err := n.Host().Agents().SetPolicy(ctx, fae, mailbox.Review, &parley.ReviewTerms{Reviewer: "bob", Sample: 30, Wait: 3_600_000}); err != nil {
		return err
	}
	for k := 0; ; k++ {
		input := fmt.Sprintf(`"%s %d %d"`, []string{"low", "high"}[rand.IntN(2)], os.Getpid(), k)
		p, err := fae.Approve(ctx, mailbox.RequestApproval{Permission: parley.Permission{Tool: "run", Input: input}})
		if err != nil {
			return err
		}
		form, says := capabilities.FormID(p.Form), []string{mailbox.Once, mailbox.Once, mailbox.Deny}[rand.IntN(3)]
		if rand.IntN(4) == 0 {
			continue // it is left under review
		}
		o, err := bob.Answer(ctx, form, parley.Answer{Texts: []events.FieldText{{Name: "decision", Text: says}, {Name: "reason", Text: "because"}}})
		switch {
		case parley.CodeOf(err) == parley.NoSuchMessage: // its copy is on the way
			continue
		case err != nil:
			return err
		}
		fmt.Println(o.Status, p.Form, says, o.Allowed)
	}
}

// TestKilledNodeKeepsWhatAReviewerSaid kills a node with SIGKILL repeatedly while calls are reviewed. What the reviewer was told holds, no
// call of high risk is allowed, a review ends once, and each open call is with the reviewer or with the host.
func TestKilledNodeKeepsWhatAReviewerSaid(t *testing.T) {
	t.Parallel()
	rounds := 3
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		rounds = 100
	}
	folder := t.TempDir()
	told := map[string][]string{}
	for range rounds {
		left := 20 + rand.IntN(100)
		killNode(t, reviewedNodeEnv, folder, func(words []string) (bool, error) {
			if words[0] == "failed" {
				return false, errors.New("it has failed")
			}
			told[words[1]] = words
			left--
			return left > 0, nil
		})
	}
	n := openNode(t, folder)
	SetRisk(n, riskByInput)
	fae, err := n.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	bob, err := n.ActAs(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	l, err := fae.Log(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	asked, ended := 0, map[capabilities.ID]events.ReviewEnd{}
	for _, e := range l.Entries {
		switch e := e.Payload.(type) {
		case *events.ReviewAsked:
			asked++
		case *events.ReviewEnded:
			if was := ended[e.Form]; was != "" {
				t.Errorf("the review of %s ended as %s and as %s", e.Form, was, e.How)
			}
			ended[e.Form] = e.How
		}
	}
	for m, err := range fae.Mail().All(t.Context(), view.MessageFilter{All: true}) {
		if err != nil {
			t.Fatal(err)
		}
		how, form := ended[m.MessageID], capabilities.FormID(m.MessageID)
		if words := told[m.MessageID.String()]; words != nil && how == "" {
			t.Errorf("%s: the reviewer was told %v, and its review has not ended", m.MessageID, words)
		} else if words != nil && (words[3] == "true") != (m.Outcome != nil && m.Outcome.Allowed) {
			t.Errorf("%s: the reviewer was told %v: %+v", m.MessageID, words, m.Outcome)
		}
		if strings.Contains(m.Description, "high") && m.Outcome != nil && m.Outcome.Allowed {
			t.Errorf("a call of high risk was allowed: %+v", m)
		}
		if m.Outcome != nil {
			continue
		}
		holder, other := bob, n.Host()
		if how != "" {
			holder, other = other, holder
		}
		eventually.Holds(t, "it is with the one who decides", func() bool {
			open, err := holder.Message(t.Context(), form)
			return err == nil && open.AnswerNeeded
		})
		if also, err := other.Message(t.Context(), form); err == nil && also.AnswerNeeded {
			t.Errorf("%s is with both", m.MessageID)
		}
	}
	if _, err := n.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%d reviews, of which %d ended, in %d lives", asked, len(ended), rounds)
}
