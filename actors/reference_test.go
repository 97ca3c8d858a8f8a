package actors

import (
	"fmt"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// passAround sends a reference to an agent of a from a to b, to c and back to a. Nodes b and c have it as "fae", and a as
// "back".
func passAround(t *testing.T, a, b, c *clusterNode) (fae *Agent) {
	t.Helper()
	fae = guest(t, a.Node, "fae")
	adoptReference(t, b.Host(), send(t, a.Host(), "b", "@fae").Message, "fae", "fae")
	adoptReference(t, c.Host(), send(t, b.Host(), "c", "@fae").Message, "fae", "fae")
	adoptReference(t, a.Host(), send(t, c.Host(), "a", "@fae").Message, "fae", "back")
	return fae
}

// openChain opens three nodes. Node b knows both others, and a and c do not know each other.
func openChain(t *testing.T) (a, b, c *clusterNode) {
	t.Helper()
	a, b, c = openClusterNode(t, "a", true), openClusterNode(t, "b", true), openClusterNode(t, "c", true)
	connectHosts(t, a, b)
	connectHosts(t, b, c)
	return a, b, c
}

func TestReturnedReferenceIsTheOriginal(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	fae := passAround(t, a, b, c)
	v, err := a.Host().Names().Show(t.Context(), "back", false)
	if ref, ok := v.AsRef(); err != nil || !ok || ref.Target != fae.id || ref.Kind != capabilities.KindAgent {
		t.Fatalf("the returned reference is %v, %v", v, err)
	}
	for i, host := range []*Agent{a.Host(), b.Host(), c.Host()} {
		name := []string{"back", "fae", "fae"}[i]
		asked := ask(t, host, parley.Form{To: name, Fields: textField("a")})
		awaitMessage(t, fae, asked.Form)
		if o, err := answerWith(fae, asked.Form, name); err != nil || o.Status != view.StatusAnswered {
			t.Errorf("host %d: %+v, %v", i, o, err)
		}
		awaitSameOutcome(t, asked.Form, view.StatusAnswered, host, fae)
		sent := send(t, host, name, fmt.Sprint("from host ", i))
		awaitMessage(t, fae, sent.Message)
	}
}

// TestReferenceIntroducesThirdNode has b send c a reference to an agent of a. Node c does not know a before.
func TestReferenceIntroducesThirdNode(t *testing.T) {
	t.Parallel()
	a, b, c := openChain(t)
	fae := guest(t, a.Node, "fae")
	adoptReference(t, b.Host(), send(t, a.Host(), "b", "@fae").Message, "fae", "fae")
	adoptReference(t, c.Host(), send(t, b.Host(), "c", "@fae").Message, "fae", "fae")
	closeNode(t, b.Node) // c has to reach a directly
	asked := ask(t, c.Host(), parley.Form{To: "fae", Fields: []events.Field{{Name: "a", Type: events.Capability}}})
	awaitMessage(t, fae, asked.Form)
	if o, err := answerWith(fae, asked.Form, "@self"); err != nil || o.Status != view.StatusAnswered && o.Status != view.StatusAnswering {
		t.Fatalf("%+v, %v", o, err)
	}
	awaitSameOutcome(t, asked.Form, view.StatusAnswered, c.Host(), fae)
}

// TestRevocationReachesEveryNode has a revoke its grant to b while c, which has a reference from b, is closed. Before that, a
// and b remove their names of the agent, which revokes nothing.
func TestRevocationReachesEveryNode(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	fae := passAround(t, a, b, c)
	for _, s := range []*clusterNode{a, b} {
		if err := s.Host().Names().Remove(t.Context(), "fae"); err != nil {
			t.Fatal(err)
		}
	}
	awaitMessage(t, fae, ask(t, c.Host(), parley.Form{To: "fae"}).Form)
	second := send(t, c.Host(), "fae", "and this")
	awaitMessage(t, fae, second.Message)

	closeNode(t, c.Node)
	revoke(t, a.Host(), fae)
	gone := func(s *clusterNode, to string) func() bool {
		return func() bool {
			_, err := s.Host().Send(t.Context(), to, "still there?")
			return parley.CodeOf(err) == parley.NotPermitted
		}
	}
	c.open(t)
	eventually.Holds(t, "c's reference is revoked", gone(c, "fae"))
	eventually.Holds(t, "the reference that c sent to a is revoked", gone(a, "back"))
	_, err := b.Host().Send(t.Context(), fae.id.String(), "by its ID?")
	if parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("b's reference: %v", err)
	}
	eventually.Holds(t, "all items are delivered", func() bool {
		return hasDelivered(t, a.Host()) && hasDelivered(t, b.Host()) && hasDelivered(t, c.Host())
	})
	in, err := fae.Mail().Inbox(t.Context(), view.MessageFilter{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range in.Messages {
		if e.Text == "still there?" && e.From == c.host {
			t.Errorf("c's message %d arrived after the revocation at home", e.Number)
		}
	}
}

// TestGrantorRevokesOnlyItsGrants has b revoke its grant to c. Nodes a and b keep their references.
func TestGrantorRevokesOnlyItsGrants(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	fae := guest(t, a.Node, "fae")
	adoptReference(t, b.Host(), send(t, a.Host(), "b", "@fae").Message, "fae", "fae")
	adoptReference(t, c.Host(), send(t, b.Host(), "c", "@fae").Message, "fae", "fae")
	closeNode(t, c.Node)
	revoke(t, b.Host(), fae)
	c.open(t)
	eventually.Holds(t, "c's reference is revoked", func() bool {
		_, err := c.Host().Send(t.Context(), "fae", "still there?")
		return parley.CodeOf(err) == parley.NotPermitted
	})
	awaitMessage(t, fae, send(t, b.Host(), "fae", "b has it").Message)
	awaitMessage(t, fae, send(t, a.Host(), "fae", "a has it").Message)
}
