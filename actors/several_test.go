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

// station is a node with others around it. One that listens has a gate before it.
type station struct {
	*Node
	options Options
	gate    *gate
}

func openStation(tb testing.TB, name string, listens bool) *station {
	tb.Helper()
	s := &station{options: Options{Folder: tb.TempDir(), Name: name}}
	if listens {
		s.gate = newGate(tb)
		s.options.Peers, s.options.Public = "127.0.0.1:0", s.gate.address()
	}
	s.open(tb)
	return s
}

// open opens the node, for the first time or again.
func (s *station) open(tb testing.TB) {
	tb.Helper()
	s.Node = openWith(tb, s.options)
	if s.gate != nil {
		s.gate.aim(s.PeerAddress())
	}
}

// set sets the gates of stations that have one.
func set(p passage, stations ...*station) {
	for _, s := range stations {
		if s.gate != nil {
			s.gate.set(p)
		}
	}
}

// meet has each host hold the other's under the name of its node.
func meet(tb testing.TB, inviting, accepting *station) {
	tb.Helper()
	i, err := inviting.Host().Peers().Invite(tb.Context(), NewInvitation{Name: accepting.options.Name})
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := accepting.Host().Peers().Accept(tb.Context(), inviting.options.Name, i.Locator); err != nil {
		tb.Fatal(err)
	}
}

// trio opens three nodes that know each other. Nobody can dial a, so that b's gate is all there is between a and
// b, and c's all between c and the others.
func trio(tb testing.TB) (a, b, c *station) {
	tb.Helper()
	a, b, c = openStation(tb, "a", false), openStation(tb, "b", true), openStation(tb, "c", true)
	meet(tb, b, a)
	meet(tb, c, a)
	meet(tb, c, b)
	return a, b, c
}

// outOfReach waits until a node has noticed that another is.
func outOfReach(tb testing.TB, from, to *station) {
	tb.Helper()
	eventually.Holds(tb, to.options.Name+" is out of reach", func() bool { return !from.peers.Peer(to.id).InReach(tb.Context()) })
}

func send(tb testing.TB, a *Agent, to, text string) view.Sent {
	tb.Helper()
	sent, err := a.Send(tb.Context(), to, text)
	if err != nil {
		tb.Fatal(err)
	}
	return sent
}

// arrives waits until an agent has a message, and gives it.
func arrives(tb testing.TB, a *Agent, message capabilities.ID) (e view.Message) {
	tb.Helper()
	eventually.Holds(tb, "the message is there", func() bool {
		var err error
		e, err = a.Message(tb.Context(), capabilities.FormID(message))
		return err == nil
	})
	return e
}

// brings waits until a message that brings something is there, and binds it to a name.
func brings(tb testing.TB, a *Agent, message capabilities.ID, edge, name string) {
	tb.Helper()
	arrives(tb, a, message)
	if err := a.Adopt(tb.Context(), capabilities.FormID(message), edge, name); err != nil {
		tb.Fatal(err)
	}
}

// endsAlike waits until a form has ended in all of some mailboxes, and checks that it ended alike.
func endsAlike(tb testing.TB, form capabilities.ID, status view.FormStatus, home *Agent, holders ...*Agent) view.Outcome {
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
		if n := endsLogged(tb, a, form); n != 1 {
			tb.Errorf("mailbox %d has %d ends of the form in its log", i, n)
		}
	}
	return first
}

// endsLogged counts the ends of a form that a mailbox has written down.
func endsLogged(tb testing.TB, a *Agent, form capabilities.ID) (n int) {
	tb.Helper()
	entries, err := a.Log(tb.Context(), 0, 1<<20)
	if err != nil {
		tb.Fatal(err)
	}
	for _, e := range entries {
		switch e := e.Payload.(type) {
		case *events.FormAnswered:
			n += count(e.Form == form)
		case *events.FormCancelled:
			n += count(e.Form == form)
		}
	}
	return n
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

func answerWith(a *Agent, asked capabilities.ID, value string) (view.Outcome, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return a.Answer(ctx, Answer{Form: capabilities.FormID(asked), Texts: []events.FieldText{{Name: "a", Text: value}}})
}

// expectation is an Await on its way.
type expectation chan result[view.Outcome]

func awaiting(a *Agent, form capabilities.ID) expectation {
	ch := make(expectation, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		o, err := a.Await(ctx, capabilities.FormID(form))
		ch <- result[view.Outcome]{o, err}
	}()
	return ch
}

func TestAskedHereAnsweredThere(t *testing.T) {
	t.Parallel()
	a, b := openStation(t, "a", true), openStation(t, "b", true)
	meet(t, a, b)
	asked := ask(t, a.Host(), Ask{To: "b", Fields: []events.Field{{Name: "a", Type: events.Secret, Required: true}}})
	if asked.Unreachable {
		t.Error("b is in reach")
	}
	e := arrives(t, b.Host(), asked.Form)
	if e.FromName != "a" || !e.AnswerNeeded {
		t.Errorf("%+v", e)
	}
	awaited := awaiting(a.Host(), asked.Form)
	o, err := answerWith(b.Host(), asked.Form, "hush")
	if err != nil || o.Status != view.StatusAnswered || o.By != b.host {
		t.Fatalf("%+v, %v", o, err)
	}
	if r := <-awaited; r.err != nil || r.value.Values.Text() != `{"a":"hush"}` || r.value.ByName != "b" {
		t.Errorf("%+v", r)
	}
	endsAlike(t, asked.Form, view.StatusAnswered, a.Host(), b.Host())
	if _, err := answerWith(b.Host(), asked.Form, "again"); parley.CodeOf(err) != parley.AlreadyAnswered {
		t.Errorf("a second answer: %v", err)
	}
}

func TestSlowWaysOnlyTakeLonger(t *testing.T) {
	t.Parallel()
	a, b := openStation(t, "a", true), openStation(t, "b", false)
	meet(t, a, b)
	a.gate.slow(30 * time.Millisecond)
	var asked []view.Asked
	for range 20 {
		asked = append(asked, ask(t, a.Host(), Ask{To: "b"}))
	}
	for i, q := range asked {
		if e := arrives(t, b.Host(), q.Form); e.Number != uint64(i) {
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
		endsAlike(t, q.Form, view.StatusAnswered, a.Host(), b.Host())
	}
}
