package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
	"parley/persistence/disktest"
)

// messageSender sends numbered messages and forms to a host, one after another, and keeps which were acknowledged.
type messageSender struct {
	agent *Agent
	to    string
	mu    sync.Mutex
	sent  int
	acks  []int
}

func (s *messageSender) run(ctx context.Context) {
	for ctx.Err() == nil {
		s.sent++
		var err error
		if s.sent%4 == 0 {
			_, err = s.agent.Ask(context.Background(), parley.Form{To: s.to, Description: strconv.Itoa(s.sent), Fields: textField("a")})
		} else {
			_, err = s.agent.Send(context.Background(), s.to, strconv.Itoa(s.sent))
		}
		if err != nil {
			time.Sleep(time.Millisecond) // a client retries a while later
			continue
		}
		s.mu.Lock()
		s.acks = append(s.acks, s.sent)
		s.mu.Unlock()
		time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond) // a client's pause between two calls
	}
}

func (s *messageSender) acknowledged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.acks)
}

// TestMessageOrderSurvivesDiskFailures has agents send while the disk fails and recovers repeatedly. At the end all
// acknowledged messages have arrived once, in the order sent, and no outbox has items.
func TestMessageOrderSurvivesDiskFailures(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(d *disktest.Disk) (goOn, heal func()){
		"full": func(d *disktest.Disk) (goOn, heal func()) {
			var mu sync.Mutex
			healed := false
			free := func() { // a little space is freed at times, and used at once
				mu.Lock()
				defer mu.Unlock()
				if healed { // a flush that was under way
					return
				}
				room := rand.Int64N(6000)
				if rand.IntN(4) == 0 { // the journal needs more than that to begin anew
					room = 64 << 10
				}
				d.SetRoom(room)
			}
			d.OnFlush(func(string) error { free(); return nil })
			return free, func() { // with hardly any room nothing gets as far as a flush
				mu.Lock()
				defer mu.Unlock()
				healed = true
				d.OnFlush(nil)
				d.SetRoom(-1)
			}
		},
		"flushes that fail": func(d *disktest.Disk) (goOn, heal func()) {
			d.OnFlush(func(name string) error {
				if strings.HasSuffix(name, ".blk") && rand.IntN(8) == 0 {
					return errors.New("a bad sector")
				}
				return nil
			})
			return func() {}, func() { d.OnFlush(nil) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := disktest.Mount(t)
			unindexed(t, d, "state")
			n := openWith(t, Options{Folder: filepath.Join(d.Path(), "state"), Name: "n", Peers: "127.0.0.1:0"})
			fred := guest(t, n, "fred")
			senders := make([]*messageSender, 16)
			for i := range senders {
				senders[i] = &messageSender{agent: guest(t, n, fmt.Sprintf("t%d", i)), to: "HOST"}
			}
			other := openWith(t, Options{Folder: t.TempDir(), Name: "other"})
			senders = append(senders, &messageSender{agent: other.Host(), to: "n"})
			i, err := n.Host().Peers().Invite(t.Context(), NewInvitation{Name: "other"})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Host().Peers().Accept(t.Context(), "n", i.Locator); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("the node's problem: %v", n.State().Problem)
				}
			})
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for _, s := range senders {
				running.Go(func() { s.run(ctx) })
			}
			forwarded := map[capabilities.ID]bool{}
			running.Go(func() { forwardAll(ctx, n.Host(), forwarded) })
			for range 3 {
				enough := senders[0].acknowledged() + 10
				eventually.Holds(t, "more messages are acknowledged", func() bool { return senders[0].acknowledged() > enough })
				before := n.journal.Failures()
				goOn, heal := fails(d)
				eventually.Holds(t, "the disk has failed several times", func() bool { goOn(); return n.journal.Failures() > before+3 })
				heal()
				eventually.Holds(t, "the node has no problem", func() bool { return n.State().Problem == nil })
			}
			stop()
			running.Wait()
			for _, s := range senders {
				eventually.Holds(t, "all messages are delivered", func() bool { return isDelivered(t, s.agent) })
			}
			eventually.Holds(t, "all forwards are delivered", func() bool { return isDelivered(t, n.Host()) })
			in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range senders {
				s.check(t, in.Messages)
			}
			in, err = fred.Mail().Inbox(t.Context(), view.MessageFilter{})
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range in.Messages {
				delete(forwarded, m.MessageID)
			}
			if len(forwarded) > 0 {
				t.Errorf("%d forms were forwarded and have not arrived", len(forwarded))
			}
		})
	}
}

// TestAcknowledgedFormIsNeverReportedMissing has agents ask while flushes fail. The host declines each form as soon as its
// asker has the form's ID. The host may have to retry, but the form is never unknown.
func TestAcknowledgedFormIsNeverReportedMissing(t *testing.T) {
	t.Parallel()
	d := disktest.Mount(t)
	unindexed(t, d, "state")
	n := openWith(t, Options{Folder: filepath.Join(d.Path(), "state"), Name: "n"})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	var declined atomic.Int64
	for i := range 8 {
		agent := guest(t, n, fmt.Sprintf("t%d", i))
		running.Go(func() {
			for k := 0; ctx.Err() == nil; k++ {
				var asked view.Asked
				retryWhileRefused(ctx, t, func() (err error) {
					asked, err = agent.Ask(context.Background(), parley.Form{To: "HOST", Description: "x", Key: strconv.Itoa(k), Fields: textField("a")})
					return err
				})
				retryWhileRefused(ctx, t, func() error {
					_, err := n.Host().Decline(context.Background(), capabilities.FormID(asked.Form), 0, "")
					if parley.CodeOf(err) == parley.AlreadyDeclined { // by an earlier attempt whose result was lost
						return nil
					}
					return err
				})
				declined.Add(1)
			}
		})
	}
	for range 3 {
		before := n.journal.Failures()
		d.OnFlush(func(name string) error {
			if strings.HasSuffix(name, ".blk") && rand.IntN(8) == 0 {
				return errors.New("a bad sector")
			}
			return nil
		})
		eventually.Holds(t, "the disk has failed several times", func() bool { return n.journal.Failures() > before+3 })
		d.OnFlush(nil)
		enough := declined.Load() + 50
		eventually.Holds(t, "the node has no problem", func() bool { return n.State().Problem == nil && declined.Load() > enough })
	}
}

// retryWhileRefused calls do until its error is neither ReadOnly nor RateLimited. Any other error fails the test.
func retryWhileRefused(ctx context.Context, t *testing.T, do func() error) {
	var err error
	eventually.Holds(t, "it is no longer refused", func() bool {
		err = do()
		code := parley.CodeOf(err)
		return ctx.Err() != nil || code != parley.ReadOnly && code != parley.RateLimited
	})
	if err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

// TestOutboxKeepsOrderAfterLostCopy loses the appended copy of an acknowledged message. The next message still arrives
// after it.
func TestOutboxKeepsOrderAfterLostCopy(t *testing.T) {
	var broken atomic.Bool
	n := openWith(t, Options{Folder: t.TempDir(), Failpoint: func(step string) error {
		if broken.Load() && (step == "before publish" || step == "before reopen") {
			return errors.New("no space left on device, for the test")
		}
		return nil
	}})
	fae := guest(t, n, "fae")
	release, blocked := make(chan struct{}), make(chan struct{})
	go func() {
		_, _ = inspect(context.Background(), n.Host(), func(*mailboxActor) (struct{}, error) {
			close(blocked)
			<-release
			return struct{}{}, nil
		})
	}()
	<-blocked
	if _, err := fae.Send(t.Context(), "HOST", "first"); err != nil {
		t.Fatal(err)
	}
	broken.Store(true)
	close(release) // the copy is appended now, and lost
	eventually.Holds(t, "the node is read-only", func() bool { return n.State().Problem != nil })
	broken.Store(false)
	eventually.Holds(t, "the node has no problem", func() bool { return n.State().Problem == nil })
	if _, err := fae.Send(t.Context(), "HOST", "second"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "both are delivered", func() bool { return isDelivered(t, fae) })
	in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{})
	if err != nil || len(in.Messages) != 2 || in.Messages[0].Text != "first" || in.Messages[1].Text != "second" {
		t.Fatalf("%+v, %v", in.Messages, err)
	}
}

// TestJournalComesBackHoweverLongItsServerStarts has the server take longer to start again than an attempt with a journal
// elsewhere may take, as it does with a long log on a busy machine.
func TestJournalComesBackHoweverLongItsServerStarts(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	n := openWith(t, Options{Folder: t.TempDir(), Failpoint: func(step string) error {
		if step == "after reopen" {
			time.Sleep(reopenMost + 100*time.Millisecond) // the slow machine
		}
		if step == "before publish" && broken.Swap(false) {
			return errors.New("no space left on device, for the test")
		}
		return nil
	}})
	broken.Store(true)
	if _, err := n.Host().Send(t.Context(), "SELF", "lost"); parley.CodeOf(err) != parley.ReadOnly {
		t.Fatal(err)
	}
	eventually.Holds(t, "the node has no problem", func() bool { return n.State().Problem == nil })
	if _, err := n.Host().Send(t.Context(), "SELF", "kept"); err != nil {
		t.Fatal(err)
	}
}

// TestSecretStaysWithTheResourceOfACallThatWasGivenUp gives up the call that makes a secret while its commit is on the way to the disk. The
// resource is there then, and so is its value.
func TestSecretStaysWithTheResourceOfACallThatWasGivenUp(t *testing.T) {
	t.Parallel()
	var slow atomic.Bool
	reached, release := make(chan struct{}), make(chan struct{})
	n := openWith(t, Options{Folder: t.TempDir(), Failpoint: func(step string) error {
		if step == "before publish" && slow.Swap(false) {
			close(reached)
			<-release
		}
		return nil
	}})
	slow.Store(true)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		<-reached
		giveUp()
	}()
	made := events.ResourceMade{Kind: capabilities.KindSecret, Header: "X: {}", Facet: capabilities.Facet{Only: "api.example", Methods: "GET"}}
	_, err := ResourcesOf(n.Host()).Make(ctx, NewResource{Name: "key", Made: made, Secret: "correct-horse"}, false)
	wantCode(t, "a call that is given up", err, parley.Timeout)
	close(release)
	ref, err := ResourcesOf(n.Host()).own(t.Context(), "key") // waits for the commit
	if err != nil {
		t.Fatal(err)
	}
	if value, err := n.resources.openSecret(ref.Target); value != "correct-horse" {
		t.Errorf("the secret is %q, %v", value, err)
	}
}

// forwardAll forwards each form of the host, and records the acknowledged forwards in done.
func forwardAll(ctx context.Context, host *Agent, done map[capabilities.ID]bool) {
	for m, err := range host.Mail().Follow(ctx, view.MessageFilter{}, 0) {
		if err != nil {
			return
		}
		if m.Type == "form" && len(m.ForwardedTo) == 0 && !done[m.MessageID] {
			if host.Forward(context.Background(), capabilities.FormID(m.MessageID), "fred") == nil {
				done[m.MessageID] = true
			}
		}
	}
}

// isDelivered reports whether an agent's outbox is empty. It reports false while the agent cannot be read.
func isDelivered(t *testing.T, a *Agent) bool {
	t.Helper()
	waiting, err := inspect(t.Context(), a, func(b *mailboxActor) (int, error) {
		b.recordAcks()
		return len(b.state.Outbox.Items()), nil
	})
	return err == nil && waiting == 0
}

// check compares the sender's messages that have arrived with the acknowledged ones.
func (s *messageSender) check(t *testing.T, all []view.Message) {
	t.Helper()
	arrived, last := map[int]bool{}, 0
	for _, m := range all {
		if m.From != s.agent.id {
			continue
		}
		n, err := strconv.Atoi(m.Text + m.Description)
		if err != nil {
			t.Fatal(err)
		}
		if n <= last {
			t.Errorf("%s: %d is message number %d, after %d", s.agent.id.ULID, n, m.Number, last)
		}
		last, arrived[n] = n, true
	}
	for _, n := range s.acks {
		if !arrived[n] {
			t.Errorf("%s: %d was acknowledged and has not arrived", s.agent.id.ULID, n)
		}
	}
}

// TestNewNodeSurvivesPowerLoss cuts the power after a new node has acknowledged its first message. The disk keeps the name
// of a new file only if its folder was flushed.
func TestNewNodeSurvivesPowerLoss(t *testing.T) {
	d := disktest.Mount(t)
	state := filepath.Join("a", "b", "state")
	n := openWith(t, Options{Folder: filepath.Join(d.Path(), state)})
	unindexed(t, d, state) // a new node makes its own folder, and the index some seconds later
	if _, err := n.Host().Send(t.Context(), "SELF", "the first"); err != nil {
		t.Fatal(err)
	}
	left := t.TempDir()
	if err := d.Cut(left); err != nil {
		t.Fatal(err)
	}
	again := openWith(t, Options{Folder: filepath.Join(left, state)})
	if again.ID() != n.ID() {
		t.Fatalf("it is node %s now, and was %s", again.ID(), n.ID())
	}
	if in, err := again.Host().Mail().Inbox(t.Context(), view.MessageFilter{}); err != nil || len(in.Messages) != 1 {
		t.Fatalf("%+v, %v", in.Messages, err)
	}
}

// TestOldFormsAreReadWhileTheDiskFails reads settled forms, which are no longer in memory, while nothing can be stored.
func TestOldFormsAreReadWhileTheDiskFails(t *testing.T) {
	d := disktest.Mount(t)
	unindexed(t, d, "state")
	n := openWith(t, Options{Folder: filepath.Join(d.Path(), "state"), Name: "n"})
	fae := guest(t, n, "fae")
	const forms = 3 * maxOld // more than are kept
	for i := range forms {
		asked := ask(t, fae, parley.Form{To: "HOST", Description: strconv.Itoa(i), Fields: textField("a")})
		if _, err := n.Host().Decline(t.Context(), capabilities.FormID(asked.Form), 0, "no"); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range []*Agent{fae, n.Host()} {
		eventually.Holds(t, "the agent has all outcomes", func() bool {
			in, err := a.Mail().Last(t.Context(), view.MessageFilter{All: true}, 0, 1)
			return err == nil && len(in.Messages) == 1 && in.Messages[0].Outcome != nil
		})
	}
	d.OnFlush(func(name string) error {
		if strings.HasSuffix(name, ".blk") {
			return errors.New("a bad sector")
		}
		return nil
	})
	defer d.OnFlush(nil)
	for _, a := range []*Agent{fae, n.Host()} {
		if _, err := a.Send(t.Context(), "HOST", "lost"); parley.CodeOf(err) != parley.ReadOnly {
			t.Fatalf("a message is sent: %v", err)
		}
		for i := range forms {
			m, err := a.Message(t.Context(), capabilities.FormNumber(uint64(i)))
			if err != nil || m.Description != strconv.Itoa(i) || m.Outcome == nil || m.Outcome.Status != view.StatusDeclined {
				t.Fatalf("form %d: %v, %+v", i, err, m)
			}
		}
	}
}

// TestMailboxInDoubtRefusesNothing delivers mail that has no grant to a mailbox that was read while the journal had
// failed. A commit in doubt may hold the grant, so it is refused only when the journal works.
func TestMailboxInDoubtRefusesNothing(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	n := openWith(t, Options{Folder: t.TempDir(), Failpoint: func(step string) error {
		if broken.Load() && (step == "before publish" || step == "before reopen") {
			return errors.New("no space left on device, for the test")
		}
		return nil
	}})
	other := capabilities.NodeOf([32]byte{1})
	from := capabilities.ID{ULID: ulid.ULID{1}, Node: other}
	item, err := peers.PackItem(mailbox.OutboxItem{Kind: events.OutboxCopy, To: n.Host().ID()}, from, []events.Event{
		&events.MessagePosted{Message: capabilities.ID{ULID: ulid.ULID{2}, Node: other}, From: from, To: n.Host().ID()},
	})
	if err != nil {
		t.Fatal(err)
	}
	status := func() peers.AckStatus {
		return n.peers.Peer(other).AcceptMail(t.Context(), peers.MailPacket{Items: []peers.Item{item}})[0].Status
	}
	broken.Store(true)
	if _, err := n.Host().Send(t.Context(), "SELF", "lost"); parley.CodeOf(err) != parley.ReadOnly {
		t.Fatalf("a message is sent: %v", err)
	}
	if got := status(); got != peers.AckRetry {
		t.Errorf("mail to a mailbox in doubt has the status %d, want %d", got, peers.AckRetry)
	}
	broken.Store(false)
	eventually.Holds(t, "the mail is refused", func() bool { return status() == peers.AckRefused })
}

// TestFullDiskIsLoggedOnce fills a disk, and has the node try often to open its journal again. The temporary files of the attempts have
// other names each time. The log has the reason once, and at the end how many attempts have failed.
func TestFullDiskIsLoggedOnce(t *testing.T) {
	d := disktest.Mount(t)
	unindexed(t, d, "state")
	logged := filepath.Join(t.TempDir(), "log")
	to, err := os.Create(logged)
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close() //nolint:errcheck // it is read by its name
	lines := func() string {
		text, err := os.ReadFile(logged)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	n := openWith(t, Options{Folder: filepath.Join(d.Path(), "state"), Name: "n", Log: slog.New(slog.NewTextHandler(to, nil))})
	var flushes atomic.Int32 // an attempt flushes the newest file
	d.OnFlush(func(name string) error {
		if strings.HasSuffix(name, ".blk") {
			flushes.Add(1)
		}
		return nil
	})
	d.SetRoom(0)
	if _, err := n.Host().Send(t.Context(), "SELF", "lost"); parley.CodeOf(err) != parley.ReadOnly {
		t.Fatalf("a message is sent: %v", err)
	}
	from := flushes.Load()
	eventually.Holds(t, "it was tried several times", func() bool { return flushes.Load() >= from+5 })
	d.SetRoom(-1)
	eventually.Holds(t, "the journal is back", func() bool { return strings.Contains(lines(), "the journal is back") })
	if n := strings.Count(lines(), "the journal does not come back yet"); n != 1 {
		t.Errorf("said %d times:\n%s", n, lines())
	}
	if !strings.Contains(lines(), `"failed attempts"=`) {
		t.Errorf("the attempts are not counted:\n%s", lines())
	}
}
