package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"parley"
	"parley/gateway/api"
)

const (
	serviceName    = "parley"
	serviceSubject = "parley.rpc" // in front of the node and the operation
	serviceTime    = 2 * time.Minute
	serviceCalls   = 512      // requests at once whose principal is not known yet
	serviceLoad    = 64 << 20 // bytes of them
	maxPending     = 1024     // requests of one operation that wait to be handled
	maxPendingSize = 16 << 20
	dialTime       = 2 * time.Second
	redialTime     = 250 * time.Millisecond
	farewellTime   = 2 * time.Second
)

// service offers the operations as a micro service of a NATS system, each on its own subject,
// parley.rpc.{node}.{operation}. The system is trusted only to carry requests: every request shows a token. It may be out
// of reach when the node starts, or at any time.
type service struct {
	server *Server
	conn   *nats.Conn
	micro  micro.Service // nil until it is offered
	where  string        // addresses, without credentials
	load   *api.Load

	work   sync.WaitGroup // calls
	mu     sync.Mutex     // guards what is below
	ending bool
}

// newService begins to connect. It refuses a malformed address with INVALID_ARGUMENT.
func newService(s *Server, address string) (*service, error) {
	v := &service{server: s, where: withoutSecrets(address), load: api.NewLoad(serviceCalls, 0, serviceLoad)}
	var err error
	v.conn, err = nats.Connect(address, nats.Name("parley service"), nats.Timeout(dialTime),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(redialTime), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(10*time.Second), nats.MaxPingsOutstanding(2),
		nats.ConnectHandler(func(*nats.Conn) { s.log.Info("the NATS system is there", "at", v.where) }),
		nats.ReconnectHandler(func(*nats.Conn) { s.log.Info("the NATS system is there again", "at", v.where) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				s.log.Warn("the NATS system is out of reach", "at", v.where, "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			s.log.Warn("the NATS system", "at", v.where, "error", err)
		}))
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		err = wrong.Err // it has the whole address
	}
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "no NATS system can be at %s: %v", v.where, err).
			WithHint("--service nats://host:4222")
	}
	if !v.conn.IsConnected() {
		s.log.Warn("the NATS system is out of reach; it is tried again and again", "at", v.where)
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
		if at := strings.LastIndexByte(a, '@'); u.Host == "" && at >= 0 { // there is no scheme in front of it
			shown[i] = a[at+1:]
			continue
		}
		u.User, u.RawQuery = nil, ""
		shown[i] = u.String()
	}
	return strings.Join(shown, ",")
}

// offer begins to answer the operations.
func (v *service) offer() error {
	node := v.server.node.State().Node.String()
	c := micro.Config{
		Name: serviceName, Version: strings.TrimPrefix(v.server.version, "v"), Description: "durable mail and forms for agents",
		Metadata: map[string]string{"node": node, "version": v.server.version}, StatsHandler: tallied,
	}
	offered, err := micro.AddService(v.conn, c)
	if errors.Is(err, micro.ErrConfigValidation) { // only releases have a version that it takes
		c.Version = "0.0.0"
		offered, err = micro.AddService(v.conn, c)
	}
	if err != nil {
		return err
	}
	v.micro = offered
	group := offered.AddGroup(serviceSubject + "." + node)
	for _, name := range slices.Sorted(maps.Keys(v.server.backend.Operations())) {
		o := v.server.backend.Operations()[name]
		e := &endpoint{service: v, operation: o}
		err := group.AddEndpoint(o.Name, e, micro.WithEndpointMetadata(map[string]string{"scope": string(o.Scope)}),
			micro.WithEndpointPendingLimits(maxPending, maxPendingSize))
		if err != nil {
			return err
		}
	}
	return nil
}

// enter adds to the work, unless the service is ending. If it reports true, the caller calls v.work.Done.
func (v *service) enter() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.ending {
		v.work.Add(1)
	}
	return !v.ending
}

// drain takes no more requests, and returns when those under way have been answered. The server cuts their waits, and
// ends them when its time is over.
func (v *service) drain(ctx context.Context) error {
	defer v.conn.Close()
	var err error
	if v.micro != nil {
		err = errors.Join(v.micro.Stop(), v.flush(ctx)) // what was sent here before has come then
	}
	v.mu.Lock()
	v.ending = true
	v.mu.Unlock()
	v.work.Wait()
	return errors.Join(err, v.flush(ctx))
}

// flush returns when the NATS system has received all that was sent. It does not wait for a system out of reach.
func (v *service) flush(ctx context.Context) error {
	if !v.conn.IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, farewellTime)
	defer cancel()
	err := v.conn.FlushWithContext(ctx)
	if errors.Is(err, nats.ErrConnectionClosed) { // it went away meanwhile
		return nil
	}
	return err
}

// tally counts the calls of an endpoint that have ended. The micro service itself counts only requests taken.
type tally struct {
	ended, failed, took atomic.Int64
}

func (t *tally) add(err error, took time.Duration) {
	t.ended.Add(1)
	t.took.Add(int64(took))
	if err != nil {
		t.failed.Add(1)
	}
}

// MarshalJSON implements json.Marshaler.
func (t *tally) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int64{"ended": t.ended.Load(), "failed": t.failed.Load(), "took_ns": t.took.Load()})
}

func tallied(of *micro.Endpoint) any {
	e, ok := of.Handler.(*endpoint)
	if !ok {
		return nil
	}
	return &e.tally
}

// unanswered logs an answer that could not be sent.
func (v *service) unanswered(operation string, err error) {
	v.server.log.LogAttrs(context.Background(), slog.LevelDebug, "a call could not be answered", slog.String("operation", operation), slog.Any("error", err))
}
