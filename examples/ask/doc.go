// Command ask is an agent that needs a decision. It asks the host of a node, waits however long that takes, and goes on with the
// answer. Kill it and start it again with the same key: it waits for the question that it has asked already.
//
//	parley start
//	parley mkguest builder
//	PARLEY_TOKEN=$(parley token create --as builder) go run ./examples/ask http://127.0.0.1:7420 build-42
package main
