// Command bench measures Parley beside other durable stores of questions, on one disk and in one run: Restate and
// LangGraph from npm, a PostgreSQL table with LISTEN and NOTIFY, and plain appends that are flushed.
//
// All do the same cycle: a form of three fields, some 410 bytes, is acknowledged, and a waiter blocks. An answer of three
// values is acknowledged, and the waiter has the answer. Each caller has connections of its own. Parley is measured with one
// connection for all, too. All are durable: what is acknowledged survives a crash of the machine
// as far as their documentation says. Each runs as a process of its own and is called over its socket or port.
//
// The systems take turns, several rounds of each, so that other load meets all of them. Compare only the figures of one
// run. The command needs node and npm for Restate and LangGraph, and initdb and postgres for PostgreSQL; it leaves out,
// and names, those that it cannot start. It writes nothing but a temporary folder and, with -doc, the part of a document
// between two marks.
//
//	go run . -doc ../docs/benchmarks.md
package main
