package trace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	global "go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	otel "go.opentelemetry.io/otel/trace"

	"parley/capabilities"
)

// Recorder makes the spans of one node. Its methods may be used by many goroutines.
type Recorder struct {
	provider *sdk.TracerProvider
	tracer   otel.Tracer
	now      func() time.Time

	mu      sync.Mutex
	arrived map[place]time.Time // when forms came to agents of this node, as far as it is known; zero if the agent has decided
}

// place is a form in the mailbox of an agent.
type place struct{ form, agent capabilities.ID }

const (
	scope      = "parley"
	maxArrived = 1 << 16
	closeTime  = 2 * time.Second // to send the last spans
)

// New returns the recorder of a node, which sends its spans to an exporter. The environment may name the service, and
// say which traces are sampled, by the variables of OpenTelemetry. Without an exporter it returns nil.
func New(to sdk.SpanExporter, node capabilities.NodeID, name string, now func() time.Time) (*Recorder, error) {
	if to == nil {
		return nil, nil
	}
	about, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", "parley")), resource.WithTelemetrySDK(), resource.WithFromEnv(),
		resource.WithAttributes(attribute.String("service.instance.id", node.String()), attribute.String("parley.node.name", name)))
	if err != nil {
		return nil, fmt.Errorf("describe the node for spans: %w", err)
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(to), sdk.WithResource(about), sdk.WithIDGenerator(ids{}))
	return &Recorder{provider: p, tracer: p.Tracer(scope), now: now, arrived: map[place]time.Time{}}, nil
}

// Close sends the last spans. It waits for the collector only briefly. A nil Recorder has none.
func (r *Recorder) Close(ctx context.Context) {
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	if err := r.provider.Shutdown(ctx); err != nil {
		global.Handle(err) // a collector out of reach is no failure of the node
	}
}

// ID returns the ID of a form's trace.
func ID(form capabilities.ID) otel.TraceID { return otel.TraceID(form.ULID) }

// wholeID returns the ID of the span of the whole form.
func wholeID(form capabilities.ID) (id otel.SpanID) {
	sum := sha256.Sum256(append([]byte("parley form "), form.ULID[:]...))
	copy(id[:], sum[:])
	return id
}

// ids makes the IDs of spans. A span of a whole form gets those in its context.
type ids struct{}

type wholeForm struct{}

// NewIDs implements sdk.IDGenerator.
func (g ids) NewIDs(ctx context.Context) (otel.TraceID, otel.SpanID) {
	if form, ok := ctx.Value(wholeForm{}).(capabilities.ID); ok {
		return ID(form), wholeID(form)
	}
	var t otel.TraceID
	_, _ = rand.Read(t[:]) // never fails
	return t, g.NewSpanID(ctx, t)
}

// NewSpanID implements sdk.IDGenerator.
func (ids) NewSpanID(context.Context, otel.TraceID) (id otel.SpanID) {
	_, _ = rand.Read(id[:])
	return id
}

// within returns a context whose spans belong to a form.
func within(form capabilities.ID) context.Context {
	return otel.ContextWithRemoteSpanContext(context.Background(), otel.NewSpanContext(otel.SpanContextConfig{
		TraceID: ID(form), SpanID: wholeID(form), TraceFlags: otel.FlagsSampled, Remote: true,
	}))
}

// arrive notes when a form has come to an agent. A zero time says that the agent has decided on it.
func (r *Recorder) arrive(p place, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.arrived) >= maxArrived {
		clear(r.arrived)
	}
	r.arrived[p] = at
}

// since returns when a form came to an agent. If that is not known any more, it returns when the form was asked. It
// reports whether no decision of the agent is known.
func (r *Recorder) since(p place) (at time.Time, open bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.arrived[p]
	if at.IsZero() {
		return askedAt(p.form), !known
	}
	return at, true
}

func (r *Recorder) forget(p place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.arrived, p)
}

// askedAt returns when a form was asked, which its ULID has.
func askedAt(form capabilities.ID) time.Time { return time.UnixMilli(int64(form.ULID.Time())) }
