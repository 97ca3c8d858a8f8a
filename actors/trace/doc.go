// Package trace makes spans of OpenTelemetry from what happens to forms, and sends them to a collector.
//
// A form's trace has the ULID of the form as its ID, and the span of the whole form has an ID that is derived from it. So
// all nodes add to one trace, and neither events nor packets carry anything for it.
//
// Promised: a span is made once what it shows is durable. It has IDs, times and the kind of an end, and nothing that an
// agent wrote. Spans never delay or stop a node: they are dropped while the collector does not keep up.
//
// Not promised: that each span arrives. A node that is killed loses the spans of its last seconds.
package trace
