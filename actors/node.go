package actors

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nkeys"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"parley"
	"parley/actors/keys"
	"parley/actors/peers"
	"parley/actors/runtime"
	"parley/actors/trace"
	"parley/actors/transport"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/natsauth"
	"parley/mailbox"
	"parley/persistence"
)

// Node is a running node. Its methods may be used by many goroutines.
type Node struct {
	o       Options
	log     *slog.Logger
	id      capabilities.NodeID
	host    capabilities.ID
	journal *persistence.Journal
	trace   *trace.Recorder    // nil if nobody receives spans
	lease   *persistence.Lease // nil if no other process can reach the journal
	ids     *capabilities.Source
	secrets *keys.SecretBox
	latest  atomic.Int64 // the latest time given out, in milliseconds

	registry *registry
	turns    *turns // of guests, for listings
	pieces   pieces

	ended      waiters[formKey, result[view.Outcome]]        // the ends of forms
	remoteAcks waiters[formKey, error]                       // acks of answers, by form, and of forwards, by grant; grants that a resource learns of
	changed    waiters[capabilities.ID, none]                // changes of mailboxes; of any token, for the zero ID
	touched    waiters[messageKey, none]                     // changes of messages
	finished   waiters[capabilities.ID, result[view.Finish]] // the ends of agents' work
	leases     waiters[leaseKey, none]                       // leases that are held now, or have ended
	outputs    waiters[capabilities.ID, none]                // the output of programs

	hostAliases hostAliasCache
	tokenEpoch  atomic.Uint64 // how often tokens may have been revoked
	peers       *peers.Directory
	transport   *transport.Transport

	scheduler *scheduler
	snapshots *snapshots
	searches  *searches
	files     *fileStore
	resources *resources
	archive   *Archive
	schemas   *schemaCache
	accounts  *accounts
	loading   chan struct{} // has one for each mailbox that is being read

	supervisor *supervisor
	directory  *directory

	risk       atomic.Pointer[func(*parley.Permission) mailbox.Risk]                                         // see SetRisk
	leased     atomic.Pointer[func(context.Context, *Agent, *parley.Permission) (view.Lease, string, error)] // see SetLeased
	challenges atomic.Pointer[func(capabilities.ID, string) error]                                           // see SetChallenges

	life   context.Context // ends when the node closes
	end    context.CancelFunc
	tasks  sync.WaitGroup
	done   chan struct{} // closed when the node has to stop
	doneMu sync.Mutex
	why    error
	ending bool // run runs nothing more
	closed sync.Once
}

// Open starts the node of a state folder, and makes a node if there is none. It returns when the node is ready to
// answer. It fails with CORRUPT_LOG if the log is not whole, and with READ_ONLY if the folder cannot be written. It
// fails with ALREADY_RUNNING if another process has it open. A node whose journal is elsewhere waits, as a standby, as
// long as another process runs it. The caller closes the node.
func Open(ctx context.Context, o Options) (*Node, error) {
	o = o.withDefaults()
	key, err := keys.LoadOrCreate(o.Folder)
	if err != nil {
		return nil, err
	}
	id, err := keys.NodeOf(key)
	if err != nil {
		return nil, err
	}
	n := &Node{o: o, log: o.Log, id: id, done: make(chan struct{}), loading: make(chan struct{}, maxLoading)}
	if n.secrets, err = keys.NewSecretBox(key); err != nil {
		return nil, err
	}
	if n.accounts, err = newAccounts(n); err != nil {
		return nil, err
	}
	if err := runtime.NewLauncher(o.Programs).Check(runtime.Spec{}); err != nil {
		return nil, err
	}
	held, err := areHeld(o.Folder)
	if err != nil {
		return nil, err
	}
	jo := o.journal()
	jo.Node = id
	n.registry, n.turns = newRegistry(n), newTurns()
	n.peers = newPeers(n)
	n.supervisor, n.directory, n.schemas = newSupervisor(n), newDirectory(n), newSchemaCache(schemaCacheSize)
	n.supervisor.held = held
	jo.Busy = n.registry.dispatcher.busy
	if o.URL != "" {
		n.lease, err = persistence.AcquireLease(ctx, jo, o.Standby)
	}
	if err == nil {
		n.journal, err = persistence.Open(ctx, jo)
	}
	if err != nil {
		n.registry.end()
		return nil, errors.Join(err, giveUpLease(n, ctx))
	}
	n.latest.Store(int64(n.journal.LastTime()))
	n.life, n.end = context.WithCancel(context.WithoutCancel(ctx))
	n.scheduler = newScheduler(n)
	n.snapshots = newSnapshots(n)
	n.archive = &Archive{node: n}
	n.searches = newSearches(n)
	n.files, n.resources = newFileStore(n), newResources(n)
	if err := n.start(key); err != nil {
		return nil, errors.Join(err, n.Close(ctx))
	}
	return n, nil
}

// start makes the host if there is none, and resumes the node's work from its log.
func (n *Node) start(key nkeys.KeyPair) (err error) {
	if n.trace, err = trace.New(n.o.Spans, n.id, n.o.Name, n.o.Clock); err != nil {
		return err
	}
	for id := range n.journal.Mailboxes() {
		n.host = id // the host is the oldest agent
		break
	}
	n.ids = capabilities.NewSource(n.id, func() time.Time { return n.now().Std() }, rand.Reader, n.host.ULID)
	if n.host.IsZero() {
		if err := makeHost(n); err != nil {
			return err
		}
	}
	n.spawnRoot()
	n.tasks.Go(n.snapshots.run)
	n.tasks.Go(n.searches.run)
	if err := n.files.open(); err != nil {
		return err
	}
	n.tasks.Go(n.files.run)
	if n.lease != nil {
		n.tasks.Go(n.watchLease)
	}
	if err := n.connect(key); err != nil {
		return err
	}
	recovery := n.registry.beginRecovery()
	n.resume(recovery)
	recovery.done()
	return nil
}

// watchLease stops the node when another process has taken it over.
func (n *Node) watchLease() {
	select {
	case <-n.lease.Lost():
		n.log.Error("another process has taken the node over: stopping")
		n.stopFor(parley.Refuse(parley.ReadOnly, "another process has taken the node over"))
	case <-n.life.Done():
	}
}

func giveUpLease(n *Node, ctx context.Context) error {
	if n.lease == nil {
		return nil
	}
	return n.lease.Close(ctx)
}

func makeHost(n *Node) error {
	id, err := n.ids.Next()
	if err != nil {
		return err
	}
	s := mailbox.New(id)
	genesis := &events.AgentCreated{Agent: id, Kind: events.Host, Host: id, Name: "HOST"}
	section, err := firstSection(s, n.now(), genesis)
	if err != nil {
		return err
	}
	stored := make(chan error, 1)
	n.journal.Release(n.journal.Append(section), func(err error) { stored <- err })
	if err := <-stored; err != nil {
		return fmt.Errorf("make the host: %w", err)
	}
	n.host = id
	return nil
}

// resume resumes the log's unfinished work: undelivered mail and deadlines.
func (n *Node) resume(c *recovery) {
	for id, m := range n.journal.Mailboxes() {
		n.scheduler.expect(id, m.Summary.Deadline)
		if m.Summary.Outbox > 0 {
			n.registry.resumeIn(c, id)
		}
	}
}

// resumeMailbox has a mailbox deliver its items and run its program. A mailbox that cannot be read is tried again later,
// because no other message may activate it.
func resumeMailbox(n *Node, id capabilities.ID) {
	n.registry.tell(id, 0, resume{node: n, mailbox: id})
}

// resumeLater resumes a mailbox that could not be read, unless it is damaged.
func resumeLater(n *Node, id capabilities.ID, why error) {
	if parley.CodeOf(why) != parley.CorruptLog {
		n.later(retryMost, func() { resumeMailbox(n, id) })
	}
}

// replay makes a mailbox's state from its newest snapshot and the events after it. It also returns the
// version of the snapshot.
func (n *Node) replay(ctx context.Context, id capabilities.ID) (*mailbox.State, uint64, error) {
	select {
	case n.loading <- struct{}{}:
		defer func() { <-n.loading }()
	case <-ctx.Done():
		return nil, 0, errEnded(ctx, n)
	}
	loaded, err := n.journal.Load(ctx, id)
	if err != nil {
		return nil, 0, fmt.Errorf("mailbox %s: %w", id, err)
	}
	s, saved := mailbox.New(id), uint64(0)
	if loaded.Snapshot != nil {
		s, err = mailbox.Restore(id, loaded.Snapshot)
	}
	if err == nil {
		saved = s.Version
		err = n.fold(ctx, s, loaded.Events)
	}
	if _, lost := errors.AsType[lostPage](err); loaded.Snapshot != nil && (s == nil || lost) {
		n.log.Warn("snapshot not used", "mailbox", id.String(), "error", err)
		saved = 0
		s, err = n.replayAll(ctx, id)
	}
	if err != nil {
		return nil, 0, err
	}
	if s.Version == 0 {
		return nil, 0, parley.Refuse(parley.AgentNotFound, "no agent %s", id)
	}
	shareFields(n, s)
	return s, saved, nil
}

// replayAll makes a mailbox's state from all its events, without a snapshot. The archive has the state after those that
// have left the journal.
func (n *Node) replayAll(ctx context.Context, id capabilities.ID) (*mailbox.State, error) {
	loaded, err := n.journal.Replay(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("mailbox %s: %w", id, err)
	}
	s := mailbox.New(id)
	if loaded.Snapshot != nil {
		if s, err = mailbox.Restore(id, loaded.Snapshot); err != nil {
			n.log.Warn("state of the archive not used", "mailbox", id.String(), "error", err)
			unused := err
			s = mailbox.New(id)
			if loaded.Events, err = n.journal.Events(ctx, id, 0, 0); err != nil {
				if parley.CodeOf(unused) == parley.NewerLog { // with the events elsewhere, that is why
					return nil, unused
				}
				return nil, fmt.Errorf("mailbox %s: %w", id, err)
			}
		}
	}
	return s, n.fold(ctx, s, loaded.Events)
}

// trimEvery is the number of events after which a replay looks at the old messages that it keeps. It looks at each of them.
const trimEvery = 64

// fold applies events to a state.
func (n *Node) fold(ctx context.Context, s *mailbox.State, evs []persistence.Entry) error {
	old := map[uint64]*mailbox.Message{}
	s.Mail.UseOld(old)
	for i, e := range evs {
		if i%trimEvery == 0 {
			trimOld(old, maxOldReplay)
		}
		err := applyRecalling(ctx, n.journal, s, e.Recorded, old)
		if _, lost := errors.AsType[lostPage](err); lost {
			return err
		}
		if err != nil {
			return parley.Refuse(parley.CorruptLog, "mailbox %s is put aside: commit %d: %v", s.ID, e.Commit, err).
				WithHint("the other mailboxes are well; parley log shows what this one has")
		}
		s.Mail.Index.PageOut(maxPagedIn)
		s.Tables().PageOut(maxTablePages)
	}
	return nil
}

// clock returns the time by which what people wait for is due. It goes back with the clock: see the file clock.go of package mailbox.
func (n *Node) clock() capabilities.Time { return capabilities.At(n.o.Clock()) }

// behind returns how far the clock is behind the node's time; 0 if it is not.
func (n *Node) behind() capabilities.Time {
	latest := capabilities.Time(n.latest.Load()) // before the clock is read, which is ahead of it then if it never went back
	return max(latest-n.clock(), 0)
}

// now returns the node's time. It never goes back, even if the clock does.
func (n *Node) now() capabilities.Time {
	for {
		last, now := n.latest.Load(), n.o.Clock().UnixMilli()
		if now <= last {
			return capabilities.Time(last)
		}
		if n.latest.CompareAndSwap(last, now) {
			return capabilities.Time(now)
		}
	}
}

// newID returns a new ID. It cannot fail: crypto/rand itself ends the program if there is no randomness.
func (n *Node) newID() capabilities.ID {
	id, err := n.ids.Next()
	if err != nil {
		panic(err)
	}
	return id
}

// ID returns the node's ID.
func (n *Node) ID() capabilities.NodeID { return n.id }

// Host returns the agent that the node's owner acts as.
func (n *Node) Host() *Agent { return &Agent{node: n, id: n.host} }

// State returns the state of the node.
func (n *Node) State() view.NodeState {
	js := n.journal.Stats()
	st := view.NodeState{
		Node: n.id, Name: n.o.Name, Active: n.registry.active(),
		Agents: js.Mailboxes, OpenForms: int(js.Open),
		Journal: view.JournalState{Commits: js.Commits, Events: js.Events, Bytes: js.Bytes, Flushing: int(js.Flushing.Seconds())},
	}
	if behind := n.behind(); behind >= behindLeast {
		st.Journal.Behind = int(behind / 1000)
	}
	archived := n.journal.Archive()
	st.Journal.Archived = archived.End.Number
	for _, s := range archived.Segments {
		st.Journal.ArchiveBytes += uint64(s.Bytes)
	}
	if err := n.journal.Err(); err != nil {
		st.Problem = parley.AsError(err)
	}
	return st
}

// Verify reads the whole log and reports its contents. It refuses with CORRUPT_LOG, with the first bad commit.
func (n *Node) Verify(ctx context.Context) (persistence.Report, error) { return n.journal.Verify(ctx) }

// Backup writes the journal as it is now, checked on the way, without stopping anything.
func (n *Node) Backup(ctx context.Context, w io.Writer) error { return n.journal.Backup(ctx, w) }

// BackupAfter writes the part of the journal after a mark, for a backup that has the part before it.
func (n *Node) BackupAfter(ctx context.Context, after persistence.Mark, w io.Writer) error {
	return n.journal.BackupAfter(ctx, after, w)
}

// Done is closed when the node has to stop, because another process has taken it over. Err returns the reason.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns the reason why Done is closed.
func (n *Node) Err() error {
	n.doneMu.Lock()
	defer n.doneMu.Unlock()
	return n.why
}

// Close makes durable what was accepted, and ends everything that the node has started. Calls that wait get
// NOT_RUNNING.
func (n *Node) Close(ctx context.Context) error {
	var err error
	n.closed.Do(func() {
		n.registry.close()
		n.supervisor.close()
		n.peers.Close()
		n.peers.Leave(ctx)
		n.end()
		if n.transport != nil {
			err = n.transport.Close()
		}
		n.peers.Stop()
		n.doneMu.Lock()
		n.ending = true
		n.doneMu.Unlock()
		n.tasks.Wait()
		n.scheduler.stop()
		err = errors.Join(err, n.registry.drain(ctx))
		n.registry.saveLast(ctx)
		err = errors.Join(err, n.searches.close(), n.journal.Close(ctx), giveUpLease(n, ctx))
		n.registry.end()
		n.trace.Close(ctx)
	})
	return err
}

// run runs a function in a goroutine that Close waits for. It reports false once the node closes: then nothing is run.
func (n *Node) run(fn func()) bool {
	n.doneMu.Lock()
	defer n.doneMu.Unlock()
	if n.ending {
		return false
	}
	n.tasks.Go(fn)
	return true
}

// DeriveKey returns 32 secret bytes for a purpose: the same at every start of the node, and of no use for
// any other purpose. They sign data that leaves the node and comes back.
func (n *Node) DeriveKey(purpose string) ([]byte, error) {
	key, err := keys.Load(n.o.Folder)
	if err != nil {
		return nil, err
	}
	return keys.Derive(key, purpose)
}

// Options configure a node. Only Folder is required.
type Options struct {
	Folder   string          // the state folder: key, journal, high-water mark
	Name     string          // the node's display name; default: the host's name
	URL      string          // NATS system to keep the journal on; default: embedded
	Access   natsauth.Access // to that NATS system
	Replicas int             // of the journal on that NATS system; default 1
	Peers    string          // address on which other nodes reach this one; default: none
	Public   string          // address to announce to them, if it differs from Peers
	Unproved int             // connections from one address to Peers that have not proved a node's key; default 128
	Log      *slog.Logger    // default: nothing is logged
	Idle     time.Duration   // a mailbox that is not used for so long is passivated; default 30 s
	Runs     int             // programs of agents that may run at once; default 256

	Quotas     map[string]int64 // of each agent, by name, where they differ from quota.Agent; -1 is none
	PeerQuotas map[string]int64 // of each other node, where they differ from quota.Peer
	Programs   ProgramDefaults  // what holds for all of them
	TakeOver   bool             // the process runs only the node: processes that programs leave become its children, and are ended

	// Spans, if set, receives spans of OpenTelemetry about the forms of the node.
	Spans sdktrace.SpanExporter

	// Retention is the age at which commits are archived, where that frees enough. Zero, the default, archives nothing.
	Retention time.Duration

	// Standby, if any, is called when, with a URL, the node runs in another process: Open waits until that ends.
	Standby func()

	Clock     func() time.Time        // default time.Now
	Failpoint func(step string) error // for tests: see persistence.Options
}

// ProgramDefaults hold for all programs of a node.
type ProgramDefaults = runtime.Defaults

const (
	defaultIdle      = 30 * time.Second
	defaultRuns      = 256
	maxLoading       = 4        // mailboxes that are read from the log at once, at a start too
	maxQueuedMailbox = 4096     // calls waiting for one mailbox
	maxQueuedNode    = 65536    // calls waiting in all
	maxBacklog       = 64 << 20 // bytes appended and not yet durable
	maxSectionBytes  = 700 << 10
)

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name, _ = os.Hostname() // a node without a name is still a node
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.Runs <= 0 {
		o.Runs = defaultRuns
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

func (o Options) journal() persistence.Options {
	return persistence.Options{
		Folder: o.Folder, URL: o.URL, Access: o.Access, Replicas: o.Replicas, Log: o.Log, Clock: o.Clock, Failpoint: o.Failpoint,
	}
}
