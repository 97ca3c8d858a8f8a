package trace

import (
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"parley"
	"parley/capabilities"
	"parley/events"
)

func testID(n byte) (id capabilities.ID) {
	id.ULID[0], id.ULID[15] = 1, n
	return id
}

func TestSpansAreOfTheFormsTrace(t *testing.T) {
	t.Parallel()
	got := tracetest.NewInMemoryExporter()
	form, asker, holder := testID(1), testID(2), testID(3)
	at := askedAt(form)
	r, err := New(got, form.Node, "n", func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	step := func(agent capabilities.ID, e events.Event) {
		at = at.Add(time.Second)
		r.Record(StepOf(agent, agent == asker, e))
	}
	requested := &events.FormRequested{ID: form, From: asker, To: holder, Date: capabilities.At(at), Description: "secret"}
	step(asker, requested)
	step(holder, requested)
	at = at.Add(time.Second)
	step(asker, &events.FormAnswered{Form: form, By: holder, Date: capabilities.At(at)})
	step(holder, &events.FormAnswered{Form: form, By: holder, Date: capabilities.At(at)})
	r.Record(Told(asker, form, at))
	if err := r.provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []struct {
		name string
		took time.Duration
	}{{asked, time.Second}, {delivered, 2 * time.Second}, {whole, 4 * time.Second}, {settled, time.Second}, {decided, 2 * time.Second}, {told, time.Second}, {told, 0}}
	spans := got.GetSpans()
	if len(spans) != len(want) {
		t.Fatalf("%d spans: %v", len(spans), spans)
	}
	for i, s := range spans {
		if s.Name != want[i].name || s.EndTime.Sub(s.StartTime) != want[i].took || s.SpanContext.TraceID() != ID(form) {
			t.Errorf("%d: %s took %v, want %+v", i, s.Name, s.EndTime.Sub(s.StartTime), want[i])
		}
		if isWhole := s.Name == whole; isWhole == s.Parent.IsValid() || !isWhole && s.Parent.SpanID() != wholeID(form) || isWhole && s.SpanContext.SpanID() != wholeID(form) {
			t.Errorf("%s has the parent %v", s.Name, s.Parent)
		}
	}
	if len(r.arrived) != 0 {
		t.Errorf("%d forms are kept", len(r.arrived))
	}
	r.Close(t.Context())
}

func TestArrivalsAreBounded(t *testing.T) {
	t.Parallel()
	r := &Recorder{arrived: map[place]time.Time{}}
	var id capabilities.ID
	for i := range maxArrived + 10 {
		id.ULID[0], id.ULID[1], id.ULID[2] = byte(i), byte(i>>8), byte(i>>16)
		r.arrive(place{form: id}, time.Time{})
	}
	if len(r.arrived) > maxArrived {
		t.Errorf("%d are kept", len(r.arrived))
	}
}

func TestExporterFollowsTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		env  map[string]string
		on   bool
		code parley.Code
	}{
		{env: nil},
		{env: map[string]string{endpoint: "http://localhost:4318"}, on: true},
		{env: map[string]string{tracesEndpoint: "https://x/y"}, on: true},
		{env: map[string]string{endpoint: "http://localhost:4318", disabled: "true"}},
		{env: map[string]string{endpoint: "http://localhost:4318", exporterKind: "none"}},
		{env: map[string]string{endpoint: "localhost:4318"}, code: parley.InvalidArgument},
		{env: map[string]string{tracesEndpoint: "ftp://secret@x"}, code: parley.InvalidArgument},
	} {
		e, err := Exporter(t.Context(), func(name string) (string, bool) { v, ok := x.env[name]; return v, ok }, slog.New(slog.DiscardHandler))
		if (e != nil) != x.on || parley.CodeOf(err) != x.code {
			t.Errorf("%v: %v %v", x.env, e, err)
		}
	}
}
