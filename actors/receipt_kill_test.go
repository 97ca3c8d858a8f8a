package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// offeringNodeEnv is the environment variable with the folder of a node that offers mail until it is killed.
const offeringNodeEnv = "PARLEY_TEST_OFFERING_NODE"

// runOfferingNode runs a node whose agents send each other mail, which is offered to a reader, shown, handled and returned. It
// prints what was acknowledged of each message, a line each. It never returns.
func runOfferingNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "offering"})
	for i := range 4 {
		if err == nil {
			go func() {
				fmt.Println("failed", offerForever(ctx, n, fmt.Sprint("guest", i)))
				os.Exit(1)
			}()
		}
	}
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	select {}
}

func offerForever(ctx context.Context, n *Node, name string) error {
	a, err := n.ActAs(ctx, name)
	if parley.CodeOf(err) == parley.UnknownName {
		a, err = n.Host().Make(ctx, NewAgent{Kind: events.Guest, Name: name})
	}
	for k := 0; err == nil; k++ {
		if _, err = n.Host().Send(ctx, name, "hello"); err != nil {
			return err
		}
		err = offerOnce(ctx, a, fmt.Sprint(os.Getpid(), "-", k))
	}
	return err
}

// offerOnce offers what may be offered, and goes on with it by chance.
func offerOnce(ctx context.Context, a *Agent, token string) error {
	found, _, err := a.Unoffered(ctx, a.id, 5)
	if err != nil {
		return err
	}
	c := mailbox.OfferMessages{Reader: a.id, Token: token, Moment: "Stop"}
	for _, m := range found {
		c.Numbers = append(c.Numbers, m.Number)
	}
	numbers, err := a.Offer(ctx, c)
	tell := func(state events.MessageState) {
		for _, number := range numbers {
			fmt.Println(state, a.id, number, token)
		}
	}
	if tell(events.Offered); err != nil || len(numbers) == 0 {
		return err
	}
	switch rand.IntN(5) {
	case 0:
		return nil
	case 1:
		tell("returned") // a return that was not acknowledged may have happened
		return a.Return(ctx, mailbox.ReturnOffers{Reader: a.id, Tokens: []string{token}})
	}
	if err := a.Show(ctx, mailbox.ShowMessages{Reader: a.id, Token: token, Proof: "seen"}); err != nil {
		return err
	}
	if tell(events.Shown); rand.IntN(2) == 0 {
		return nil
	}
	if err := a.Handle(ctx, mailbox.HandleMessages{Reader: a.id, Numbers: numbers, How: events.WasRead}); err != nil {
		return err
	}
	tell(events.Handled)
	return nil
}

// acknowledgedMail is what a node acknowledged of a message before it was killed.
type acknowledgedMail struct {
	agent, number string
	state         string
	token         string
}

// TestReceiptsSurviveKills kills a node with SIGKILL repeatedly while its mail is offered, shown, handled and returned. What was
// acknowledged is there afterwards: a state is not less, and an offer that was not shown nor returned can be. In the end each
// sender knows what the recipient's log says.
func TestReceiptsSurviveKills(t *testing.T) {
	t.Parallel()
	rounds := 3
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		rounds = 100
	}
	folder := t.TempDir()
	seen := map[string]acknowledgedMail{}
	for range rounds {
		runAndKillOfferingNode(t, folder, seen)
	}
	n := openNode(t, folder)
	eventually.Holds(t, "all mail and all reports are delivered", func() bool {
		for _, m := range n.journal.Mailboxes() {
			if m.Summary.Outbox > 0 {
				return false
			}
		}
		return true
	})
	rank := map[string]uint8{"offered": 1, "shown": 2, "handled": 3, "returned": 0}
	open := map[string]map[uint64]bool{}
	for _, s := range seen {
		id, err := capabilities.ParseID(s.agent)
		if err != nil {
			t.Fatal(err)
		}
		a := &Agent{node: n, id: id}
		if open[s.agent] == nil {
			open[s.agent] = map[uint64]bool{}
			offers, err := a.Offers(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range offers {
				for _, number := range o.Numbers {
					open[s.agent][number] = true
				}
			}
		}
		ref, err := capabilities.ParseFormRef(s.number)
		if err != nil {
			t.Fatal(err)
		}
		number, _ := ref.Number()
		m := messageOf(t, a, number)
		if m.State.Rank() < rank[s.state] {
			t.Errorf("message %s of %s was %s, and is %s", s.number, s.agent, s.state, m.State)
		}
		if (m.State == events.Offered) != open[s.agent][number] {
			t.Errorf("message %s is %s, and in an offer: %t", s.number, m.State, open[s.agent][number])
		}
		sent, err := n.Host().Message(t.Context(), capabilities.FormID(m.MessageID))
		if err != nil || sent.State.Rank() < m.State.Rank() {
			t.Errorf("message %s is %s, and its sender knows %s, %v", s.number, m.State, sent.State, err)
		}
	}
	if _, err := n.Verify(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%d messages in %d rounds", len(seen), rounds)
}

// runAndKillOfferingNode runs a node, and kills it once it has acknowledged some things, which it adds to those seen.
func runAndKillOfferingNode(t *testing.T, folder string, seen map[string]acknowledgedMail) {
	t.Helper()
	left := 30 + rand.IntN(200)
	killNode(t, offeringNodeEnv, folder, func(words []string) (bool, error) {
		if words[0] == "failed" {
			return false, errors.New("it has failed")
		}
		seen[words[1]+words[2]] = acknowledgedMail{words[1], words[2], words[0], words[3]}
		left--
		return left >= 0, nil
	})
}
