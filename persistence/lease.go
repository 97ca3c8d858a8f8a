package persistence

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/regular"
)

// Lease is the right to run a node whose journal is on a NATS system. It keeps a standby waiting while the node runs
// elsewhere. It does not prevent that two processes write: the fence does.
type Lease struct {
	log    *slog.Logger
	conn   *nats.Conn
	kv     jetstream.KeyValue
	holder string
	rev    uint64
	lost   chan struct{}
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

const (
	leaseTime   = 4 * time.Second // a holder that does not renew it for so long has lost it
	leaseRenew  = time.Second
	leaseTry    = 500 * time.Millisecond
	leaseAnswer = time.Second      // for one request, which gets no answer without a leader
	leaseRetry  = leaseTry         // for one request of the holder, which is made again at once
	leaseReady  = 15 * time.Second // for a NATS system that starts to answer
	leaseKey    = "holder"
	leaseFile   = "lease" // in the state folder, to recognize its own lease after a crash
)

// AcquireLease blocks until no other process runs the node, or until ctx ends. If another one does, it calls waiting
// once. It refuses with READ_ONLY if the NATS system cannot be reached.
func AcquireLease(ctx context.Context, o Options, waiting func()) (*Lease, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	l := &Lease{log: o.Log, lost: make(chan struct{})}
	if l.holder, err = leaseHolder(o.Folder); err != nil {
		return nil, readOnly("the state folder cannot be written", err)
	}
	access, err := o.Access.Options()
	if err != nil {
		return nil, err
	}
	var denied violations
	l.conn, err = nats.Connect(o.URL, append(access, nats.Name("parley lease"), nats.Timeout(connectTimeout), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond), nats.IgnoreAuthErrorAbort(), nats.PingInterval(leaseRenew), nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			denied.note(err)
			o.Log.Debug("lease's connection", "error", err)
		}))...)
	if err != nil {
		return nil, unreachable(err)
	}
	js, err := jetstream.New(l.conn, jetstream.WithDefaultTimeout(leaseAnswer))
	if err == nil {
		err = untilAnswered(ctx, func() (err error) {
			l.kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{
				Bucket: o.streamName() + "_lease", Description: "which process runs a Parley node",
				TTL: leaseTime, Replicas: o.Replicas, Storage: jetstream.FileStorage,
			})
			if last := denied.last.Load(); last != nil && isUnanswered(err) { // no answer will come
				return *last
			}
			return err
		})
	}
	if err == nil {
		err = l.wait(ctx, waiting)
	}
	if err != nil {
		l.conn.Close()
		return nil, denied.explain(unreachable(err))
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l.cancel = cancel
	l.tasks.Go(func() { l.renew(background) })
	return l, nil
}

// untilAnswered calls fn again while it gets no answer, for leaseReady at most. A NATS system whose servers have just
// started, or have lost one, elects leaders first.
func untilAnswered(ctx context.Context, fn func() error) error {
	for end := time.Now().Add(leaseReady); ; {
		err := fn()
		if !isUnanswered(err) || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(leaseTry):
		case <-ctx.Done():
			return err
		}
	}
}

// clusterUnavailable is the server's code for a JetStream that has no leader.
const clusterUnavailable = 10008

// isUnanswered reports whether an error may end by itself soon.
func isUnanswered(err error) bool {
	if e, ok := errors.AsType[*jetstream.APIError](err); ok {
		return e.ErrorCode == clusterUnavailable
	}
	for _, one := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, jetstream.ErrNoStreamResponse, nats.ErrNoResponders, nats.ErrReconnectBufExceeded, nats.ErrDisconnected,
	} {
		if errors.Is(err, one) {
			return true
		}
	}
	return false
}

// leaseHolder returns the name under which the folder's processes hold the lease. Only one of them runs at a time.
func leaseHolder(folder string) (string, error) {
	path := filepath.Join(folder, leaseFile)
	who, err := regular.Read(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(who) == 0 {
		who = []byte(rand.Text())
		err = os.WriteFile(path, who, 0o600)
	}
	machine, _ := os.Hostname() // the folder may have been copied to another
	return string(who) + "@" + machine, err
}

func (l *Lease) wait(ctx context.Context, waiting func()) error {
	tick := time.NewTicker(leaseTry)
	defer tick.Stop()
	for told, said := false, false; ; {
		err := untilAnswered(ctx, func() error { return l.take(ctx) })
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, errHeld) && !errors.Is(err, errNotFree) && !told:
			return err
		case !errors.Is(err, errHeld) && !errors.Is(err, errNotFree):
			if !said {
				l.log.Warn("the lease cannot be asked for; it is tried again", "error", err) // a server of the NATS system may have died
			}
			said = true
		case !told:
			told = true
			if waiting != nil {
				waiting()
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

var (
	errHeld    = errors.New("another process holds the lease")
	errNotFree = errors.New("the lease is not free yet")
)

// take makes this process the holder. It returns errHeld if another one is. It returns errNotFree if the lease could
// not be taken and no holder is known that came after this process: a lease ended meanwhile, or the server that was
// asked lags behind.
func (l *Lease) take(ctx context.Context) error {
	rev, err := l.kv.Create(ctx, leaseKey, []byte(l.holder))
	if err == nil {
		l.rev = rev
	}
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	held, err := l.kv.Get(ctx, leaseKey)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return errNotFree
	case err != nil:
		return err
	case string(held.Value()) != l.holder && held.Revision() <= l.rev:
		return errNotFree
	case string(held.Value()) != l.holder:
		return errHeld
	}
	l.rev = held.Revision() // of an earlier process in this folder
	return nil
}

// renew keeps the lease until ctx ends or another process has it. It retries after all other failures. The lease may
// expire meanwhile, and is taken again if it is free. The end of ctx cuts no request, so that rev stays the last one.
func (l *Lease) renew(ctx context.Context) {
	request := context.WithoutCancel(ctx)
	said := false
	for pause := leaseRenew; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = leaseRenew
		attempt, done := context.WithTimeout(request, leaseRetry)
		rev, err := l.kv.Update(attempt, leaseKey, []byte(l.holder), l.rev)
		done()
		if err == nil {
			l.rev, said = rev, false
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if !isUnanswered(err) {
			if err = l.take(request); errors.Is(err, errHeld) {
				close(l.lost)
				return
			}
		}
		if err != nil {
			pause = lookAgain // the lease may have expired, and a standby asks less often
			if !said {
				l.log.Warn("the lease cannot be renewed; it is tried again", "error", err)
			}
			said = true
		}
	}
}

// Lost returns a channel that is closed when another process has the lease.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Close releases the lease, so that a standby does not wait until it expires.
func (l *Lease) Close(ctx context.Context) error {
	l.cancel()
	l.tasks.Wait()
	defer l.conn.Close()
	err := l.kv.Delete(ctx, leaseKey, jetstream.LastRevision(l.rev))
	select {
	case <-l.lost:
		return nil
	default:
	}
	if err != nil {
		return fmt.Errorf("give up the lease: %w", err)
	}
	return nil
}
