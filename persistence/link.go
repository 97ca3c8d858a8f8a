package persistence

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley"
)

const (
	connectTimeout = 2 * time.Second  // for one server: it may hang, and take connections nevertheless
	answerTimeout  = 10 * time.Second // for requests other than commits
)

// writeAtOnce is the small write buffer for the embedded server. The sending goroutine writes longer messages itself,
// which saves a switch for each commit.
const writeAtOnce = 64

// link is a connection to the stream, with the server behind it if that is embedded.
type link struct {
	o         *Options
	server    *natsserver.Server // nil if external
	serverLog *serverLog         // of server
	conn      *nats.Conn
	legacy    nats.JetStreamContext // the faster reader of whole ranges
	js        jetstream.JetStream

	inbox string         // prefix of the subjects of answers to commits
	acks  chan *nats.Msg // answers to commits
	sent  uint64

	blocks, outputs, files *names // of the journal, the output and the files, if the server is embedded

	leaderUntil atomic.Int64 // until when commits are read from the leader, in Unix nanoseconds

	claimed bool          // it may have written; guarded by its owner
	old     *inspector    // of older blocks; nil if the server is external
	stored  atomic.Uint64 // the first commit in the stream; 0 before begin
	first   atomic.Uint64 // the first commit that is read from the stream

	denied violations

	failureMu  sync.Mutex
	failure    error         // the reason why an answer may not come
	interrupts chan struct{} // receives when failure is set
	closed     sync.Once
}

// connect connects to the server. It starts the server first if it is embedded.
func connect(o *Options) (*link, error) {
	l := &link{o: o, interrupts: make(chan struct{}, 1)}
	opts := []nats.Option{
		nats.Name("parley journal"),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.IgnoreAuthErrorAbort(), // a user may be let in again
		nats.ReconnectBufSize(-1),   // a commit that could not be sent must not be sent later
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			l.interrupt(fmt.Errorf("connection lost: %w", errors.Join(nats.ErrDisconnected, err)))
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			o.Log.Debug("journal's connection", "error", err)
			if l.denied.note(err) && strings.Contains(err.Error(), strconv.Quote(o.subject())) {
				l.interrupt(err) // the server drops what it does not permit, and answers nothing
			}
		}),
	}
	if o.URL == "" {
		logger := &serverLog{log: o.Log}
		var err error
		if l.old, err = inspect(o.streamName(), blockFolder(o)); err != nil {
			return nil, err
		}
		server, err := startServer(o, logger)
		if err != nil {
			return nil, err
		}
		l.server, l.serverLog = server, logger
		l.blocks = &names{folder: blockFolder(o)}
		l.outputs = &names{folder: blockFolderOf(o, o.outputName())}
		l.files = &names{folder: blockFolderOf(o, o.filesName())}
		opts = append(opts,
			nats.InProcessServer(server),
			nats.PingInterval(never), // a disk that hangs stops the answers, and the server cannot be gone
			nats.WriteBufferSize(writeAtOnce))
	} else {
		access, err := o.Access.Options()
		if err != nil {
			return nil, err
		}
		opts = append(opts, access...)
		opts = append(opts, nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2)) // detects a server that is gone, or hangs
	}
	if err := l.dial(opts); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *link) dial(opts []nats.Option) (err error) {
	if l.conn, err = nats.Connect(l.o.URL, opts...); err != nil {
		return unreachable(err)
	}
	within := answerTimeout
	if l.server == nil {
		within = lookTimeout
	}
	if l.legacy, err = l.conn.JetStream(nats.MaxWait(within)); err != nil {
		return unreachable(err)
	}
	if l.js, err = jetstream.New(l.conn, jetstream.WithDefaultTimeout(within)); err != nil {
		return unreachable(err)
	}
	l.inbox, l.acks = nats.NewInbox()+".", make(chan *nats.Msg, 16)
	if _, err = l.conn.ChanSubscribe(l.inbox+"*", l.acks); err != nil {
		return unreachable(err)
	}
	if room := int(l.conn.MaxPayload()) - frameOverhead; room < l.o.MaxFrame {
		return parley.Refuse(parley.InvalidArgument, "frames of %d bytes: the server takes at most %d", l.o.MaxFrame, room)
	}
	return nil
}

// refusal is the error of a server that answers, and refuses what the node needs.
type refusal struct{ error *parley.Error }

func (r refusal) Error() string { return r.error.Error() }
func (r refusal) Unwrap() error { return r.error }

// violations has the last that a server did not permit on a connection. The server drops it, and answers nothing.
type violations struct{ last atomic.Pointer[error] }

// note keeps an error of the connection if it is such, and reports whether it is.
func (v *violations) note(err error) bool {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return false
	}
	v.last.Store(&err)
	return true
}

// explain returns the error of something that was done on the connection. Where that has ended by time, the violation is the reason.
func (v *violations) explain(err error) error {
	last := v.last.Load()
	if _, said := errors.AsType[refusal](err); said || last == nil || parley.CodeOf(err) != parley.ReadOnly {
		return err
	}
	return unreachable(*last)
}

func unreachable(err error) error {
	if hint := refusalHint(err); hint != "" {
		return refusal{parley.Refuse(parley.ReadOnly, "the server refuses the node: %v", err).WithHint("%s", hint)}
	}
	return parley.Refuse(parley.ReadOnly, "the journal's server is out of reach: %v", err)
}

// Codes of JetStream's errors.
const (
	noJetStream        = 10076
	noJetStreamAccount = 10039
	tooManyStreams     = 10027
	tooMuchStored      = 10002
	noPeers            = 10005
	noCluster          = 10074
)

// serverError is the error of a server that has not stored a commit.
type serverError struct {
	code        int
	description string
}

func (e serverError) Error() string { return fmt.Sprintf("server: %s (%d)", e.description, e.code) }

// refusalHint returns what to do about a server that answers, and refuses what the node needs; "" if it does not.
func refusalHint(err error) string {
	code := 0
	if e, ok := errors.AsType[*jetstream.APIError](err); ok {
		code = int(e.ErrorCode)
	} else if e, ok := errors.AsType[*nats.APIError](err); ok {
		code = int(e.ErrorCode)
	} else if e, ok := errors.AsType[serverError](err); ok {
		code = e.code
	}
	switch {
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return "it does not know the user, or not any more: --nats-creds or --nats-nkey name the one of the node"
	case errors.Is(err, nats.ErrPermissionViolation):
		return "docs/nats.md has the subjects that the user of the node needs"
	case code == noJetStream, code == noJetStreamAccount, errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return "give the account of the node JetStream"
	case errors.Is(err, nats.ErrMaxConnectionsExceeded), errors.Is(err, nats.ErrMaxAccountConnectionsExceeded):
		return "the server or the account of the node takes no more connections: raise their limit"
	case errors.Is(err, nats.ErrTLS), errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted), isOfCertificates(err):
		return "--nats-tls-ca names the authorities that vouch for the servers, --nats-tls-cert and --nats-tls-key the certificate that servers ask for"
	case code == noPeers, code == noCluster:
		return "the cluster has not as many servers with JetStream, and room on them, as --replicas wants"
	case code == tooManyStreams, code == tooMuchStored:
		return "the account of the node has reached the limits of its JetStream: raise them"
	}
	return ""
}

// isOfCertificates reports whether an error is of the certificates of a connection, which the library does not always call one of TLS.
func isOfCertificates(err error) bool {
	_, invalid := errors.AsType[*tls.CertificateVerificationError](err)
	alert, ended := errors.AsType[*net.OpError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	return invalid || plain || ended && alert.Op == "remote error" // as crypto/tls says what the server has said
}

// interrupt ends the wait for an answer that may not come, with err.
func (l *link) interrupt(err error) {
	l.failureMu.Lock()
	l.failure = err
	l.failureMu.Unlock()
	select {
	case l.interrupts <- struct{}{}:
	default:
	}
}

// resetInterrupt drops an earlier interrupt.
func (l *link) resetInterrupt() {
	select {
	case <-l.interrupts:
	default:
	}
}

// err returns the reason why an answer may not come, or nil.
func (l *link) err() error {
	l.failureMu.Lock()
	defer l.failureMu.Unlock()
	return l.failure
}

func (l *link) close() {
	l.closed.Do(func() {
		if l.conn != nil {
			l.conn.Close()
		}
		if l.server != nil {
			stopServer(l.server)
			if l.claimed {
				if err := trustState(l.o); err != nil {
					l.o.Log.Warn("the next start reads the whole journal", "error", err)
				}
			}
		}
	})
}

// restoring is the key in a stream's metadata that marks an unfinished restore.
const restoring = "parley-restore"

// lookTimeout bounds a request about the stream to an external server, which gets no answer without a leader.
const lookTimeout = time.Second

func streamConfig(o *Options) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        o.streamName(),
		Subjects:    []string{o.subject()},
		Description: "a Parley node's journal: one message per commit",
		Storage:     jetstream.FileStorage,
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardNew,
		MaxMsgs:     -1,
		MaxBytes:    cmp.Or(o.maxBytes, -1),
		MaxMsgSize:  -1,
		Replicas:    o.Replicas,
		Duplicates:  100 * time.Millisecond, // the default makes recovery slow
		DenyDelete:  true,
		AllowDirect: true,
	}
}

// openStream finds the stream. If there is none, it creates one, but only if the mark shows that there never was one.
func (l *link) openStream(ctx context.Context, mark Mark) (jetstream.StreamState, error) {
	state, found, err := l.awaitStream(ctx, mark)
	if err != nil || found {
		return state, err
	}
	if err := l.mayCreate(mark); err != nil {
		return state, err
	}
	if err := l.prepare(ctx, l.o.streamName()); err != nil {
		return state, err
	}
	if _, err := l.js.CreateStream(ctx, streamConfig(l.o)); err != nil {
		return state, fmt.Errorf("create the journal: %w", unreachable(err))
	}
	state, _, err = l.findStream(ctx)
	return state, err
}

// awaitStream is findStream for a stream that the mark shows to exist. An external server that starts may report for a
// while that it has none.
func (l *link) awaitStream(ctx context.Context, mark Mark) (state jetstream.StreamState, found bool, err error) {
	began := time.Now()
	for said := false; ; said = true {
		state, found, err = l.findStream(ctx)
		if err != nil || found || l.server != nil || mark.Number == 0 || time.Since(began) > serverStart {
			return state, found, err
		}
		if !said {
			l.o.Log.Warn("the server does not have the journal yet", "within", serverStart)
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return state, false, context.Cause(ctx)
		}
	}
}

// findStream looks for the stream. It refuses a stream that is set up as no journal is.
func (l *link) findStream(ctx context.Context) (state jetstream.StreamState, found bool, err error) {
	if l.server == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, lookTimeout)
		defer cancel()
	}
	s, err := l.js.Stream(ctx, l.o.streamName())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return state, false, nil
	}
	if err != nil {
		return state, false, unreachable(err)
	}
	in := s.CachedInfo()
	if err := checkConfig(l.o, &in.Config); err != nil {
		return state, true, err
	}
	if in.State.LastSeq > 0 && in.State.Msgs != in.State.LastSeq-in.State.FirstSeq+1 {
		if with, err := s.Info(ctx, jetstream.WithDeletedDetails(true)); err == nil {
			in = with
		}
	}
	return in.State, true, nil
}

// begin notes the first commit in the stream, and the first that is read from there. It refuses a stream that cannot have
// all that is not archived.
func (l *link) begin(s jetstream.StreamState, a *archived) error {
	l.stored.Store(max(s.FirstSeq, 1))
	l.first.Store(max(s.FirstSeq, 1, a.left()+1))
	return checkState(s, a.end().Number)
}

// prepare prepares to create a stream where the embedded server may have left an unfinished one. The server keeps a
// description that is there, even one without its checksum: at the next start it would not find the stream.
func (l *link) prepare(ctx context.Context, stream string) error {
	if l.server == nil {
		return nil
	}
	switch _, err := l.js.Stream(ctx, stream); {
	case err == nil:
		return nil
	case !errors.Is(err, jetstream.ErrStreamNotFound):
		return unreachable(err)
	}
	blocks := blockFolderOf(l.o, stream)
	folder := filepath.Dir(blocks)
	err := os.Remove(filepath.Join(folder, natsserver.JetStreamMetaFile))
	if !holdsCommits(blocks) {
		err = os.RemoveAll(folder)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return readOnly("an unfinished stream cannot be removed", err)
	}
	return nil
}

// mayCreate refuses to create the stream where there was one. If only its description is lost, the server makes that
// again and finds the blocks: all that is in it is known. Without a mark the stream may be that of a restore that was not
// finished.
func (l *link) mayCreate(mark Mark) error {
	if l.server != nil && holdsCommits(blockFolder(l.o)) {
		if mark.Number > 0 {
			l.o.Log.Warn("the journal " + descriptionLoss(l.o) + "; it is made again")
			return nil
		}
		return parley.Refuse(parley.CorruptLog, "commit 1: cannot be read, nor those after it: the journal %s", descriptionLoss(l.o)).
			WithHint("its blocks are still there; put the file back from a copy, or restore a backup into a new folder")
	}
	if mark.Number > 0 {
		return missingJournal(mark)
	}
	return nil
}

func missingJournal(mark Mark) error {
	return parley.Refuse(parley.CorruptLog, "commit 1: is missing, and so is the whole journal to commit %d", mark.Number).
		WithHint("put the journal back, or restore a backup into a new folder")
}

// descriptionLoss says which file of the stream's description is lost.
func descriptionLoss(o *Options) string {
	folder := filepath.Dir(blockFolder(o))
	for _, name := range []string{natsserver.JetStreamMetaFile, natsserver.JetStreamMetaFileSum} {
		if _, err := os.Lstat(filepath.Join(folder, name)); err != nil {
			return "has lost its description: " + name + " is missing"
		}
	}
	return fmt.Sprintf("has a damaged description: %s and %s are not of each other", natsserver.JetStreamMetaFile, natsserver.JetStreamMetaFileSum)
}

// holdsCommits reports whether a folder has blocks that are not empty. A process that is killed while it creates the
// stream leaves empty blocks.
func holdsCommits(folder string) bool {
	blocks, _ := filepath.Glob(filepath.Join(folder, "*.blk")) // the pattern is valid
	for _, b := range blocks {
		if info, err := os.Stat(b); err != nil || info.Size() > 0 {
			return true
		}
	}
	return false
}

func checkConfig(o *Options, c *jetstream.StreamConfig) error {
	switch {
	case c.Metadata[restoring] != "":
		return parley.Refuse(parley.CorruptLog, "the journal's restore was not finished").
			WithHint("restore the backup again, into a new folder")
	case len(c.Subjects) != 1 || c.Subjects[0] != o.subject() || c.Storage != jetstream.FileStorage ||
		c.MaxMsgs > 0 || c.MaxBytes > o.maxBytes || c.MaxAge > 0 || c.MaxMsgsPerSubject > 0 || c.Retention != jetstream.LimitsPolicy:
		return parley.Refuse(parley.InvalidArgument, "stream %s is set up as no journal may be: it can forget", c.Name)
	}
	return nil
}

// checkState refuses a stream with losses that the server reports itself. The commits up to archived may be elsewhere, some
// or all of them.
func checkState(s jetstream.StreamState, archived uint64) error {
	switch {
	case s.LastSeq == 0:
		return nil
	case s.FirstSeq > archived+1 || s.FirstSeq == 0:
		e := lost(archived+1, "is missing: the journal begins with commit %d", s.FirstSeq)
		if archived == 0 {
			e = e.WithHint("if the beginning was archived, put the node's folder archive back from a copy; else restore a backup into a new folder")
		}
		return e
	case len(s.Deleted) > 0:
		for i, number := range s.Deleted {
			if number > archived {
				return lost(number, "is missing, one of %d that are", len(s.Deleted)-i)
			}
		}
	case s.Msgs != s.LastSeq-s.FirstSeq+1:
		return lost(s.LastSeq, "or one before it is missing: there are %d", s.Msgs)
	}
	return nil
}

// lost returns CORRUPT_LOG for a commit.
func lost(number uint64, format string, args ...any) *parley.Error {
	e := parley.Refuse(parley.CorruptLog, "commit %d: %s", number, fmt.Sprintf(format, args...))
	return e.WithHint("stop the node, keep a copy of its folder, and restore a backup into a new one; parley verify says what is whole")
}

// lostFrom returns CORRUPT_LOG for the commits from one number to another, at the end of what the log had. What says how they are, and
// were how they had to be kept.
func lostFrom(first, last uint64, what, were string) *parley.Error {
	if first == last {
		return lost(first, "it is %s, and was %s", what, were)
	}
	return lost(first, "it and those to %d are %s, and were %s", last, what, were)
}

// lostBehind returns CORRUPT_LOG for a log that is whole up to a commit, and of which the server reads none behind that, up to one which
// was durable. One byte is enough: the server leaves out the rest of the file in which it is, whether that is damaged or not.
func lostBehind(whole, last uint64) *parley.Error {
	e := lost(whole+1, "it is missing or damaged, and was durable")
	others := ""
	if last > whole+1 {
		e = lost(whole+1, "it is missing or damaged, and those behind it, to %d, cannot be read: they were durable, and may be whole on the disk", last)
		others = ", and those behind it may be"
	}
	intact := "no commit before it is known to be whole"
	if whole > 0 {
		intact = fmt.Sprintf("commits up to %d are whole%s", whole, others)
	}
	return e.WithHint("%s: stop the node, and keep a copy of its folder first. Put the damaged file of the folder journal back from a copy or a snapshot of the disk, and all is there again; else restore a backup into a new folder", intact)
}

// awaitEnd returns the state of a stream that has a message which was durable. A server of a cluster that was just
// elected leader may report less. It does until it has applied what it has stored. One that was cut off reports as the
// leader for some 10 s more. A stream that really lacks the message is returned as it is, after serverStart.
func (l *link) awaitEnd(ctx context.Context, state jetstream.StreamState, number uint64) (jetstream.StreamState, error) {
	if l.server != nil || state.LastSeq >= number {
		return state, nil
	}
	l.o.Log.Warn("the server does not have the newest commits yet", "last", state.LastSeq, "durable", number, "within", serverStart)
	for end := time.Now().Add(serverStart); state.LastSeq < number && time.Now().Before(end); {
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			return state, context.Cause(ctx)
		}
		again, found, err := l.findStream(ctx)
		if err != nil {
			return state, err
		}
		if found {
			state = again
		}
	}
	return state, nil
}

const (
	serverStart = 30 * time.Second
	serverReady = 2 * time.Second
	never       = 100 * 365 * 24 * time.Hour
)

func journalFolder(folder string) string { return filepath.Join(folder, "journal") }

// blockFolder returns the folder of the stream's blocks.
func blockFolder(o *Options) string { return blockFolderOf(o, o.streamName()) }

func blockFolderOf(o *Options, stream string) string {
	return filepath.Join(journalFolder(o.Folder), "jetstream", "$G", "streams", stream, "msgs")
}

// startServer starts a server in this process, without a listener. Acknowledged messages of the journal and of output are
// on disk.
func startServer(o *Options, logger *serverLog) (*natsserver.Server, error) {
	srv, err := natsserver.NewServer(&natsserver.Options{
		ServerName:             "parley-" + o.Node.String(),
		DontListen:             true,
		NoSigs:                 true,
		NoLog:                  true, // serverLog is set below
		DisableJetStreamBanner: true,
		JetStream:              true,
		StoreDir:               journalFolder(o.Folder),
		JetStreamMaxStore:      1 << 50, // the disk is the limit
		JetStreamMaxMemory:     256 << 20,
		SyncAlways:             !o.unsynced,
		SyncInterval:           never, // snapshots are derived, and need no flush
		PingInterval:           never,
		MaxPayload:             embeddedPayload,
	})
	if err != nil {
		return nil, parley.Refuse(parley.ReadOnly, "the journal's server does not start: %v", err)
	}
	srv.SetLoggerV2(logger, false, false, false)
	srv.Start()
	// Start has returned. So the server is ready or never will be, and the wait is not for its disk.
	if !srv.JetStreamEnabled() || !srv.ReadyForConnections(serverReady) {
		stopServer(srv)
		e := parley.Refuse(parley.ReadOnly, "the journal's server does not start").
			WithHint("see the log; the disk may be full or the folder not writable")
		if last := logger.last.Load(); last != nil {
			e.Message += ": " + cause(*last).Error()
		}
		return nil, e
	}
	return srv, nil
}

func stopServer(srv *natsserver.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

// serverLog is the log of the embedded server. What it says of a failure is for a person, and decides nothing.
type serverLog struct {
	log  *slog.Logger
	last atomic.Pointer[string] // its last failure
}

func (e *serverLog) Noticef(format string, v ...any) { e.log.Debug(e.line(format, v)) }
func (e *serverLog) Debugf(string, ...any)           {}
func (e *serverLog) Tracef(string, ...any)           {}
func (e *serverLog) Warnf(format string, v ...any)   { e.log.Warn(e.line(format, v)) }

func (e *serverLog) Fatalf(format string, v ...any) {
	line := e.line(format, v)
	e.last.Store(&line)
	e.log.Error(line)
}

func (e *serverLog) Errorf(format string, v ...any) {
	line := e.line(format, v)
	e.last.Store(&line)
	e.log.Warn(line)
}

// cause returns a short reason for a failed write. The full line has paths, and is only for the log.
func cause(line string) error {
	if strings.Contains(line, "no space left") {
		return errors.New("the disk is full")
	}
	return errors.New("the disk refused it: " + line[strings.LastIndex(line, ": ")+2:])
}

func (e *serverLog) line(format string, v []any) string {
	return "journal's server: " + strings.TrimSpace(fmt.Sprintf(format, v...))
}
