package trace

import (
	"context"
	"log/slog"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"parley"
)

// The variables of OpenTelemetry that name a collector, and that turn spans off.
const (
	endpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	exporterKind   = "OTEL_TRACES_EXPORTER"
	disabled       = "OTEL_SDK_DISABLED"
)

// Exporter returns an exporter to the collector that the environment names, over OTLP/HTTP, or nil if it names none. It
// refuses a malformed address with INVALID_ARGUMENT. Failures of the exporter go to log.
func Exporter(ctx context.Context, lookup func(string) (string, bool), log *slog.Logger) (sdk.SpanExporter, error) {
	env := func(name string) string {
		if value, ok := lookup(name); ok {
			return value
		}
		return ""
	}
	to := env(tracesEndpoint)
	if to == "" && env(endpoint) != "" {
		to = strings.TrimSuffix(env(endpoint), "/") + "/v1/traces"
	}
	if to == "" || strings.EqualFold(env(disabled), "true") || strings.EqualFold(env(exporterKind), "none") {
		return nil, nil
	}
	if u, err := url.Parse(to); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, parley.Refuse(parley.InvalidArgument, "%s and %s are no address of a collector", endpoint, tracesEndpoint).
			WithHint("as in http://localhost:4318")
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Debug("spans are lost", "error", err) }))
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(to))
}
