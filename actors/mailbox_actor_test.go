package actors

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

func openWith(tb testing.TB, o Options) *Node {
	tb.Helper()
	n, err := Open(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closeNode(tb, n) })
	return n
}

func TestIdleMailboxesArePassivated(t *testing.T) {
	n := openWith(t, Options{Folder: t.TempDir(), Idle: time.Millisecond})
	fae := guest(t, n, "fae")
	asked := ask(t, fae, parley.Form{})
	eventually.Holds(t, "all mailboxes are passivated", func() bool { return n.State().Active == 0 })
	if _, err := n.Host().Answer(t.Context(), capabilities.FormNumber(0), parley.Answer{Values: text("a", "active")}); err != nil {
		t.Fatal(err)
	}
	o, err := fae.Await(t.Context(), capabilities.FormID(asked.Form))
	if err != nil || o.Status != view.StatusAnswered {
		t.Fatalf("%+v, %v", o, err)
	}
}

// TestMailIsNotLostDuringPassivation races passivation with mail.
func TestMailIsNotLostDuringPassivation(t *testing.T) {
	n := openWith(t, Options{Folder: t.TempDir(), Idle: time.Nanosecond})
	fae := guest(t, n, "fae")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				n.registry.passivate(time.Now())
			}
		}
	}()
	for range 200 {
		ask(t, fae, parley.Form{})
	}
	close(stop)
	<-stopped
	in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{})
	if err != nil || len(in.Messages) != 200 {
		t.Fatalf("%d of 200 messages, %v", len(in.Messages), err)
	}
}

func TestCrashedMailboxIsReplayed(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	ask(t, fae, parley.Form{})
	_, err := inspect(t.Context(), fae, func(b *mailboxActor) (struct{}, error) {
		b.state = nil
		panic("for the test")
	})
	if parley.CodeOf(err) != parley.Internal {
		t.Fatalf("the call that crashed: %v", err)
	}
	asked := ask(t, fae, parley.Form{})
	if asked.Number != 1 {
		t.Fatalf("number %d after the crash", asked.Number)
	}
}

func TestDeadlineFiresAfterRestart(t *testing.T) {
	folder := t.TempDir()
	var skew atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	n := openWith(t, Options{Folder: folder, Clock: clock})
	fae := guest(t, n, "fae")
	asked := ask(t, fae, parley.Form{Deadline: n.now().Add(time.Hour)})
	closeNode(t, n)
	skew.Store(int64(2 * time.Hour))
	n = openWith(t, Options{Folder: folder, Clock: clock})
	o, err := (&Agent{node: n, id: fae.id}).Await(t.Context(), capabilities.FormID(asked.Form))
	if err != nil || o.Status != view.StatusExpired {
		t.Fatalf("%+v, %v", o, err)
	}
	e, err := n.Host().Message(t.Context(), capabilities.FormNumber(0))
	if err != nil || e.Outcome == nil || e.Outcome.Status != view.StatusExpired {
		t.Fatalf("copy %+v, %v", e.Outcome, err)
	}
}

// countingLog is a log handler that counts the records whose message begins so.
type countingLog struct {
	slog.Handler
	prefix string
	count  *atomic.Int64
}

func (h countingLog) Enabled(context.Context, slog.Level) bool { return true }
func (h countingLog) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, h.prefix) {
		h.count.Add(1)
	}
	return nil
}

// TestRecordedTimeNeverGoesBack puts the clock back by a day. The node says so, and no time goes back.
func TestRecordedTimeNeverGoesBack(t *testing.T) {
	var skew, said atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	n := openWith(t, Options{Folder: t.TempDir(), Clock: clock, Log: slog.New(countingLog{slog.DiscardHandler, "the clock is behind", &said})})
	fae := guest(t, n, "fae")
	first := ask(t, fae, parley.Form{})
	skew.Store(-int64(24 * time.Hour))
	second := ask(t, fae, parley.Form{})
	if second.Form.Compare(first.Form) <= 0 {
		t.Errorf("IDs go back: %s after %s", second.Form, first.Form)
	}
	logged, err := fae.Log(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i < len(logged.Entries); i++ {
		if logged.Entries[i].At < logged.Entries[i-1].At {
			t.Errorf("time goes back in the log: %s after %s", logged.Entries[i].At, logged.Entries[i-1].At)
		}
	}
	eventually.Holds(t, "the node says that the clock is behind", func() bool { return said.Load() > 0 })
	if behind := time.Duration(n.State().Journal.Behind) * time.Second; behind < 24*time.Hour-time.Minute || behind > 24*time.Hour {
		t.Errorf("its state says %v", behind)
	}
	skew.Store(0)
	if behind := n.State().Journal.Behind; behind != 0 {
		t.Errorf("the clock is right, and it says %v", behind)
	}
}

// TestDiskFailureMakesNodeReadOnly fails all writes for a while. Acknowledged forms remain, refused ones leave no trace, and
// the node recovers by itself.
func TestDiskFailureMakesNodeReadOnly(t *testing.T) {
	var broken atomic.Bool
	n := openWith(t, Options{Folder: t.TempDir(), Failpoint: func(step string) error {
		if broken.Load() && (step == "before publish" || step == "before reopen") {
			return errors.New("no space left on device, for the test")
		}
		return nil
	}})
	fae := guest(t, n, "fae")
	ask(t, fae, parley.Form{})
	if in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{}); err != nil || len(in.Messages) != 1 {
		t.Fatalf("%+v, %v", in, err)
	}
	broken.Store(true)
	_, err := fae.Ask(t.Context(), parley.Form{To: "HOST", Description: "lost", Fields: textField("a")})
	if parley.CodeOf(err) != parley.ReadOnly {
		t.Fatalf("ask on a failed disk: %v", err)
	}
	eventually.Holds(t, "the node shows that it is read-only", func() bool { return n.State().Problem != nil })
	in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{})
	if err != nil || len(in.Messages) != 1 {
		t.Fatalf("reading while read-only: %d messages, %v", len(in.Messages), err)
	}
	broken.Store(false)
	eventually.Holds(t, "the node writes again", func() bool {
		_, err := fae.Ask(t.Context(), parley.Form{To: "HOST", Description: "again", Fields: textField("a"), Key: "again"})
		return err == nil
	})
	in, err = n.Host().Mail().Inbox(t.Context(), view.MessageFilter{})
	if err != nil || len(in.Messages) != 2 || in.Messages[1].Description != "again" || in.Messages[1].Number != 1 {
		t.Fatalf("%+v, %v", in.Messages, err)
	}
}

// TestMailboxIsReloadedAfterUnknownCommit stores a commit whose acknowledgement is lost. It reads the mailbox before the
// journal finds that the commit is stored.
func TestMailboxIsReloadedAfterUnknownCommit(t *testing.T) {
	var broken, failures atomic.Int64
	n := openWith(t, Options{Folder: t.TempDir(), Failpoint: func(step string) error {
		if step == "before reopen" {
			failures.Add(1)
		}
		if broken.Load() == 1 && (step == "after publish" || step == "before settle" || step == "before reopen") {
			return errors.New("no answer, for the test")
		}
		return nil
	}})
	fae := guest(t, n, "fae")
	broken.Store(1)
	_, err := fae.Ask(t.Context(), parley.Form{To: "HOST", Description: "unknown", Fields: textField("a")})
	if parley.CodeOf(err) != parley.ReadOnly {
		t.Fatalf("ask without an answer: %v", err)
	}
	if in, err := fae.Mail().Inbox(t.Context(), view.MessageFilter{All: true}); err != nil || len(in.Messages) != 0 {
		t.Fatalf("an unknown commit is shown: %+v, %v", in.Messages, err)
	}
	broken.Store(0)
	eventually.Holds(t, "the node writes again", func() bool { return n.State().Problem == nil })
	before := failures.Load()
	again, err := fae.Ask(t.Context(), parley.Form{To: "HOST", Description: "again", Fields: textField("a")})
	if err != nil || again.Number != 1 {
		t.Fatalf("asked as number %d, %v", again.Number, err)
	}
	if in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{}); err != nil || len(in.Messages) != 2 || in.Messages[0].Description != "unknown" {
		t.Fatalf("%+v, %v", in.Messages, err)
	}
	if now := failures.Load(); now != before {
		t.Errorf("the journal failed %d more times", now-before)
	}
}

func TestCancelledWaiterIsRemoved(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	asked := ask(t, fae, parley.Form{})
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := fae.Await(ctx, capabilities.FormID(asked.Form))
		left <- err
	}()
	waiting := func() int {
		n.ended.mu.Lock()
		defer n.ended.mu.Unlock()
		return len(n.ended.all)
	}
	eventually.Holds(t, "it waits", func() bool { return waiting() == 1 })
	cancel()
	if err := <-left; parley.CodeOf(err) != parley.Timeout {
		t.Fatal(err)
	}
	if waiting() != 0 {
		t.Fatal("the waiter is still registered")
	}
}

func TestOneOfManyAnswersSettlesForm(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	ask(t, fae, parley.Form{})
	var won atomic.Int32
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			switch _, err := n.Host().Answer(t.Context(), capabilities.FormNumber(0), parley.Answer{Values: text("a", "x")}); parley.CodeOf(err) {
			case "":
				won.Add(1)
			case parley.AlreadyAnswered:
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d winners", won.Load())
	}
}

func TestFullMailboxQueueRefusesCalls(t *testing.T) {
	n := openNode(t, t.TempDir())
	release, blocked := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = inspect(context.Background(), n.Host(), func(*mailboxActor) (struct{}, error) {
			close(blocked)
			<-release
			return struct{}{}, nil
		})
	}()
	<-blocked
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the calls are queued and not waited for
	var err error
	for range maxQueuedMailbox + 1 {
		if err = n.Host().Dismiss(ctx, capabilities.FormNumber(0)); parley.CodeOf(err) == parley.RateLimited {
			break
		}
	}
	close(release)
	if parley.CodeOf(err) != parley.RateLimited {
		t.Fatalf("after %d calls: %v", maxQueuedMailbox+1, err)
	}
}

func TestSecretsAreSealedOnDisk(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	fae := guest(t, n, "fae")
	fields := []events.Field{{Name: "password", Type: events.Secret, Required: true}}
	asked := ask(t, fae, parley.Form{Fields: fields, Name: "login"})
	const secret = "xyzzy-open-sesame"
	if _, err := n.Host().Answer(t.Context(), capabilities.FormNumber(0), parley.Answer{Values: text("password", secret)}); err != nil {
		t.Fatal(err)
	}
	o, err := fae.Await(t.Context(), capabilities.FormID(asked.Form))
	if r, _ := o.Values.AsRecord(); err != nil || r["password"].Text() != secret {
		t.Fatalf("the asker got %s, %v", o.Values.Text(), err)
	}
	for _, a := range []*Agent{fae, n.Host()} {
		e, err := a.Message(t.Context(), capabilities.FormNumber(0))
		if r, _ := e.Outcome.Values.AsRecord(); err != nil || !r["password"].IsSealed() {
			t.Fatalf("shown as %s, %v", e.Outcome.Values.Text(), err)
		}
	}
	closeNode(t, n)
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s has the secret in plain text", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFollowYieldsEachChangeOnce(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	ask(t, fae, parley.Form{Description: "one"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var answering sync.WaitGroup
	defer answering.Wait() // the change can be seen before the call returns
	answering.Go(func() {
		ask(t, fae, parley.Form{Description: "two"})
		if _, err := n.Host().Answer(t.Context(), capabilities.FormNumber(0), parley.Answer{Values: text("a", "x")}); err != nil {
			t.Error(err)
		}
	})
	seen := map[string]int{}
	for e, err := range n.Host().Mail().Follow(ctx, view.MessageFilter{}, 0) {
		if err != nil {
			t.Fatal(err)
		}
		key := e.Description
		if e.Outcome != nil {
			key += " answered"
		}
		if seen[key]++; seen["one answered"] == 1 && seen["two"] == 1 {
			break
		}
	}
	for key, n := range seen {
		if n != 1 {
			t.Errorf("%s was seen %d times", key, n)
		}
	}
}

func TestRevocationCoversDerivedGrants(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae, worker := guest(t, n, "fae"), guest(t, n, "worker")
	asked, err := fae.Requests().Send(t.Context(), parley.Request{To: "HOST", Text: "whom?", Name: "helper"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Host().Requests().Resolve(t.Context(), capabilities.FormID(asked.Form), "worker", capabilities.Facet{}); err != nil {
		t.Fatal(err)
	}
	if _, err := fae.Send(t.Context(), "helper", "hello"); err != nil {
		t.Fatal(err)
	}
	if err := fae.Names().Store(t.Context(), "known", capabilities.Locator{ID: worker.ID()}.String()); err != nil {
		t.Fatalf("storing a held reference: %v", err)
	}
	grants, err := n.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil || len(grants) != 1 || grants[0].ToName != "fae" {
		t.Fatalf("%+v, %v", grants, err)
	}
	if err := n.Host().Names().Revoke(t.Context(), grants[0].ID); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"helper", "known"} {
		if _, err := fae.Send(t.Context(), name, "again"); parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("by %s: %v", name, err)
		}
	}
}

func TestActAsUsesCurrentNames(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	check := func(name string, want capabilities.ID, code parley.Code) {
		t.Helper()
		a, err := n.ActAs(t.Context(), name)
		if parley.CodeOf(err) != code || err == nil && a.ID() != want {
			t.Fatalf("%s: %v, %v", name, a, err)
		}
	}
	check("fae", fae.ID(), "")
	check("fae", fae.ID(), "")
	if err := n.Host().Names().Rename(t.Context(), "fae", "anna"); err != nil {
		t.Fatal(err)
	}
	check("fae", fae.ID(), parley.UnknownName)
	if err := n.Host().Names().Rename(t.Context(), "bob", "fae"); err != nil {
		t.Fatal(err)
	}
	check("fae", bob.ID(), "")
	if err := n.Host().Names().Copy(t.Context(), "fae", "half", capabilities.Facet{Mode: capabilities.AskOnly}); err != nil {
		t.Fatal(err)
	}
	check("half", bob.ID(), parley.NotPermitted)
}
