// Package gateway serves a node to its clients.
//
// The table of operations, with the types of their requests and responses, is in package api. Every edge walks that
// table, and calls the handler that the server has for each operation. HTTP on the node's Unix socket, and on a TCP address for who shows a token: POST /rpc/{operation}, JSON in
// and out; and there, at /ws, a WebSocket, and at /mcp, tools for models (package mcp). GET /openapi.json describes the
// table, and is made from it. Where a NATS system is named, the table is a micro service there: a request on
// parley.rpc.{node}.{operation}, with a token in its header.
//
// On a WebSocket, each frame is a JSON object with a type. NAME_request is the operation, answered by one
// NAME_response or error with the same requestId, in whatever order they end. follow_messages subscribes to a
// mailbox, with cursors. All other types are those of dialects: the frames of systems that others are used to, each
// turned into forms and back. A dialect keeps nothing of its own: what it has to know of a form stands in the form.
//
// Promised: a request is bounded and checked before it reaches the node; what an operation answers is
// durable; an error is always {"error":{code,message,hint?,fields?}}, or a frame of its members, and loses nothing; a
// wait that is cut off can be taken up again; a subscription taken up again at its last cursor misses nothing and
// shows nothing twice; a client that is too slow delays itself alone. Not promised: that a wait ends within one call.
package gateway
