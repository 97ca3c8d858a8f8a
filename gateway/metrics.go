package gateway

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parley"
	"parley/gateway/api"
	"parley/gateway/httpd"
)

const metricsPath = "/metrics"

// metrics serves the metrics of a node in the text format of Prometheus. It counts calls as they end, and reads all other
// metrics off the node when they are asked for.
type metrics struct {
	calls *prometheus.CounterVec
	page  http.Handler
}

func newMetrics(s *Server) *metrics {
	m := &metrics{calls: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_calls_total",
		Help: "Calls that have ended, by operation and by the code of their error: OK if there was none.",
	}, []string{"operation", "code"})}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.calls, newCollector(s), // panics over duplicates, which no input can cause
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.page = promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog:           slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
		ErrorHandling:      promhttp.ContinueOnError, // the metrics that can be read are the more important
		DisableCompression: true,                     // most are read on the same machine
	})
	return m
}

// called counts a call. The operation must be one of the table: callers cannot make up new counters.
func (m *metrics) called(operation string, err error) {
	code := parley.Code("OK")
	if err != nil {
		code = api.Shown(err).Code
	}
	m.calls.WithLabelValues(operation, string(code)).Inc()
}

// serveMetrics writes the metrics, for the node's host alone: they name the nodes that this one knows.
func (s *Server) serveMetrics(w http.ResponseWriter, r *http.Request) {
	if err := s.caller(r.Context()).May(api.Operation{Name: "metrics", Scope: api.ScopeRead, OfNode: true}); err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	end, ok := s.beginRead(w, r, "metrics are read with GET")
	if !ok {
		return
	}
	defer end()
	s.metrics.page.ServeHTTP(w, r)
}
