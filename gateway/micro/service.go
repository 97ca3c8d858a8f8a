package micro

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"parley"
	"parley/gateway/api"
	"parley/gateway/httpd"
	"parley/internal/natsauth"
)

// Subject is the prefix of the subjects of operations, before the node and the operation.
const Subject = "parley.rpc"

const (
	serviceName    = "parley"
	serviceTime    = 2 * time.Minute
	serviceCalls   = 512      // requests at once whose principal is not known yet
	serviceLoad    = 64 << 20 // bytes of them
	maxPending     = 1024     // requests of one operation that wait to be handled
	maxPendingSize = 16 << 20
	dialTime       = 2 * time.Second
	redialTime     = 250 * time.Millisecond
	flushTime      = 2 * time.Second
)

// Backend has the operations of a node that the service uses.
type Backend interface {
	api.Backend
	// Identify returns the principal of a token. It refuses with UNAUTHENTICATED.
	Identify(ctx context.Context, token string) (api.Principal, error)
}

// Options configure a Service.
type Options struct {
	Address  string // URLs of the NATS system
	Access   natsauth.Access
	Node     string // ID of the node
	Version  string // of the node
	Backend  Backend
	Monitor  api.Monitor
	Bodies   *httpd.Bodies   // its buffers
	Draining context.Context // ends when waits are to be cut
	Severed  context.Context // ends when calls are broken off
}

// Service offers the operations as a micro service of a NATS system, each on its own subject,
// parley.rpc.{node}.{operation}. The system is trusted only to carry requests: every request shows a token. It may be out
// of reach when the node starts, or at any time.
type Service struct {
	o     Options
	conn  *nats.Conn
	face  *endpoints // nil until it is offered
	where string     // addresses, without credentials
	load  *api.Load

	work   sync.WaitGroup // calls
	mu     sync.Mutex     // guards what is below
	ending bool
}

// Connect begins to connect. It refuses a malformed address with INVALID_ARGUMENT.
func Connect(o Options) (*Service, error) {
	log := o.Monitor.Log
	v := &Service{o: o, where: withoutSecrets(o.Address), load: api.NewLoad(serviceCalls, 0, serviceLoad)}
	options, err := o.Access.Options()
	if err != nil {
		return nil, err
	}
	v.conn, err = nats.Connect(o.Address, append(options, nats.Name("parley service"), nats.Timeout(dialTime),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(redialTime), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(10*time.Second), nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(func(*nats.Conn) { log.Info("the NATS system is there", "at", v.where) }),
		nats.ReconnectHandler(func(*nats.Conn) { log.Info("the NATS system is there again", "at", v.where) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("the NATS system is out of reach", "at", v.where, "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("the NATS system", "at", v.where, "error", err)
		}))...)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		err = wrong.Err // it has the whole address
	}
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "no NATS system can be at %s: %v", v.where, err).
			WithHint("--service nats://host:4222")
	}
	if !v.conn.IsConnected() {
		log.Warn("the NATS system is out of reach; it is tried again and again", "at", v.where)
	}
	return v, nil
}

// withoutSecrets returns addresses without their users, passwords and tokens.
func withoutSecrets(addresses string) string {
	shown := strings.Split(addresses, ",")
	for i, a := range shown {
		u, err := url.Parse(strings.TrimSpace(a))
		if err != nil {
			shown[i] = "?"
			continue
		}
		if at := strings.LastIndexByte(a, '@'); u.Host == "" && at >= 0 { // an address without a scheme
			shown[i] = a[at+1:]
			continue
		}
		u.User, u.RawQuery = nil, ""
		shown[i] = u.String()
	}
	return strings.Join(shown, ",")
}

// Offer begins to answer the operations.
func (v *Service) Offer() error {
	operations := v.o.Backend.Operations()
	v.face = newEndpoints(v)
	for _, name := range slices.Sorted(maps.Keys(operations)) {
		if err := v.face.add(operations[name]); err != nil {
			return err
		}
	}
	if err := v.face.listen(); err != nil {
		return err
	}
	if !v.conn.IsConnected() {
		return nil // they are sent when the system is in reach
	}
	if err := v.conn.FlushTimeout(flushTime); err != nil {
		v.o.Monitor.Log.Warn("the NATS system may not have all subjects yet", "at", v.where, "error", err)
	}
	return nil
}

// Address returns the addresses of the NATS system, without credentials.
func (v *Service) Address() string { return v.where }

// IsConnected reports whether the NATS system is in reach.
func (v *Service) IsConnected() bool { return v.conn.IsConnected() }

// Calls returns how many requests are under way whose principal is not known yet.
func (v *Service) Calls() int64 { return v.load.Calls() }

// Close breaks the connection off.
func (v *Service) Close() { v.conn.Close() }

// enter adds to the work, unless the service is ending. If it reports true, the caller calls v.work.Done.
func (v *Service) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ending {
		v.work.Add(1)
	}
	return !v.ending
}

// Drain takes no more requests, and returns when those under way have been answered. The server cuts their waits, and
// ends them when its time is over.
func (v *Service) Drain(ctx context.Context) error {
	defer v.conn.Close()
	var err error
	if v.face != nil {
		err = errors.Join(v.face.drain(), v.flush(ctx)) // earlier requests have arrived then
	}
	v.mu.Lock()
	v.ending = true
	v.mu.Unlock()
	v.work.Wait()
	return errors.Join(err, v.flush(ctx))
}

// flush returns when the NATS system has received all that was sent. It does not wait for a system out of reach.
func (v *Service) flush(ctx context.Context) error {
	if !v.conn.IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	err := v.conn.FlushWithContext(ctx)
	if errors.Is(err, nats.ErrConnectionClosed) { // the connection was closed meanwhile
		return nil
	}
	return err
}

// unanswered logs an answer that could not be sent.
func (v *Service) unanswered(operation string, err error) {
	v.o.Monitor.Log.LogAttrs(context.Background(), slog.LevelDebug, "a call could not be answered", slog.String("operation", operation), slog.Any("error", err))
}
