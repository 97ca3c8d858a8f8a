package actors

import (
	"context"
	"io"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
	"parley/persistence/disktest"
)

// TestSlowDiskAllowsReading blocks one flush. Meanwhile every mailbox without appended events can be read: one in memory, one
// with acks to record, and one that is loaded from the log. When the flush ends, the node continues without a failure.
func TestSlowDiskAllowsReading(t *testing.T) {
	t.Parallel()
	d := disktest.Mount(t)
	unindexed(t, d, "state")
	n := openWith(t, Options{Folder: filepath.Join(d.Path(), "state"), Idle: 50 * time.Millisecond})
	fae, carl, cold, host := guest(t, n, "fae"), guest(t, n, "carl"), guest(t, n, "cold"), n.Host()
	if _, err := host.Send(t.Context(), "cold", "before"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "it is delivered", func() bool { return isDelivered(t, host) })
	eventually.Holds(t, "all mailboxes are passivated", func() bool { return n.State().Active == 0 })
	if _, err := fae.Mail().Inbox(t.Context(), view.MessageFilter{}); err != nil {
		t.Fatal(err)
	}
	if _, err := carl.Send(t.Context(), "SELF", "before"); err != nil {
		t.Fatal(err)
	}
	release, held := blockFlushes(d)
	sent := make(chan error, 1)
	go func() {
		_, err := fae.Send(context.Background(), "SELF", "slowly")
		sent <- err
	}()
	<-held
	eventually.Holds(t, "the flush is shown to take long", func() bool { return n.journal.Flushing() > slowDisk })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for name, a := range map[string]*Agent{"with acks": carl, "of the log": cold, "of the host": host} {
		if _, err := a.Mail().Inbox(ctx, view.MessageFilter{All: true}); err != nil {
			t.Errorf("the mailbox %s cannot be read: %v", name, err)
		}
	}
	if _, err := cold.Log(ctx, 0, 10); err != nil {
		t.Errorf("the log cannot be read: %v", err)
	}
	eventually.Holds(t, "the state shows the flush", func() bool { return n.State().Journal.Flushing >= 1 })
	if n.State().Problem != nil {
		t.Error(n.State().Problem)
	}
	release()
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if s := n.State(); s.Problem != nil || n.journal.Failures() > 0 {
		t.Errorf("%+v after %d failures", s, n.journal.Failures())
	}
}

// blockFlushes blocks the journal's flushes until release is called. The channel held is closed when the first begins.
func blockFlushes(d *disktest.Disk) (release func(), held <-chan struct{}) {
	open, begun := make(chan struct{}), make(chan struct{})
	var once sync.Once
	d.OnFlush(func(name string) error {
		if strings.Contains(name, "/PARLEY_N") && strings.HasSuffix(name, ".blk") {
			once.Do(func() { close(begun) })
			<-open
		}
		return nil
	})
	return sync.OnceFunc(func() { close(open) }), begun
}

// TestStuckDiskShowsWhatIsDurable blocks the disk while a message of fae to carl is stored: in the write, and in the flush.
// Both are read as they were before, by readers that came before the disk was known to hang too. What writes waits, and a
// caller that waits no longer is told why. When the disk goes on, all is there.
func TestStuckDiskShowsWhatIsDurable(t *testing.T) {
	t.Parallel()
	for name, block := range map[string]func(*disktest.Disk) (func(), <-chan struct{}){"write": blockWrites, "flush": blockFlushes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := disktest.Mount(t)
			unindexed(t, d, "state")
			n := openWith(t, Options{Folder: filepath.Join(d.Path(), "state")})
			fae, host := guest(t, n, "fae"), n.Host()
			form := capabilities.FormID(ask(t, fae, parley.Form{Title: "declined before"}).Form)
			if _, err := host.Decline(t.Context(), capabilities.FormNumber(0), 0, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := fae.Await(t.Context(), form); err != nil {
				t.Fatal(err)
			}
			if _, err := fae.Send(t.Context(), "HOST", "before"); err != nil {
				t.Fatal(err)
			}
			eventually.Holds(t, "all of it is delivered", func() bool { return isDelivered(t, fae) && isDelivered(t, host) })
			before := map[*Agent][]view.Message{fae: messagesOf(t, fae), host: messagesOf(t, host)}
			release, held := block(d)
			sent := make(chan error, 1)
			go func() {
				_, err := fae.Send(context.Background(), "HOST", "while it hangs")
				sent <- err
			}()
			<-held
			early := make(chan error, 2)
			for _, a := range []*Agent{fae, host} {
				go func() {
					_, err := a.Mail().Inbox(t.Context(), view.MessageFilter{All: true})
					early <- err
				}()
			}
			for range cap(early) {
				if err := <-early; err != nil {
					t.Error(err)
				}
			}
			if !isStuck(n) {
				t.Error("a reader was answered before the disk was known to hang")
			}
			for a, was := range before {
				if now := messagesOf(t, a); !reflect.DeepEqual(now, was) {
					t.Errorf("while the disk hangs %s reads\n%+v, and before\n%+v", a.ID(), now, was)
				}
				if _, err := a.Status(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if o, err := fae.Await(t.Context(), form); err != nil || o.Status != view.StatusDeclined {
				t.Errorf("the form that had ended is %q, %v", o.Status, err)
			}
			if _, err := n.Quotas(t.Context()); err != nil {
				t.Error(err)
			}
			for what, read := range map[string]func() error{
				"verify": func() error { _, err := n.Verify(t.Context()); return err }, "back up": func() error { return n.Backup(t.Context(), io.Discard) },
			} {
				if err := read(); err != nil && !strings.Contains(err.Error(), "the disk has not finished a flush for ") {
					t.Errorf("%s: %v", what, err)
				}
			}
			short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := host.Send(short, "SELF", "not so patient"); parley.CodeOf(err) != parley.Timeout || !strings.Contains(err.Error(), "the disk has not finished a flush for ") {
				t.Errorf("a caller that waits no longer gets %v", err)
			}
			release()
			if err := <-sent; err != nil {
				t.Error(err)
			}
			eventually.Holds(t, "what waited is there", func() bool { return len(messagesOf(t, host)) == 4 && len(messagesOf(t, fae)) == 3 })
			if isStuck(n) || n.State().Problem != nil || n.journal.Failures() > 0 {
				t.Errorf("afterwards %+v after %d failures", n.State(), n.journal.Failures())
			}
		})
	}
}

func messagesOf(t *testing.T, a *Agent) []view.Message {
	t.Helper()
	in, err := a.Mail().Inbox(t.Context(), view.MessageFilter{All: true})
	if err != nil {
		t.Fatal(err)
	}
	return in.Messages
}

// blockWrites blocks the writes of the journal until release is called. The channel held is closed when the first begins.
func blockWrites(d *disktest.Disk) (release func(), held <-chan struct{}) {
	open, begun := make(chan struct{}), make(chan struct{})
	var once sync.Once
	d.OnWrite(func(name string) {
		if strings.Contains(name, "/PARLEY_N") && strings.HasSuffix(name, ".blk") {
			once.Do(func() { close(begun) })
			<-open
		}
	})
	return sync.OnceFunc(func() { close(open) }), begun
}
