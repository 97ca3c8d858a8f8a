package transport

import (
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"parley"
	"parley/capabilities"
)

const (
	listenerStart   = 10 * time.Second
	listenerPayload = 1 << 20
	maxConnections  = 1024
	maxSubjects     = 8 // of one connection; a transport needs two
)

// listener is the server to which other nodes connect. It has no storage. All of its connections prove a node's key,
// have bounded permissions, and come through a front.
type listener struct {
	server *natsserver.Server
	front  *admission
}

func startListener(o *Options) (*listener, error) {
	if err := checkAddress(o.Listen); err != nil {
		return nil, err
	}
	tlsConfig, err := o.Identity.listening()
	if err != nil {
		return nil, err
	}
	node := o.Identity.Node()
	l := &listener{}
	srv, err := natsserver.NewServer(&natsserver.Options{
		ServerName:          "parley-" + node.String(),
		DontListen:          true, // the front does
		NoSigs:              true,
		NoLog:               true, // of its own; it has ours below
		NoSystemAccount:     true,
		TLSConfig:           tlsConfig,
		TLSTimeout:          5,
		AuthTimeout:         5,
		AlwaysEnableNonce:   true,
		MaxConn:             maxConnections + unprovedAll,
		MaxSubs:             maxSubjects,
		MaxPayload:          listenerPayload,
		MaxPending:          16 << 20, // what one node has on its way, and as much again
		MaxControlLine:      2048,
		NoFastProducerStall: true, // one slow reader holds up nobody: what it does not take is dropped
		WriteDeadline:       5 * time.Second,
		PingInterval:        10 * time.Second,
		MaxPingsOut:         2,

		CustomClientAuthentication: &authenticator{node: node, admit: o.Admit, listener: l},
	})
	if err != nil {
		return nil, fmt.Errorf("start the listener: %w", err)
	}
	l.server = srv
	log := &serverLog{log: o.Log}
	srv.SetLoggerV2(log, false, false, false)
	srv.Start()
	if last := log.last.Load(); last != nil || !srv.ReadyForConnections(listenerStart) {
		l.stop()
		return nil, notListening(o.Listen, last)
	}
	open, err := net.Listen("tcp", o.Listen)
	if err != nil {
		l.stop()
		why := err.Error()
		return nil, notListening(o.Listen, &why)
	}
	// TLS comes first: a stranger learns nothing, and nobody in between can alter the challenge.
	l.front = newAdmission(open, srv, tlsConfig, o.Unproved)
	go l.front.serve() // until it is closed
	return l, nil
}

func notListening(address string, why *string) error {
	e := parley.Refuse(parley.InvalidArgument, "other nodes cannot be listened to on %s", address).
		WithHint("choose an address of this machine whose port is free")
	if why != nil {
		e.Message += ": " + *why
	}
	return e
}

// checkAddress refuses with INVALID_ARGUMENT an address that is not HOST:PORT.
func checkAddress(address string) error {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "%.80q is no address to listen on: want HOST:PORT", address)
	}
	if _, err := strconv.ParseUint(text, 10, 16); err != nil {
		return parley.Refuse(parley.InvalidArgument, "%.80q is no port to listen on", text)
	}
	return nil
}

func (l *listener) address() string { return l.front.listener.Addr().String() }

// of returns the connections of a node, the oldest first.
func (l *listener) of(node capabilities.NodeID) []uint64 {
	list, err := l.server.Connz(&natsserver.ConnzOptions{Sort: natsserver.ByCid, Username: true, User: node.String(), Limit: maxConnections})
	if err != nil {
		return nil
	}
	ids := make([]uint64, 0, len(list.Conns))
	for _, c := range list.Conns {
		ids = append(ids, c.Cid)
	}
	return ids
}

// makeRoom closes a node's oldest connections until it has at most so many.
func (l *listener) makeRoom(node capabilities.NodeID, most int) {
	ids := l.of(node)
	for _, id := range ids[:max(len(ids)-most, 0)] {
		_ = l.server.DisconnectClientByID(id) // it fails if the connection has ended by itself
	}
}

func (l *listener) stop() {
	if l.front != nil {
		l.front.close()
	}
	l.server.Shutdown()
	l.server.WaitForShutdown()
}

// serverLog is the log of the listener's server. Strangers can fill it, so it is logged at debug level only. It keeps
// the error that prevents a start.
type serverLog struct {
	log  *slog.Logger
	last atomic.Pointer[string]
}

func (e *serverLog) Noticef(format string, v ...any) { e.log.Debug(e.line(format, v)) }
func (e *serverLog) Warnf(format string, v ...any)   { e.log.Debug(e.line(format, v)) }
func (e *serverLog) Errorf(format string, v ...any)  { e.log.Debug(e.line(format, v)) }
func (e *serverLog) Debugf(string, ...any)           {}
func (e *serverLog) Tracef(string, ...any)           {}

func (e *serverLog) Fatalf(format string, v ...any) {
	line := strings.TrimSpace(fmt.Sprintf(format, v...))
	e.last.Store(&line)
	e.log.Debug(e.line(format, v))
}

func (e *serverLog) line(format string, v []any) string {
	return "listener: " + strings.TrimSpace(fmt.Sprintf(format, v...))
}
