package actors

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// TestFormIsSettledAfterDisconnection disconnects two nodes after one ask and before another. One of the nodes listens, or
// both.
func TestFormIsSettledAfterDisconnection(t *testing.T) {
	for _, how := range []proxyMode{disconnected, stalled} {
		for _, who := range []string{"asker", "answerer", "both"} {
			t.Run(fmt.Sprintf("%s/%s listens", map[proxyMode]string{disconnected: "cut", stalled: "stalled"}[how], who), func(t *testing.T) {
				t.Parallel()
				a, b := openClusterNode(t, "a", who != "answerer"), openClusterNode(t, "b", who != "asker")
				if a.proxy != nil {
					connectHosts(t, a, b)
				} else {
					connectHosts(t, b, a)
				}
				disconnectAndReconnect(t, how, a, b)
			})
		}
	}
}

func disconnectAndReconnect(t *testing.T, how proxyMode, a, b *clusterNode) {
	t.Helper()
	before := ask(t, a.Host(), parley.Form{To: "b"})
	awaitMessage(t, b.Host(), before.Form)
	eventually.Holds(t, "a has recorded the ack", func() bool { return hasDelivered(t, a.Host()) })
	setMode(how, a, b)
	awaitUnreachable(t, a, b)

	asked := ask(t, a.Host(), parley.Form{To: "b"})
	if !asked.Unreachable {
		t.Error("b is shown as reachable")
	}
	awaited := startAwait(a.Host(), before.Form)
	o, err := answerWith(b.Host(), before.Form, "queued")
	if err != nil || o.Status != view.StatusAnswering || o.By != b.host {
		t.Fatalf("answered while disconnected: %+v, %v", o, err)
	}
	e, err := b.Host().Message(t.Context(), capabilities.FormID(before.Form))
	if err != nil || !e.Answering || e.AnswerNeeded || e.Outcome != nil {
		t.Errorf("queued: %+v, %v", e, err)
	}
	if _, err := answerWith(b.Host(), before.Form, "another"); parley.CodeOf(err) != parley.AnswerPending {
		t.Errorf("answered twice while disconnected: %v", err)
	}
	if e, err := a.Host().Message(t.Context(), capabilities.FormID(before.Form)); err != nil || e.Outcome != nil {
		t.Errorf("the home while disconnected: %+v, %v", e, err)
	}
	setMode(forwarding, a, b)

	if r := <-awaited; r.err != nil || r.value.Status != view.StatusAnswered || r.value.Values.Text() != `{"a":"queued"}` {
		t.Errorf("awaited: %+v", r)
	}
	awaitSameOutcome(t, before.Form, view.StatusAnswered, a.Host(), b.Host())
	if e := awaitMessage(t, b.Host(), asked.Form); e.Number != 1 {
		t.Errorf("asked while disconnected: %+v", e)
	}
	if o, err := answerWith(b.Host(), asked.Form, "healed"); err != nil || o.Status != view.StatusAnswered && o.Status != view.StatusAnswering {
		t.Errorf("answered after reconnection: %+v, %v", o, err)
	}
	awaitSameOutcome(t, asked.Form, view.StatusAnswered, a.Host(), b.Host())
}

// TestForwardWhileHomeIsUnreachable forwards a form to c while the forwarder cannot reach the home. The form reaches c once
// the home has the forward.
func TestForwardWhileHomeIsUnreachable(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	asked := ask(t, a.Host(), parley.Form{To: "b"})
	awaitMessage(t, b.Host(), asked.Form)
	b.proxy.setMode(disconnected)
	awaitUnreachable(t, b, a)
	if err := b.Host().Forward(t.Context(), capabilities.FormID(asked.Form), "c"); err != nil {
		t.Fatal(err)
	}
	e, err := b.Host().Message(t.Context(), capabilities.FormID(asked.Form))
	if err != nil || len(e.ForwardedTo) != 1 || e.ForwardedTo[0].ID != c.host || !e.AnswerNeeded {
		t.Errorf("queued: %+v, %v", e, err)
	}
	if _, err := c.Host().Message(t.Context(), capabilities.FormID(asked.Form)); parley.CodeOf(err) != parley.NoSuchMessage {
		t.Errorf("c has it already: %v", err)
	}
	b.proxy.setMode(forwarding)
	e = awaitMessage(t, c.Host(), asked.Form)
	if e.Forwarder != b.host || len(e.Chain) != 1 || e.Chain[0].ID != b.host {
		t.Errorf("forwarded: %+v", e)
	}
	if o, err := answerWith(c.Host(), asked.Form, "c's"); err != nil || o.Status != view.StatusAnswered {
		t.Fatalf("%+v, %v", o, err)
	}
	o := awaitSameOutcome(t, asked.Form, view.StatusAnswered, a.Host(), b.Host(), c.Host())
	if o.By != c.host || o.Values.Text() != `{"a":"c's"}` {
		t.Errorf("%+v", o)
	}
}

// TestQueuedAnswerAfterSettlement has c answer while b's answer is queued.
func TestQueuedAnswerAfterSettlement(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	asked := ask(t, a.Host(), parley.Form{To: "b"})
	awaitMessage(t, b.Host(), asked.Form)
	if err := b.Host().Forward(t.Context(), capabilities.FormID(asked.Form), "c"); err != nil {
		t.Fatal(err)
	}
	awaitMessage(t, c.Host(), asked.Form)
	b.proxy.setMode(disconnected)
	awaitUnreachable(t, b, a)
	if o, err := answerWith(b.Host(), asked.Form, "b's"); err != nil || o.Status != view.StatusAnswering {
		t.Fatalf("%+v, %v", o, err)
	}
	if o, err := answerWith(c.Host(), asked.Form, "c's"); err != nil || o.Status != view.StatusAnswered {
		t.Fatalf("%+v, %v", o, err)
	}
	b.proxy.setMode(forwarding)
	o := awaitSameOutcome(t, asked.Form, view.StatusAnswered, a.Host(), b.Host(), c.Host())
	if o.By != c.host || o.Values.Text() != `{"a":"c's"}` {
		t.Errorf("%+v", o)
	}
	_, err := answerWith(b.Host(), asked.Form, "again")
	if parley.CodeOf(err) != parley.AlreadyAnswered || !strings.Contains(err.Error(), `"c"`) || !strings.Contains(err.Error(), o.At.String()) {
		t.Errorf("the error of b names no answerer and no time: %v", err)
	}
}

// TestFormEndsAtHomeWhileHolderIsUnreachable cancels and expires forms at home while their holder is unreachable. The
// holder answers one of each meanwhile.
func TestFormEndsAtHomeWhileHolderIsUnreachable(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	a := &clusterNode{options: Options{Folder: t.TempDir(), Name: "a"}}
	a.options.Clock = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	a.open(t)
	b := openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	ends := []view.FormStatus{view.StatusCancelled, view.StatusCancelled, view.StatusExpired, view.StatusExpired}
	codes := []parley.Code{parley.AlreadyCancelled, parley.AlreadyCancelled, parley.AlreadyExpired, parley.AlreadyExpired}
	asked := make([]view.Asked, len(ends))
	for i, end := range ends {
		q := parley.Form{To: "b"}
		if end == view.StatusExpired {
			q.Deadline = a.now().Add(time.Hour)
		}
		asked[i] = ask(t, a.Host(), q)
		awaitMessage(t, b.Host(), asked[i].Form)
	}
	b.proxy.setMode(disconnected)
	awaitUnreachable(t, b, a)
	for i := 0; i < len(asked); i += 2 {
		if o, err := answerWith(b.Host(), asked[i].Form, "late"); err != nil || o.Status != view.StatusAnswering {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	for _, q := range asked[:2] {
		if _, err := a.Host().Cancel(t.Context(), capabilities.FormID(q.Form), "no need"); err != nil {
			t.Fatal(err)
		}
	}
	ahead.Store(int64(2 * time.Hour))
	for _, q := range asked {
		eventually.Holds(t, "it has ended at home", func() bool {
			e, err := a.Host().Message(t.Context(), capabilities.FormID(q.Form))
			return err == nil && e.Outcome != nil
		})
	}
	b.proxy.setMode(forwarding)
	for i, q := range asked {
		awaitSameOutcome(t, q.Form, ends[i], a.Host(), b.Host())
		if _, err := answerWith(b.Host(), q.Form, "too late"); parley.CodeOf(err) != codes[i] {
			t.Errorf("form %d answered after its end: %v", i, err)
		}
	}
}

// TestQueuedAnswersSurviveRestarts restarts the answerer's node and then the asker's, while an answer and a forward are
// queued.
func TestQueuedAnswersSurviveRestarts(t *testing.T) {
	t.Parallel()
	a, b, c := openThreeNodes(t)
	fae := guest(t, c.Node, "fae")
	gift := send(t, c.Host(), "b", "take @fae")
	adoptReference(t, b.Host(), gift.Message, "fae", "fae")
	answered, forwarded := ask(t, a.Host(), parley.Form{To: "b"}), ask(t, a.Host(), parley.Form{To: "b"})
	given := ask(t, a.Host(), parley.Form{To: "b", Fields: []events.Field{{Name: "a", Type: events.Capability}}})
	awaitMessage(t, b.Host(), given.Form)
	b.proxy.setMode(disconnected)
	awaitUnreachable(t, b, a)
	if err := b.Host().Forward(t.Context(), capabilities.FormID(forwarded.Form), "c"); err != nil {
		t.Fatal(err)
	}
	for form, value := range map[view.Asked]string{answered: "queued", given: "fae"} {
		if o, err := answerWith(b.Host(), form.Form, value); err != nil || o.Status != view.StatusAnswering {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	for _, s := range []*clusterNode{b, a} {
		closeNode(t, s.Node)
		s.open(t)
	}
	b.proxy.setMode(forwarding)
	awaitSameOutcome(t, answered.Form, view.StatusAnswered, a.Host(), b.Host())
	awaitSameOutcome(t, given.Form, view.StatusAnswered, a.Host(), b.Host())
	awaitMessage(t, c.Host(), forwarded.Form)
	if err := a.Host().Adopt(t.Context(), capabilities.FormID(given.Form), "@value", "brought"); err != nil {
		t.Fatal(err)
	}
	v, err := a.Host().Names().Show(t.Context(), "brought/a", false)
	if ref, ok := v.AsRef(); err != nil || !ok || ref.Target != fae.id {
		t.Fatalf("%v, %v", v, err)
	}
	used := ask(t, a.Host(), parley.Form{To: "brought/a"})
	awaitMessage(t, fae, used.Form)
}
