package persistence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley"
)

const (
	connectTimeout = 5 * time.Second
	answerTimeout  = 10 * time.Second // for requests other than commits
)

// writeAtOnce has what is longer written to an embedded server by the goroutine that sends it. Each commit
// that another had to take up would wait for its turn once more.
const writeAtOnce = 64

// link is the way to the stream: a connection and, if it is embedded, the server behind it.
type link struct {
	o      *Options
	server *natsserver.Server // nil if external
	conn   *nats.Conn
	legacy nats.JetStreamContext // the faster reader of whole ranges
	js     jetstream.JetStream

	inbox string         // what the answers to commits begin with
	acks  chan *nats.Msg // those answers
	sent  uint64

	blocks, outputs *flusher // of the journal and of the timeline, if the server is embedded

	old *inspector // of the blocks that were there before; nil if the server is external

	troubled sync.Mutex
	trouble  error         // why no answer may come
	alarm    chan struct{} // has one when trouble was set
	closed   sync.Once
}

// connect starts the server, if it is embedded, and connects to it.
func connect(o *Options) (*link, error) {
	l := &link{o: o, alarm: make(chan struct{}, 1)}
	opts := []nats.Option{
		nats.Name("parley journal"),
		nats.Timeout(connectTimeout),
		nats.MaxReconnects(-1),
		nats.PingInterval(5 * time.Second), // a server that is silently gone is noticed by then
		nats.MaxPingsOutstanding(2),
		nats.ReconnectWait(100 * time.Millisecond),
		nats.ReconnectBufSize(-1), // a commit that could not be sent must not be sent later
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			l.raise(fmt.Errorf("connection lost: %w", errors.Join(nats.ErrDisconnected, err)))
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			o.Log.Debug("journal's connection", "error", err)
		}),
	}
	if o.URL == "" {
		ear := &serverEar{log: o.Log, stream: o.streamName()}
		raise := l.raise
		ear.heard.Store(&raise)
		var err error
		if l.old, err = inspect(blockFolder(o)); err != nil {
			return nil, err
		}
		if err = l.old.checkNewest(); err != nil {
			return nil, err
		}
		if err = distrustState(o); err != nil {
			return nil, err
		}
		server, err := startServer(o, ear)
		if err != nil {
			return nil, err
		}
		l.server = server
		l.blocks = &flusher{o: o, folder: blockFolder(o)}
		l.outputs = &flusher{o: o, folder: blockFolderOf(o, o.timelineName())}
		opts = append(opts,
			nats.InProcessServer(server),
			nats.WriteBufferSize(writeAtOnce))
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
	if l.legacy, err = l.conn.JetStream(nats.MaxWait(answerTimeout)); err != nil {
		return unreachable(err)
	}
	if l.js, err = jetstream.New(l.conn, jetstream.WithDefaultTimeout(answerTimeout)); err != nil {
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

func unreachable(err error) error {
	return parley.Refuse(parley.ReadOnly, "the journal's server is out of reach: %v", err)
}

// raise wakes whoever waits for an answer that may never come.
func (l *link) raise(err error) {
	l.troubled.Lock()
	l.trouble = err
	l.troubled.Unlock()
	select {
	case l.alarm <- struct{}{}:
	default:
	}
}

// calm forgets the trouble of before.
func (l *link) calm() {
	select {
	case <-l.alarm:
	default:
	}
}

func (l *link) whatTrouble() error {
	l.troubled.Lock()
	defer l.troubled.Unlock()
	return l.trouble
}

func (l *link) close() {
	l.closed.Do(func() {
		if l.conn != nil {
			l.conn.Close()
		}
		if l.server != nil {
			stopServer(l.server)
			if err := trustState(l.o); err != nil {
				l.o.Log.Warn("the next start reads the whole journal", "error", err)
			}
			l.blocks.close()
			l.outputs.close()
		}
	})
}

// request asks the server and waits as long as ctx lets it.
func (l *link) request(ctx context.Context, subject string, body []byte) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return l.conn.RequestWithContext(ctx, subject, body)
}
