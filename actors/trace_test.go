package actors

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"parley"
	"parley/actors/trace"
	"parley/actors/view"
	"parley/capabilities"
)

// shownSpan is a span as a collector has it, with the node that sent it.
type shownSpan struct {
	node, name, trace, id, parent string
	begin, end                    uint64
	about                         map[string]string
}

// spanCollector receives spans over OTLP/HTTP.
type spanCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []shownSpan
	raw   []byte
}

func newSpanCollector(t *testing.T) *spanCollector {
	t.Helper()
	c := &spanCollector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var sent collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
			t.Errorf("%s %v: it is no trace", r.URL.Path, err)
		}
		c.add(body, &sent)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *spanCollector) add(body []byte, sent *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, body...)
	for _, of := range sent.ResourceSpans {
		node := ""
		for _, a := range of.Resource.Attributes {
			if a.Key == "service.instance.id" {
				node = a.Value.GetStringValue()
			}
		}
		for _, s := range of.ScopeSpans[0].Spans {
			one := shownSpan{node: node, name: s.Name, trace: string(s.TraceId), id: string(s.SpanId), parent: string(s.ParentSpanId), begin: s.StartTimeUnixNano, end: s.EndTimeUnixNano, about: map[string]string{}}
			for _, a := range s.Attributes {
				one.about[a.Key] = a.Value.GetStringValue()
			}
			c.spans = append(c.spans, one)
		}
	}
}

// of returns the names of the spans of a form from a node, sorted, after it has checked that they belong together.
func (c *spanCollector) of(t *testing.T, form capabilities.ID, node *clusterNode) string {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	root := ""
	for _, s := range c.spans {
		if s.trace == string(form.ULID[:]) && s.name == "form" {
			root = s.id
		}
	}
	for _, s := range c.spans {
		if s.trace != string(form.ULID[:]) || s.node != node.id.String() {
			continue
		}
		names = append(names, s.name)
		if isRoot := s.name == "form"; isRoot != (s.parent == "") || !isRoot && s.parent != root || s.end < s.begin || s.about["parley.form"] != form.String() {
			t.Errorf("%+v", s)
		}
		if (s.name == "settled" || s.name == "form" || s.name == "decided") && s.about["parley.outcome"] == "" {
			t.Errorf("%s has no outcome", s.name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// traced makes a node send spans to a collector.
func (c *spanCollector) traced(t *testing.T, o *Options) {
	t.Helper()
	env := func(name string) (string, bool) { return c.URL + "/", name == "OTEL_EXPORTER_OTLP_ENDPOINT" }
	var err error
	if o.Spans, err = trace.Exporter(t.Context(), env, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
}

func TestTraceOfFormAcrossNodes(t *testing.T) {
	t.Parallel()
	c := newSpanCollector(t)
	a, b := &clusterNode{options: Options{Folder: t.TempDir(), Name: "a", Peers: "127.0.0.1:0"}}, &clusterNode{options: Options{Folder: t.TempDir(), Name: "b"}}
	for _, n := range []*clusterNode{a, b} {
		c.traced(t, &n.options)
		n.open(t)
	}
	connectHosts(t, a, b)
	answered := ask(t, a.Host(), parley.Form{To: "b", Description: "hush"})
	awaitMessage(t, b.Host(), answered.Form)
	awaited := startAwait(a.Host(), answered.Form)
	if o, err := answerWith(b.Host(), answered.Form, "hushed"); err != nil || o.Status != view.StatusAnswered {
		t.Fatalf("%+v, %v", o, err)
	}
	<-awaited
	cancelled := ask(t, a.Host(), parley.Form{To: "b"})
	awaitMessage(t, b.Host(), cancelled.Form)
	if _, err := a.Host().Cancel(t.Context(), capabilities.FormID(cancelled.Form), "hush"); err != nil {
		t.Fatal(err)
	}
	local := ask(t, a.Host(), parley.Form{To: "HOST"})
	if _, err := answerWith(a.Host(), local.Form, "x"); err != nil {
		t.Fatal(err)
	}
	awaitSameOutcome(t, answered.Form, view.StatusAnswered, b.Host())
	awaitSameOutcome(t, cancelled.Form, view.StatusCancelled, b.Host())
	for _, n := range []*clusterNode{a, b} {
		if err := n.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		form     capabilities.ID
		on       *clusterNode
		want     string
		optional string // whether the asker waits already when the form is settled is not certain
	}{
		{answered.Form, a, "ask form settled", " told"},
		{answered.Form, b, "decided delivered told", ""},
		{cancelled.Form, a, "ask form settled", ""},
		{cancelled.Form, b, "delivered told", ""},
		{local.Form, a, "ask form settled", " told"},
	} {
		if got := c.of(t, x.form, x.on); got != x.want && got != x.want+x.optional {
			t.Errorf("%s: %q, want %q", x.on.options.Name, got, x.want)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.Contains(string(c.raw), "hush") {
		t.Error("spans have what agents wrote")
	}
}

func TestDeadCollectorDelaysNobody(t *testing.T) {
	t.Parallel()
	c := newSpanCollector(t)
	n := &clusterNode{options: Options{Folder: t.TempDir(), Name: "a"}}
	c.traced(t, &n.options)
	c.Close()
	n.open(t)
	asked := ask(t, n.Host(), parley.Form{To: "HOST"})
	if _, err := answerWith(n.Host(), asked.Form, "x"); err != nil {
		t.Fatal(err)
	}
	if err := n.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
