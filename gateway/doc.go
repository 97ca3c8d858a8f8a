// Package gateway serves a node to its clients: it opens the listeners, signs browsers in, and hands each request to an
// edge.
//
// The operations, with the types of their requests and responses, are those of package api. Package backend performs them
// on the node, and each edge calls them through an api.Backend:
//
//   - HTTP on the node's Unix socket, and on a TCP address for clients that show a token: POST /rpc/{operation}, JSON in
//     and out (this package, over package httpd);
//   - a WebSocket at /ws (package ws), where older clients also speak their own dialects (package compat), and others have
//     many calls under way in binary frames (package mux), also on the Unix socket;
//   - tools for models at /mcp (package mcp);
//   - pages for browsers, with a stream of events (package web);
//   - a micro service of a NATS system (package micro): a request on parley.rpc.{node}.{operation}, with a token in its header.
//
// GET /openapi.json describes the operations.
//
// Promised: a request is bounded and checked before it reaches the node; the effect of an operation is durable when it is
// answered; an error is always {"error":{code,message,hint?,fields?}}, or a frame of its members, and loses nothing; a wait
// that is cut off can be taken up again; a client that is too slow delays itself alone. Not promised: that a wait ends
// within one call.
package gateway
