// Package form holds the schema of a form: its fields, and the values that answer them.
//
// A Schema is compiled from fields. It reads an answer that was typed, checks the values of an answer, and reports the
// effort that both take. A pattern of a field is a JSON Schema (2020-12) without references outside itself.
//
// Promised: everything here is pure; equal fields and values give equal results and equal errors; an error names every
// wrong field; the work for one form and for one answer is bounded, whatever the patterns are; a Schema is immutable
// and safe for use by several goroutines.
//
// Not promised: that an agent holds the capabilities in its answer. Package mailbox checks that.
package form
