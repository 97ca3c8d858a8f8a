package actors

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
	"parley/mailbox/proof"
)

// requestNamed asks a host for something, to have it as a name.
func requestNamed(tb testing.TB, a *Agent, to, name string) view.Asked {
	tb.Helper()
	asked, err := a.Requests().Send(tb.Context(), parley.Request{To: to, Text: "whom may I ask?", Name: name})
	if err != nil {
		tb.Fatal(err)
	}
	return asked
}

// resolve answers a request that an agent has got.
func resolve(tb testing.TB, a *Agent, form capabilities.ID, path string, narrow capabilities.Facet) {
	tb.Helper()
	awaitMessage(tb, a, form)
	if _, err := a.Requests().Resolve(tb.Context(), capabilities.FormID(form), path, narrow); err != nil {
		tb.Fatal(err)
	}
}

// textsOf returns the texts and descriptions of what came from an agent, in order.
func textsOf(tb testing.TB, a *Agent, from capabilities.ID) (all []string) {
	tb.Helper()
	in, err := a.Mail().Inbox(tb.Context(), view.MessageFilter{All: true})
	if err != nil {
		tb.Fatal(err)
	}
	for _, m := range in.Messages {
		if m.From == from {
			all = append(all, m.Text+m.Description)
		}
	}
	return all
}

// shownTo returns a message as its agent sees it.
func shownTo(tb testing.TB, a *Agent, id capabilities.ID) view.Message {
	tb.Helper()
	m, err := a.Message(tb.Context(), capabilities.FormID(id))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// TestMailToAnAnswerGoesOnWithIt queues messages and a form for what a request will be answered with, over a new start of the node.
func TestMailToAnAnswerGoesOnWithIt(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openNode(t, folder)
	fae := guest(t, n, "fae")
	guest(t, n, "worker")
	asked := requestNamed(t, fae, "HOST", "helper")
	first := send(t, fae, "helper", "first, from @me:@self")
	form := ask(t, fae, parley.Form{To: "helper", Description: "which port?", Name: "port", Key: "port"})
	reply, err := fae.Reply(t.Context(), capabilities.FormID(first.Message), "last")
	if err != nil {
		t.Fatal(err)
	}
	if again := ask(t, fae, parley.Form{To: "helper", Description: "which port?", Name: "port", Key: "port"}); again.Form != form.Form {
		t.Errorf("the same key is the form %s, not %s", again.Form, form.Form)
	}
	if m := shownTo(t, fae, first.Message); m.Promised == nil || m.Promised.Number != asked.Number || m.ToName != "helper" || m.Delivered {
		t.Errorf("the queued message is shown as %+v", m)
	}
	if m := shownTo(t, fae, asked.Form); len(m.ToFollow) != 3 || m.ToFollow[1].Type != "form" || m.ToFollow[1].Words != "which port?" {
		t.Errorf("behind the request there are %+v", m.ToFollow)
	}
	closeNode(t, n)
	n = openNode(t, folder)
	fae = agentNamed(t, n, "fae")
	worker := agentNamed(t, n, "worker")
	if got := textsOf(t, worker, fae.ID()); got != nil {
		t.Fatalf("before the answer, the worker has %q", got)
	}
	ended := make(chan view.Outcome, 1)
	go func() {
		o, err := fae.Await(t.Context(), capabilities.FormID(form.Form))
		if err != nil {
			t.Error(err)
		}
		ended <- o
	}()
	resolve(t, n.Host(), asked.Form, "worker", capabilities.Facet{})
	awaitMessage(t, worker, reply.Message)
	later := send(t, fae, "helper", "later")
	awaitMessage(t, worker, later.Message)
	if got := textsOf(t, worker, fae.ID()); fmt.Sprint(got) != "[first, from @me which port? last later]" {
		t.Errorf("the worker has %q", got)
	}
	adoptReference(t, worker, first.Message, "me", "boss")
	awaitMessage(t, fae, send(t, worker, "boss", "thanks").Message)
	if _, err := worker.Answer(t.Context(), capabilities.FormID(form.Form), parley.Answer{Values: text("a", "80")}); err != nil {
		t.Fatal(err)
	}
	if o := <-ended; o.Status != view.StatusAnswered || o.By != worker.ID() {
		t.Errorf("who waited is told %+v", o)
	}
	eventually.Holds(t, "all is delivered", func() bool { return shownTo(t, fae, first.Message).Delivered })
	if m := shownTo(t, fae, first.Message); m.Promised != nil || m.To != worker.ID() || m.ToName != "helper" {
		t.Errorf("the sent message is shown as %+v", m)
	}
	if m := shownTo(t, fae, asked.Form); m.ToFollow != nil {
		t.Errorf("behind the request there is still %+v", m.ToFollow)
	}
}

func agentNamed(tb testing.TB, n *Node, name string) *Agent {
	tb.Helper()
	a, err := n.ActAs(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// TestMailToAnAnswerEndsWithIt ends requests in all ways: what was queued ends with the reason, and nothing is sent.
func TestMailToAnAnswerEndsWithIt(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae, host := guest(t, n, "fae"), n.Host()
	worker := guest(t, n, "worker")
	folder := t.TempDir()
	if _, err := ResourcesOf(host).Make(t.Context(), NewResource{Name: "notes", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: folder}}, false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, why string
		end       func(form view.Asked) error
	}{
		{"declined", `not sent: form %d, whose answer it was for, was declined: "nobody is free"`, func(form view.Asked) error {
			_, err := host.Decline(t.Context(), capabilities.FormID(form.Form), 0, "nobody is free")
			return err
		}},
		{"cancelled", "not sent: form %d, whose answer it was for, was cancelled", func(form view.Asked) error {
			_, err := fae.Cancel(t.Context(), capabilities.FormID(form.Form), "")
			return err
		}},
		{"folder", `not sent: "folder" is a folder, which gets no mail`, func(form view.Asked) error {
			_, err := host.Requests().Resolve(t.Context(), capabilities.FormID(form.Form), "notes", capabilities.Facet{})
			return err
		}},
		{"reader", "not sent: the reference is for reading only", func(form view.Asked) error {
			_, err := host.Requests().Resolve(t.Context(), capabilities.FormID(form.Form), "worker", capabilities.Facet{Mode: capabilities.ReadOnly})
			return err
		}},
	} {
		form := requestNamed(t, fae, "HOST", c.name)
		sent, asked := send(t, fae, c.name, "hello"), ask(t, fae, parley.Form{To: c.name, Description: "which port?", Name: c.name + "-port"})
		behind := send(t, fae, c.name+"-port/a", "and further")
		awaitMessage(t, host, form.Form)
		if err := c.end(form); err != nil {
			t.Fatal(c.name, err)
		}
		want := c.why
		if strings.Contains(want, "%d") {
			want = fmt.Sprintf(want, form.Number)
		}
		if m := shownTo(t, fae, sent.Message); m.Refused != want || m.Promised != nil || m.Delivered || m.ToName != c.name {
			t.Errorf("%s: the message was refused with %q, not %q: %+v", c.name, m.Refused, want, m)
		}
		o, err := fae.Await(t.Context(), capabilities.FormID(asked.Form))
		if err != nil || o.Status != view.StatusCancelled || o.Note != want {
			t.Errorf("%s: the form has ended as %+v (%v)", c.name, o, err)
		}
		if m := shownTo(t, fae, behind.Message); !strings.HasPrefix(m.Refused, fmt.Sprintf("not sent: form %d, whose answer it was for, was cancelled", asked.Number)) {
			t.Errorf("%s: what was behind the form was refused with %q", c.name, m.Refused)
		}
	}
	if got := textsOf(t, worker, fae.ID()); got != nil {
		t.Errorf("the worker has %q", got)
	}
}

// TestQueuedMailIsCancelled ends one of what is queued, and the rest goes on.
func TestQueuedMailIsCancelled(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae, worker := guest(t, n, "fae"), guest(t, n, "worker")
	asked := requestNamed(t, fae, "HOST", "helper")
	gone, form, kept := send(t, fae, "helper", "gone"), ask(t, fae, parley.Form{To: "helper"}), send(t, fae, "helper", "kept")
	for _, id := range []capabilities.ID{gone.Message, form.Form} {
		if o, err := fae.Cancel(t.Context(), capabilities.FormID(id), "a mistake"); err != nil || o.Status != view.StatusCancelled {
			t.Errorf("it is cancelled as %+v (%v)", o, err)
		}
	}
	resolve(t, n.Host(), asked.Form, "worker", capabilities.Facet{})
	awaitMessage(t, worker, kept.Message)
	if got := textsOf(t, worker, fae.ID()); fmt.Sprint(got) != "[kept]" {
		t.Errorf("the worker has %q", got)
	}
	if m := shownTo(t, fae, gone.Message); m.Refused != "cancelled: a mistake" {
		t.Errorf("the message that was cancelled is shown as refused with %q", m.Refused)
	}
	if _, err := fae.Cancel(t.Context(), capabilities.FormID(kept.Message), ""); parley.CodeOf(err) != parley.NotAForm {
		t.Errorf("a message that was sent is cancelled with %v", err)
	}
}

// TestUsesOfAnAnswerGoOnWithIt queues uses of a folder that is not given yet, over a new start of the node.
func TestUsesOfAnAnswerGoOnWithIt(t *testing.T) {
	t.Parallel()
	state, dir := t.TempDir(), t.TempDir()
	n := openNode(t, state)
	fae := guest(t, n, "fae")
	if _, err := ResourcesOf(n.Host()).Make(t.Context(), NewResource{Name: "notes", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: dir}}, false); err != nil {
		t.Fatal(err)
	}
	asked := requestNamed(t, fae, "HOST", "notes")
	write := func(a *Agent, name, key string, wait time.Duration) (view.Use, error) {
		return ResourcesOf(a).Use(t.Context(), Used{Name: "notes", Verb: "write", Key: key, Wait: wait, Input: map[string]capabilities.Value{
			"path": capabilities.String(name), "content": capabilities.String("x"),
		}})
	}
	var uses []view.Use
	for i := range 3 {
		u, err := write(fae, fmt.Sprint("f", i), fmt.Sprint("k", i), 0)
		if err != nil || u.State != view.UseQueued {
			t.Fatalf("a use is %+v (%v)", u, err)
		}
		uses = append(uses, u)
	}
	if _, err := write(fae, "other", "k0", 0); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("another use with the same key is refused with %v", err)
	}
	if o, err := fae.Cancel(t.Context(), capabilities.FormID(uses[1].Use), ""); err != nil || o.Status != view.StatusCancelled {
		t.Errorf("a use is cancelled as %+v (%v)", o, err)
	}
	closeNode(t, n)
	n = openNode(t, state)
	fae = agentNamed(t, n, "fae")
	if m := shownTo(t, fae, asked.Form); len(m.ToFollow) != 2 || m.ToFollow[0].Type != "use" || !strings.HasPrefix(m.ToFollow[0].Words, "write {") {
		t.Errorf("behind the request there are %+v", m.ToFollow)
	}
	waited := make(chan view.Use, 1)
	go func() {
		u, err := write(fae, "f2", "k2", eventually.Patience)
		if err != nil {
			t.Error(err)
		}
		waited <- u
	}()
	resolve(t, n.Host(), asked.Form, "notes", capabilities.Facet{Uses: 2})
	if u := <-waited; u.State != view.UseDone || u.Use != uses[2].Use {
		t.Errorf("the use has ended as %+v", u)
	}
	for i, want := range []string{view.UseDone, view.UseDenied, view.UseDone} {
		u, err := write(fae, fmt.Sprint("f", i), fmt.Sprint("k", i), eventually.Patience)
		if err != nil || u.State != want {
			t.Errorf("use %d is %+v (%v), not %s", i, u, err, want)
		}
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprint("f", i))); (err == nil) != (want == view.UseDone) {
			t.Errorf("of use %d, which is %s, the file: %v", i, want, err)
		}
	}
	if _, err := write(fae, "f3", "k3", eventually.Patience); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a third use of two is refused with %v", err)
	}
}

// cutLine ends the line to a mailbox as a delivery that could not be made does.
type cutLine struct{ to capabilities.ID }

func (m cutLine) handle(b *mailboxActor) (*line, error) {
	l := b.lineTo(m.to)
	l.Break()
	return l, nil
}

// TestUseWaitsForItsGrant resolves a request with a resource whose mailbox cannot be delivered to at that moment, as when a node was killed
// and much is on its way. The holder uses it, and gives it on: neither is refused when the later grant comes before the first.
func TestUseWaitsForItsGrant(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := openNode(t, t.TempDir())
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	if _, err := ResourcesOf(n.Host()).Make(t.Context(), NewResource{Name: "notes", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: dir}}, false); err != nil {
		t.Fatal(err)
	}
	asked := requestNamed(t, fae, "HOST", "notes")
	write := func(a *Agent, name string) view.Use {
		t.Helper()
		u, err := ResourcesOf(a).Use(t.Context(), Used{Name: "notes", Verb: "write", Wait: eventually.Patience, Input: map[string]capabilities.Value{
			"path": capabilities.String(name), "content": capabilities.String("x"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	wrote := make(chan view.Use, 1)
	go func() { wrote <- write(fae, "queued") }()
	home := resourceNamed(t, n, "notes")
	eventually.Holds(t, "the use is queued", func() bool { return len(shownTo(t, fae, asked.Form).ToFollow) == 1 })
	cut, err := call(t.Context(), n.Host(), cutLine{home})
	if err != nil {
		t.Fatal(err)
	}
	resolve(t, n.Host(), asked.Form, "notes", capabilities.Facet{})
	needs := requestNamed(t, bob, "HOST", "notes")
	if err := n.Host().Forward(t.Context(), capabilities.FormID(needs.Form), "fae"); err != nil {
		t.Fatal(err)
	}
	resolve(t, fae, needs.Form, "notes", capabilities.Facet{})
	given, err := query(t.Context(), fae, func(s *mailbox.State, _ capabilities.Time) (int, error) { return s.Grants.Len(), nil })
	if err != nil || given == 0 {
		t.Fatalf("%d grants, %v", given, err)
	}
	n.registry.tell(n.Host().id, 0, retryLine{cut})
	if u := <-wrote; u.State != view.UseDone {
		t.Errorf("the use has ended as %+v", u)
	}
	if u := write(bob, "given on"); u.State != view.UseDone {
		t.Errorf("what was given on was used as %+v", u)
	}
}

// TestAQueuedUseIsDoneOnceAfterManyOthers comes again with a queued use as a node does that ended before it had recorded how the use ended:
// after so many others that the resource keeps it no more. It is not done again, and who comes for it is told how it ended.
func TestAQueuedUseIsDoneOnceAfterManyOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	if _, err := ResourcesOf(n.Host()).Make(t.Context(), NewResource{Name: "notes", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: dir}}, false); err != nil {
		t.Fatal(err)
	}
	asked := requestNamed(t, fae, "HOST", "notes")
	write := Used{Name: "notes", Verb: "write", Input: map[string]capabilities.Value{"path": capabilities.String("f"), "content": capabilities.String("x")}}
	queued, err := ResourcesOf(fae).Use(t.Context(), write)
	if err != nil || queued.State != view.UseQueued {
		t.Fatalf("a use is %+v (%v)", queued, err)
	}
	resolve(t, n.Host(), asked.Form, "notes", capabilities.Facet{})
	write.Use, write.Wait = queued.Use, eventually.Patience
	if u, err := ResourcesOf(fae).Use(t.Context(), write); err != nil || u.State != view.UseDone {
		t.Fatalf("the use has ended as %+v (%v)", u, err)
	}
	var u mailbox.QueuedUse
	ref, err := query(t.Context(), fae, func(s *mailbox.State, now capabilities.Time) (capabilities.Ref, error) {
		u = *s.Mail.FindQueuedUse(queued.Use, "")
		return s.Namespace().UseOf(u, now)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "f")); err != nil {
		t.Fatal(err)
	}
	for range 600 {
		if _, err := ResourcesOf(n.Host()).Use(t.Context(), Used{Name: "notes", Verb: "list", Wait: eventually.Patience}); err != nil {
			t.Fatal(err)
		}
	}
	for _, again := range []bool{false, true} {
		if got, err := ResourcesOf(fae).attempt(t.Context(), ref, u, again, eventually.Patience); err != nil || got.State != view.UseDone {
			t.Errorf("it is %+v (%v)", got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "f")); err == nil {
		t.Error("it was done twice")
	}
}

// TestAFormThatWasQueuedIsProven proves the answer to a form that was asked of an answer.
func TestAFormThatWasQueuedIsProven(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae, worker := guest(t, n, "fae"), guest(t, n, "worker")
	asked := requestNamed(t, fae, "HOST", "helper")
	form := ask(t, fae, parley.Form{To: "helper"})
	resolve(t, n.Host(), asked.Form, "worker", capabilities.Facet{})
	awaitMessage(t, worker, form.Form)
	if _, err := worker.Answer(t.Context(), capabilities.FormID(form.Form), parley.Answer{Values: text("a", "80")}); err != nil {
		t.Fatal(err)
	}
	made, err := fae.Mail().Prove(t.Context(), capabilities.FormID(form.Form), false)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proof.Read([]byte(made.Proof), n.ID())
	if err != nil || p.To != worker.ID() || p.Outcome.By != worker.ID() {
		t.Errorf("it is proven (%v) as put to %s and answered by %s", err, p.To, p.Outcome.By)
	}
}

// TestMailToAnAnswerGoesToAnotherNode asks a host of another node whom to ask, which answers with an agent of its own.
func TestMailToAnAnswerGoesToAnotherNode(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	worker := guest(t, b.Node, "worker")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plan"), []byte("hello"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ResourcesOf(b.Host()).Make(t.Context(), NewResource{Name: "notes", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: dir}}, false); err != nil {
		t.Fatal(err)
	}
	asked, notes := requestNamed(t, a.Host(), "b", "helper"), requestNamed(t, a.Host(), "b", "notes")
	first := send(t, a.Host(), "helper", "first, from @me:@self")
	form := ask(t, a.Host(), parley.Form{To: "helper", Description: "which port?"})
	read := make(chan error, 1)
	go func() {
		u, err := readNotes(t, a.Host(), "notes", "plan", "k")
		if got, _ := u.Result.AsRecord(); err == nil && got["text"].Text() != "hello" {
			err = fmt.Errorf("it read %v", u.Result)
		}
		read <- err
	}()
	eventually.Holds(t, "the use is queued", func() bool { return len(shownTo(t, a.Host(), notes.Form).ToFollow) == 1 })
	resolve(t, b.Host(), asked.Form, "worker", capabilities.Facet{})
	resolve(t, b.Host(), notes.Form, "notes", capabilities.Facet{Uses: 1})
	awaitMessage(t, worker, form.Form)
	if got := textsOf(t, worker, a.Host().ID()); fmt.Sprint(got) != "[first, from @me which port?]" {
		t.Errorf("the worker has %q", got)
	}
	adoptReference(t, worker, first.Message, "me", "boss")
	awaitMessage(t, a.Host(), send(t, worker, "boss", "thanks").Message)
	if _, err := worker.Answer(t.Context(), capabilities.FormID(form.Form), parley.Answer{Values: text("a", "80")}); err != nil {
		t.Fatal(err)
	}
	awaitSameOutcome(t, form.Form, view.StatusAnswered, a.Host(), worker)
	if err := <-read; err != nil {
		t.Error("the use that was queued:", err)
	}
	if _, err := readNotes(t, a.Host(), "notes", "plan", "k"); err != nil {
		t.Error("the same key:", err)
	}
	if _, err := readNotes(t, a.Host(), "notes", "plan", "other"); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a second use of one is refused with %v", err)
	}
}
