// Package micro offers the operations of package api as a micro service of a NATS system: a request on
// parley.rpc.{node}.{operation}, with a token in its header.
//
// Promised: a request is bounded and checked as over HTTP, and refused with the same errors; a request that was taken is
// answered, also when the node stops; no answer is sent to a subject of the NATS system or of a node.
//
// Not promised: that the NATS system is in reach. The service connects again and again.
package micro
