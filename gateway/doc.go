// Package gateway is how the world talks to a node.
//
// One table lists the operations, each with the types of its request and response; every edge walks that
// table. Today's edge is HTTP on the node's Unix socket: POST /rpc/{operation}, JSON in and out.
//
// Promised: a request is bounded and checked before it reaches the node; what an operation answers is
// durable; an error is always {"error":{code,message,hint?,fields?}} and loses nothing; a wait that is cut
// off can be taken up again. Not promised: that a wait ends within one call.
package gateway
