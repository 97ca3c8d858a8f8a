package actors

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/actors/view"
	"parley/internal/eventually"
	"parley/persistence/disktest"
)

// TestSlowDiskAllowsReading blocks one flush. Meanwhile every mailbox without appended events can be read: one in memory, one
// with acks to record, and one that is loaded from the log. When the flush ends, the node continues without a failure.
func TestSlowDiskAllowsReading(t *testing.T) {
	t.Parallel()
	d := disktest.Mount(t)
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
