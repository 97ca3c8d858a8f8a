// Package trace makes OpenTelemetry spans from the events of forms, and sends them to a collector.
//
// The ID of a form's trace is the ULID of the form. The ID of the span of the whole form is derived from it. So all
// nodes add to one trace, and neither events nor packets carry an ID of it.
//
// The package promises that a span is made once its events are durable. A span has IDs, times and the kind of outcome,
// and no text of an agent. Spans never delay or stop a node: they are dropped while the collector does not keep up.
//
// A span may be lost. A node that is killed loses the spans of its last seconds.
package trace
