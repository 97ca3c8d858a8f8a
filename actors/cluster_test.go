package actors

import (
	"context"
	"strconv"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// clusterNode is one of several connected nodes. A node that listens has a proxy before its listener.
type clusterNode struct {
	*Node
	options Options
	proxy   *proxy
}

func openClusterNode(tb testing.TB, name string, listens bool) *clusterNode {
	tb.Helper()
	s := &clusterNode{options: Options{Folder: tb.TempDir(), Name: name}}
	if listens {
		s.proxy = newProxy(tb)
		s.options.Peers, s.options.Public = "127.0.0.1:0", s.proxy.address()
	}
	s.open(tb)
	return s
}

// open opens the node for the first time or again.
func (s *clusterNode) open(tb testing.TB) {
	tb.Helper()
	s.Node = openWith(tb, s.options)
	if s.proxy != nil {
		s.proxy.setTarget(s.PeerAddress())
	}
}

// setMode sets the mode of the nodes' proxies.
func setMode(m proxyMode, nodes ...*clusterNode) {
	for _, s := range nodes {
		if s.proxy != nil {
			s.proxy.setMode(m)
		}
	}
}

// connectHosts gives each host a reference to the other under the name of its node.
func connectHosts(tb testing.TB, inviting, accepting *clusterNode) {
	tb.Helper()
	i, err := inviting.Host().Peers().Invite(tb.Context(), NewInvitation{Name: accepting.options.Name})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := accepting.Host().Peers().Accept(tb.Context(), inviting.options.Name, i.Locator); err != nil {
		tb.Fatal(err)
	}
}

// openThreeNodes opens three nodes that know each other. Node a does not listen. So b's proxy has all traffic between a and
// b, and c's proxy all traffic between c and the others.
func openThreeNodes(tb testing.TB) (a, b, c *clusterNode) {
	tb.Helper()
	a, b, c = openClusterNode(tb, "a", false), openClusterNode(tb, "b", true), openClusterNode(tb, "c", true)
	connectHosts(tb, b, a)
	connectHosts(tb, c, a)
	connectHosts(tb, c, b)
	return a, b, c
}

// awaitUnreachable blocks until a node has noticed that another is unreachable.
func awaitUnreachable(tb testing.TB, from, to *clusterNode) {
	tb.Helper()
	eventually.Holds(tb, to.options.Name+" is unreachable", func() bool { return !from.peers.Peer(to.id).InReach(tb.Context()) })
}

func send(tb testing.TB, a *Agent, to, text string) view.Sent {
	tb.Helper()
	sent, err := a.Send(tb.Context(), to, text)
	if err != nil {
		tb.Fatal(err)
	}
	return sent
}

// awaitMessage blocks until an agent has a message, and returns it.
func awaitMessage(tb testing.TB, a *Agent, message capabilities.ID) (e view.Message) {
	tb.Helper()
	eventually.Holds(tb, "the message has arrived", func() bool {
		var err error
		e, err = a.Message(tb.Context(), capabilities.FormID(message))
		return err == nil
	})
	return e
}

// adoptReference blocks until a message has arrived, and binds its reference at edge to a name.
func adoptReference(tb testing.TB, a *Agent, message capabilities.ID, edge, name string) {
	tb.Helper()
	awaitMessage(tb, a, message)
	if err := a.Adopt(tb.Context(), capabilities.FormID(message), edge, name); err != nil {
		tb.Fatal(err)
	}
}

// awaitSameOutcome blocks until a form has ended in all mailboxes, and checks that all have the same outcome.
func awaitSameOutcome(tb testing.TB, form capabilities.ID, status view.FormStatus, home *Agent, holders ...*Agent) view.Outcome {
	tb.Helper()
	var first view.Outcome
	for i, a := range append([]*Agent{home}, holders...) {
		var e view.Message
		eventually.Holds(tb, "the form has ended for "+strconv.Itoa(i), func() bool {
			var err error
			e, err = a.Message(tb.Context(), capabilities.FormID(form))
			return err == nil && e.Outcome != nil
		})
		if i == 0 {
			first = *e.Outcome
		}
		if o := e.Outcome; o.Status != status || o.By != first.By || o.At != first.At || e.Answering {
			tb.Errorf("mailbox %d has %+v, the home %+v, want %s", i, o, first, status)
		}
		if n := countOutcomes(tb, a, form); n != 1 {
			tb.Errorf("mailbox %d has %d outcomes of the form in its log", i, n)
		}
	}
	return first
}

// countOutcomes counts a form's outcomes in a mailbox's log.
func countOutcomes(tb testing.TB, a *Agent, form capabilities.ID) (n int) {
	tb.Helper()
	logged, err := a.Log(tb.Context(), 0, 1<<20)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range logged.Entries {
		switch e := e.Payload.(type) {
		case *events.FormAnswered:
			n += boolCount(e.Form == form)
		case *events.FormCancelled:
			n += boolCount(e.Form == form)
		}
	}
	return n
}

func boolCount(is bool) int {
	if is {
		return 1
	}
	return 0
}

func answerWith(a *Agent, asked capabilities.ID, value string) (view.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return a.Answer(ctx, capabilities.FormID(asked), parley.Answer{Texts: []events.FieldText{{Name: "a", Text: value}}})
}

// pendingAwait receives the result of an Await in another goroutine.
type pendingAwait chan result[view.Outcome]

func startAwait(a *Agent, form capabilities.ID) pendingAwait {
	ch := make(pendingAwait, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		o, err := a.Await(ctx, capabilities.FormID(form))
		ch <- result[view.Outcome]{o, err}
	}()
	return ch
}

func TestFormIsAnsweredOnAnotherNode(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", true), openClusterNode(t, "b", true)
	connectHosts(t, a, b)
	asked := ask(t, a.Host(), parley.Form{To: "b", Fields: []events.Field{{Name: "a", Type: events.Secret, Required: true}}})
	if asked.Unreachable {
		t.Error("b is shown as unreachable")
	}
	e := awaitMessage(t, b.Host(), asked.Form)
	if e.FromName != "a" || !e.AnswerNeeded {
		t.Errorf("%+v", e)
	}
	awaited := startAwait(a.Host(), asked.Form)
	o, err := answerWith(b.Host(), asked.Form, "hush")
	if err != nil || o.Status != view.StatusAnswered || o.By != b.host {
		t.Fatalf("%+v, %v", o, err)
	}
	if r := <-awaited; r.err != nil || r.value.Values.Text() != `{"a":"hush"}` || r.value.ByName != "b" {
		t.Errorf("%+v", r)
	}
	awaitSameOutcome(t, asked.Form, view.StatusAnswered, a.Host(), b.Host())
	if _, err := answerWith(b.Host(), asked.Form, "again"); parley.CodeOf(err) != parley.AlreadyAnswered {
		t.Errorf("a second answer: %v", err)
	}
}

func TestSlowConnectionKeepsOrderAndAnswers(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", true), openClusterNode(t, "b", false)
	connectHosts(t, a, b)
	a.proxy.setDelay(30 * time.Millisecond)
	var asked []view.Asked
	for range 20 {
		asked = append(asked, ask(t, a.Host(), parley.Form{To: "b"}))
	}
	for i, q := range asked {
		if e := awaitMessage(t, b.Host(), q.Form); e.Number != uint64(i) {
			t.Errorf("form %d arrived as number %d", i, e.Number)
		}
	}
	for _, q := range asked {
		o, err := answerWith(b.Host(), q.Form, "slow")
		if err != nil || o.Status != view.StatusAnswered {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	for _, q := range asked {
		awaitSameOutcome(t, q.Form, view.StatusAnswered, a.Host(), b.Host())
	}
}
