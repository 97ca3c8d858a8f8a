package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"parley/actors"
	"parley/gateway/a2a"
	"parley/gateway/api"
	"parley/gateway/backend"
	"parley/gateway/bridge"
	"parley/gateway/coding"
	"parley/gateway/httpd"
	"parley/gateway/mcp"
	"parley/gateway/micro"
	"parley/gateway/web"
	"parley/gateway/ws"
	"parley/internal/natsauth"
)

// Off is the address for a server that listens on its socket alone.
const Off = api.Off

// Options configure a Server. The caller holds the lock of the folder that the socket is in: a socket that is there
// already was left by a crash, and is replaced.
type Options struct {
	Socket   string          // path of the Unix socket
	Listen   string          // TCP address, or Off
	TLS      TLS             // protection of the TCP address
	Version  string          // of the node
	External bool            // the journal is in another NATS system
	Service  string          // URL of the NATS system whose clients are served too; "" or Off for none
	Access   natsauth.Access // to that NATS system
	Limits   api.Limits      // nil: the defaults
	Bridges  string          // file with the settings of the bridges; "" for none
	Pushes   string          // folder with the push configurations of A2A; "" for none
	Coders   string          // file with the processes of coding agents; "" for none
	Log      *slog.Logger

	PushNetwork bridge.Network // the nearest in which receivers of A2A may be; "" is public

	instead func(ws.Backend) ws.Backend // performs the operations of the edges in a test; nil for the node
}

// Server listens, and serves a node to its clients.
type Server struct {
	node     *actors.Node
	backend  *backend.Backend
	edges    ws.Backend // what HTTP, the frames and the service call: the backend
	version  string
	external bool
	devices  devices
	log      *slog.Logger

	bodies  httpd.Bodies
	metrics *metrics
	monitor api.Monitor

	socket      *httpd.Server
	socketPath  string
	public      *httpd.Server // on the TCP address; nil if off
	listens     string        // the configured address
	tls         TLS
	sessions    *sessions
	presses     attempts // of the buttons of links that answer, by link
	site        *web.Site
	crossOrigin *http.CrossOriginProtection
	tools       *mcp.HTTP
	a2a         *a2a.Server
	holds       holds
	coders      coders
	coding      *coding.Sessions

	service *micro.Service // nil if off

	ws      *ws.Server
	severed context.Context // ends when WebSocket sessions are broken off
	sever   context.CancelFunc

	serving sync.WaitGroup
	broken  chan error

	draining context.Context // ends when waits are to be cut
	drain    context.CancelFunc
	stopOnce sync.Once
	stopped  chan struct{}
}

// Listen opens the listeners of a Server. The Server answers nothing before Serve.
func Listen(node *actors.Node, o Options) (*Server, error) {
	s := &Server{
		node: node, version: o.Version, external: o.External, devices: devices{settings: o.Bridges}, log: o.Log,
		bodies:  httpd.Bodies{Within: bodyTime, Slowest: slowest},
		listens: o.Listen, tls: o.TLS, crossOrigin: http.NewCrossOriginProtection(), socketPath: o.Socket, stopped: make(chan struct{}), broken: make(chan error, 3),
	}
	s.coding = coding.New(node, o.Log, wakes(o.Coders))
	s.backend = backend.New(node, backend.Options{Server: s, Limits: o.Limits, Log: o.Log, Look: tokenTime, Coding: s.coding})
	if s.edges = s.backend; o.instead != nil {
		s.edges = o.instead(s.backend)
	}
	s.devices.session = s.backend.SessionID
	s.holds.server, s.holds.started, s.holds.found = s, time.Now(), make(chan struct{})
	s.coders.server, s.coders.file, s.coders.long = s, o.Coders, map[*opener]bool{}
	s.sessions = &sessions{backend: s.backend, devices: &s.devices, attempts: attempts{perMinute: o.Limits.Of(api.LimitSignIns)}}
	s.presses.perMinute = maxPresses
	if err := s.coders.load(); err != nil {
		return nil, err
	}
	var err error
	if s.tools, err = newTools(node, o.Version, o.Log); err != nil {
		return nil, fmt.Errorf("make the tools: %w", err)
	}
	if err := s.newA2A(o); err != nil {
		return nil, fmt.Errorf("read the push configurations: %w", err)
	}
	s.metrics = newMetrics(s)
	s.monitor = api.Monitor{Log: o.Log, Count: s.metrics.called}
	s.draining, s.drain = context.WithCancel(context.Background())
	s.severed, s.sever = context.WithCancel(context.Background())
	pages := web.Options{Backend: s.backend, Sessions: s.sessions, Bodies: &s.bodies, Monitor: s.monitor, Stopping: s.draining}
	if o.Bridges != "" {
		pages.Devices = &s.devices
	}
	s.site, err = web.New(pages)
	if err != nil {
		return nil, fmt.Errorf("read the pages: %w", err)
	}
	s.ws = ws.New(ws.Options{Backend: s.edges, Monitor: s.monitor, Draining: s.draining, Severed: s.severed})
	if o.Listen != Off && o.Listen != "" {
		if s.public, err = s.listenPublic(o); err != nil {
			return nil, err
		}
	}
	if o.Service != Off && o.Service != "" {
		if s.service, err = micro.Connect(s.serviceOptions(o.Service, o.Access)); err != nil {
			return nil, errors.Join(err, s.abandon())
		}
	}
	if s.socket, err = s.listenLocal(o); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	return s, nil
}

// wakes returns the folder of the wake files, which is beside the file of coding agents.
func wakes(coders string) string {
	if coders == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(coders), "wake")
}

// serviceOptions configures the service at an address.
func (s *Server) serviceOptions(address string, access natsauth.Access) micro.Options {
	return micro.Options{
		Address: address, Access: access, Node: s.node.ID().String(), Version: s.version, Backend: s.edges, Monitor: s.monitor, Bodies: &s.bodies,
		Draining: s.draining, Severed: s.severed,
	}
}

// abandon closes the listeners of a server of which one could not be opened.
func (s *Server) abandon() (err error) {
	if s.service != nil {
		s.service.Close()
	}
	if s.public != nil {
		err = s.public.Close()
	}
	return err
}

// Address returns the TCP address, as host and port, or Off.
func (s *Server) Address() string {
	if s.public == nil {
		return Off
	}
	return s.public.Addr().String()
}

// Serve begins to answer. It returns at once. The server answers until Drain.
func (s *Server) Serve() {
	s.serving.Go(func() { s.backend.Watch(s.draining) })
	s.serving.Go(func() { s.coding.Run(s.draining) })
	s.serving.Go(func() { s.holds.run(s.draining) })
	if s.service != nil { // first: a node that answers on its socket does so there
		if err := s.service.Offer(); err != nil {
			s.broken <- fmt.Errorf("offer the operations at %s: %w", s.service.Address(), err)
		}
	}
	if s.devices.settings != "" {
		b := bridges{settings: s.devices.settings, backend: s.backend, devices: &s.devices, log: s.log}
		if s.public != nil {
			b.base = s.tls.scheme() + "://" + s.Address()
		}
		s.serving.Go(func() { b.run(s.draining) })
	}
	s.serving.Go(func() { s.a2a.Push(s.draining) })
	s.serving.Go(func() { s.report(s.socket) })
	if s.public != nil {
		s.serving.Go(func() { s.report(s.public) })
	}
}

// Stopped returns a channel that is closed when the operation "stop" was called.
func (s *Server) Stopped() <-chan struct{} { return s.stopped }

// Broken returns a channel of the error of a listener that ended by itself.
func (s *Server) Broken() <-chan error { return s.broken }

// Drain closes the listeners and ends all waits, with NOT_RUNNING. It blocks until the calls under way have ended, or until
// ctx ends. A wait can be taken up again.
func (s *Server) Drain(ctx context.Context) error {
	err := os.Remove(s.socketPath) // first, so that a new client finds no node
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	s.drain()
	s.tools.Close()
	defer context.AfterFunc(ctx, s.sever)()
	if s.service != nil {
		err = errors.Join(err, s.service.Drain(ctx))
	}
	err = errors.Join(err, s.socket.Drain(ctx))
	if s.public != nil {
		err = errors.Join(err, s.public.Drain(ctx))
	}
	s.ws.Wait() // of both listeners
	s.serving.Wait()
	return err
}
