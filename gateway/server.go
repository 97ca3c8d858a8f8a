package gateway

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/connlimit"
	"parley/gateway/mcp"
)

// Off is the address that says: listen on the socket alone.
const Off = "off"

// Options say where a Server listens. Whoever opens one holds the lock of the folder that the socket is
// in: a socket that stands there already was left by a crash and is put aside.
type Options struct {
	Socket   string // path of the Unix socket
	Listen   string // TCP address, or Off
	TLS      TLS    // how that is protected
	Version  string // what the node says its version is
	External bool   // the journal is in another NATS system
	Service  string // URL of the NATS system whose clients are served too; "" or Off for none
	Limits   Limits // nil: the defaults
	Log      *slog.Logger
}

// Server is a node's door: it listens, and walks the table of operations.
type Server struct {
	node       *actors.Node
	operations map[string]operation
	version    string
	external   bool
	log        *slog.Logger

	bodies bodies
	ledger *ledger

	metrics *metrics

	socket      net.Listener
	socketPath  string
	tcp         *limitedListener // nil if off
	door        *door            // of the socket
	public      *http.Server
	listens     string // the address as it was given
	tls         TLS
	links       links
	attempts    attempts
	uses        uses // of tokens and sessions
	page        *page
	crossOrigin *http.CrossOriginProtection
	tools       *mcp.HTTP

	service *service // nil if off

	wsSessions sync.WaitGroup
	frames     map[string]frame
	dialects   map[string]dialect
	perSession keyedMutex // on what one agent may do once at a time
	frameTime  time.Duration
	keepAlive  time.Duration
	slowest    time.Duration   // what a reader may take for what it is sent
	bodyTime   time.Duration   // in which a request's body comes
	severed    context.Context // ends when conversations are to be broken off
	sever      context.CancelFunc

	serving sync.WaitGroup
	broken  chan error

	draining context.Context // ends when waits are to be cut
	drain    context.CancelFunc
	stopOnce sync.Once
	stopped  chan struct{}
}

// Listen opens the doors. Nothing is answered before Serve.
func Listen(node *actors.Node, o Options) (*Server, error) {
	s := &Server{
		node: node, operations: table(operations()), version: o.Version, external: o.External, log: o.Log,
		ledger: newLedger(o.Limits), attempts: attempts{perMinute: o.Limits.of(limitSignIns)},
		listens: o.Listen, tls: o.TLS, crossOrigin: http.NewCrossOriginProtection(), socketPath: o.Socket, stopped: make(chan struct{}), broken: make(chan error, 3),
		frames: frames(), dialects: dialects(), perSession: keyedMutex{seed: maphash.MakeSeed()},
		frameTime: frameTime, keepAlive: keepAliveTime, slowest: slowest, bodyTime: bodyTime,
	}
	page, err := newPage()
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	s.page = page
	if err := s.newTools(); err != nil {
		return nil, fmt.Errorf("make the tools: %w", err)
	}
	s.metrics = newMetrics(s)
	s.uses.open = map[*use]bool{}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.severed, s.sever = context.WithCancel(context.Background())
	if o.Listen != Off && o.Listen != "" {
		if err := o.TLS.check(o.Listen); err != nil {
			return nil, err
		}
		tcp, err := net.Listen("tcp", o.Listen)
		if err != nil {
			return nil, parley.Refuse(parley.InvalidArgument, "cannot listen on %s: %v", o.Listen, errors.Unwrap(err)).
				WithHint("give another address with --listen, or --listen off for none")
		}
		most := affordable(o.Limits.of(limitConnectionsAll))
		s.tcp = &limitedListener{tcp, connlimit.New(int(min(o.Limits.of(limitConnections), 1<<30)), most, 0)}
	}
	if o.Service != Off && o.Service != "" {
		if s.service, err = newService(s, o.Service); err != nil {
			return nil, errors.Join(err, s.abandon())
		}
	}
	socket, err := listenUnix(o.Socket)
	if err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	s.socket = socket
	s.door = newDoor(socket, affordable(o.Limits.of(limitConnectionsHost)), s, o.Log)
	s.door.admit = s.admit
	return s, nil
}

// abandon closes what was opened of a server that could not be opened whole.
func (s *Server) abandon() (err error) {
	if s.service != nil {
		s.service.conn.Close()
	}
	if s.tcp != nil {
		err = s.tcp.Close()
	}
	return err
}

// Address is where the server listens besides its socket: host and port, or Off.
func (s *Server) Address() string {
	if s.tcp == nil {
		return Off
	}
	return s.tcp.Addr().String()
}

// Serve answers until Drain. It returns at once.
func (s *Server) Serve() {
	s.serving.Go(s.watchTokens)
	s.serving.Go(func() { s.report(s.socket, s.door.serve()) })
	if s.service != nil {
		if err := s.service.offer(); err != nil {
			s.broken <- fmt.Errorf("offer the operations at %s: %w", s.service.where, err)
		}
	}
	if s.tcp == nil {
		return
	}
	s.public = &http.Server{
		Handler:           http.HandlerFunc(s.servePublic),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      2 * time.Minute, // longer than any wait
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ConnState:         noteState,
		ConnContext:       withConn,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),

		DisableGeneralOptionsHandler: true, // it answers whoever asks
	}
	s.serving.Go(func() { s.report(s.tcp, s.tls.serve(s.public, s.tcp)) })
}

// report tells of a door that closed by itself.
func (s *Server) report(l net.Listener, err error) {
	if err != nil && !errors.Is(err, http.ErrServerClosed) {
		s.broken <- fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
}

// Stopped is closed when someone called the operation "stop".
func (s *Server) Stopped() <-chan struct{} { return s.stopped }

// Broken gives the error of a door that closed by itself.
func (s *Server) Broken() <-chan error { return s.broken }

// errStopping ends the waits of a server that stops.
var errStopping = parley.Refuse(parley.NotRunning, "the node is stopping").
	WithHint("what was asked for may still happen")

// untilDraining gives a context that ends, for errStopping, when waits are to be cut.
func (s *Server) untilDraining(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.draining, func() { end(errStopping) })
	return ctx, func() {
		stop()
		end(nil)
	}
}

// Drain closes the doors, cuts the waits short, lets what is in flight end, and returns when it has or
// when ctx ends. A wait that is cut off can be taken up again.
func (s *Server) Drain(ctx context.Context) error {
	err := os.Remove(s.socketPath) // first, so that who comes now is told that nobody is here
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	s.drain()
	s.tools.Close()
	defer context.AfterFunc(ctx, s.sever)()
	if s.service != nil {
		err = errors.Join(err, s.service.drain(ctx))
	}
	err = errors.Join(err, s.door.drain(ctx))
	if s.public != nil {
		if shut := s.public.Shutdown(ctx); shut != nil {
			err = errors.Join(err, shut, s.public.Close())
		}
		s.wsSessions.Wait()
	}
	s.serving.Wait()
	return err
}
