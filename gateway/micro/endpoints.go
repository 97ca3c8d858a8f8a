package micro

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"parley/gateway/api"
)

// endpoints is what clients of micro services see: the endpoints, and who offers them, under $SRV. The library's own service
// counts a request when its handler returns. Most operations answer later, so its counts would not have their errors.
type endpoints struct {
	service   *Service
	identity  micro.ServiceIdentity
	started   time.Time
	endpoints []*endpoint
	subs      []*nats.Subscription
}

// release matches versions as clients of micro services expect them.
var release = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
})

func newEndpoints(v *Service) *endpoints {
	version := strings.TrimPrefix(v.o.Version, "v")
	if !release().MatchString(version) {
		version = "0.0.0"
	}
	return &endpoints{service: v, started: time.Now().UTC(), identity: micro.ServiceIdentity{
		Name: serviceName, ID: rand.Text(), Version: version, Metadata: map[string]string{"node": v.o.Node, "version": v.o.Version},
	}}
}

// add begins to answer an operation.
func (f *endpoints) add(o api.Operation) error {
	e := &endpoint{service: f.service, operation: o, subject: Subject + "." + f.service.o.Node + "." + o.Name}
	sub, err := f.service.conn.QueueSubscribe(e.subject, micro.DefaultQueueGroup, e.handle)
	if err != nil {
		return err
	}
	f.endpoints, f.subs = append(f.endpoints, e), append(f.subs, sub)
	return sub.SetPendingLimits(maxPending, maxPendingSize)
}

// listen begins to answer the requests PING, INFO and STATS. They are for all services, all of this name, or this
// instance.
func (f *endpoints) listen() error {
	for verb, tell := range map[micro.Verb]func() any{micro.PingVerb: f.ping, micro.InfoVerb: f.info, micro.StatsVerb: f.stats} {
		for _, to := range [][2]string{{}, {serviceName}, {serviceName, f.identity.ID}} {
			subject, err := micro.ControlSubject(verb, to[0], to[1])
			if err != nil {
				return err
			}
			sub, err := f.service.conn.Subscribe(subject, func(m *nats.Msg) { f.tell(m, tell()) })
			if err != nil {
				return err
			}
			f.subs = append(f.subs, sub)
			if err := sub.SetPendingLimits(maxPending, maxPendingSize); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *endpoints) tell(m *nats.Msg, what any) {
	if !isReturnAddress(m.Reply) {
		return
	}
	text, err := json.Marshal(what)
	if err == nil {
		err = m.Respond(text)
	}
	if err != nil {
		f.service.unanswered(m.Subject, err)
	}
}

func (f *endpoints) ping() any {
	return micro.Ping{ServiceIdentity: f.identity, Type: micro.PingResponseType}
}

func (f *endpoints) info() any {
	info := micro.Info{ServiceIdentity: f.identity, Type: micro.InfoResponseType, Description: "durable mail and forms for agents"}
	for _, e := range f.endpoints {
		info.Endpoints = append(info.Endpoints, micro.EndpointInfo{
			Name: e.operation.Name, Subject: e.subject, QueueGroup: micro.DefaultQueueGroup, Metadata: map[string]string{"scope": string(e.operation.Scope)},
		})
	}
	return info
}

func (f *endpoints) stats() any {
	stats := micro.Stats{ServiceIdentity: f.identity, Type: micro.StatsResponseType, Started: f.started}
	for _, e := range f.endpoints {
		one := e.tally.stats()
		one.Name, one.Subject, one.QueueGroup = e.operation.Name, e.subject, micro.DefaultQueueGroup
		stats.Endpoints = append(stats.Endpoints, one)
	}
	return stats
}

// drain takes no more requests. Those that have arrived are still handled.
func (f *endpoints) drain() (err error) {
	for _, sub := range f.subs {
		if failed := sub.Drain(); !errors.Is(failed, nats.ErrConnectionClosed) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// tally counts the calls of an endpoint that have ended.
type tally struct {
	mu            sync.Mutex
	ended, failed int
	took          time.Duration
	last          string // code of the last error; its message is for the caller alone
}

func (t *tally) add(err error, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended++
	t.took += took
	if err != nil {
		t.failed, t.last = t.failed+1, string(api.Shown(err).Code)
	}
}

func (t *tally) stats() *micro.EndpointStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &micro.EndpointStats{NumRequests: t.ended, NumErrors: t.failed, LastError: t.last, ProcessingTime: t.took}
	if t.ended > 0 {
		s.AverageProcessingTime = t.took / time.Duration(t.ended)
	}
	return s
}
