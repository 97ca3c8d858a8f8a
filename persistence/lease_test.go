package persistence

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/eventually"
)

func acquire(t *testing.T, o Options, waiting func()) *Lease {
	t.Helper()
	var l *Lease
	eventually.Holds(t, "the lease is acquired", func() bool { // JetStream starts after the port is open
		var err error
		l, err = AcquireLease(t.Context(), o, waiting)
		return err == nil
	})
	return l
}

func closeLease(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestStandbyWaitsForReleasedLease(t *testing.T) {
	e := startExternal(t)
	first := acquire(t, e.options(t), nil)
	waiting, got := make(chan struct{}), make(chan *Lease)
	go func() {
		l, err := AcquireLease(t.Context(), e.options(t), func() { close(waiting) })
		if err != nil {
			t.Error(err)
		}
		got <- l
	}()
	<-waiting
	select {
	case <-got:
		t.Fatal("two processes have the lease")
	case <-time.After(2 * leaseRenew): // the holder renews it meanwhile
	}
	closeLease(t, first)
	closeLease(t, <-got)
}

func TestLeaseOfDeadHolderExpires(t *testing.T) {
	e := startExternal(t)
	dead := acquire(t, e.options(t), nil)
	dead.cancel() // as if killed: it neither renews nor releases the lease
	dead.tasks.Wait()
	dead.conn.Close()
	start := time.Now()
	l := acquire(t, e.options(t), nil)
	if took := time.Since(start); took < leaseTime/2 {
		t.Errorf("after %v", took)
	}
	closeLease(t, l)
}

func TestLeaseOfSameFolderIsReacquired(t *testing.T) {
	e := startExternal(t)
	o := e.options(t)
	dead := acquire(t, o, nil)
	dead.cancel()
	dead.tasks.Wait()
	dead.conn.Close()
	l := acquire(t, o, func() { t.Error("the holder waits for its own lease") })
	closeLease(t, l)
}

func TestLostLeaseIsReported(t *testing.T) {
	e := startExternal(t)
	l := acquire(t, e.options(t), nil)
	if _, err := l.kv.Put(t.Context(), leaseKey, []byte("another")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.Lost():
	case <-time.After(eventually.Patience):
		t.Fatal("the loss is not reported")
	}
	closeLease(t, l)
}

// expiringBucket is a bucket whose value expires just before it is read.
type expiringBucket struct{ jetstream.KeyValue }

func (kv expiringBucket) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if err := kv.Purge(ctx, key); err != nil {
		return nil, err
	}
	return kv.KeyValue.Get(ctx, key)
}

// TestExpiringLeaseIsNotReportedLost has a lease expire between a failed attempt to take it and the read of its holder, as
// after a change of the server's leader.
func TestExpiringLeaseIsNotReportedLost(t *testing.T) {
	e := startExternal(t)
	l := acquire(t, e.options(t), nil)
	l.cancel()
	l.tasks.Wait()
	kv, rev := l.kv, l.rev
	if _, err := kv.Put(t.Context(), leaseKey, []byte("an earlier holder")); err != nil {
		t.Fatal(err)
	}
	l.kv = expiringBucket{kv}
	if err := l.take(t.Context()); !errors.Is(err, errNotFree) || l.rev != rev {
		t.Errorf("got %v and revision %d, want %v and %d", err, l.rev, errNotFree, rev)
	}
	l.kv = kv
	if err := l.take(t.Context()); err != nil {
		t.Errorf("take a free lease: %v", err)
	}
	closeLease(t, l)
}

// TestLeaseIsNotLostToAnEarlierHolder has the server show a holder from before this process was it.
func TestLeaseIsNotLostToAnEarlierHolder(t *testing.T) {
	e := startExternal(t)
	l := acquire(t, e.options(t), nil)
	l.cancel()
	l.tasks.Wait()
	rev, err := l.kv.Put(t.Context(), leaseKey, []byte("another"))
	if err != nil {
		t.Fatal(err)
	}
	l.rev = rev + 1
	if err := l.take(t.Context()); !errors.Is(err, errNotFree) {
		t.Errorf("got %v, want %v", err, errNotFree)
	}
	l.rev = rev - 1
	if err := l.take(t.Context()); !errors.Is(err, errHeld) {
		t.Errorf("got %v, want %v", err, errHeld)
	}
	l.conn.Close()
}
