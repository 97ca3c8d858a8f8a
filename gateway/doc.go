// Package gateway serves a node to its clients: it opens the listeners, signs browsers in, and hands each request to an
// edge.
//
// The operations, with the types of their requests and responses, are those of package api. Package backend performs them
// on the node, and each edge calls them through an api.Backend:
//
//   - HTTP on the node's Unix socket, and on a TCP address for clients that show a token: POST /rpc/{operation}, JSON in
//     and out (this package, over package httpd);
//   - a WebSocket at /ws (package ws), also on the Unix socket. Older clients speak their own dialects there (package
//     compat), and others have many calls under way in binary frames (package mux);
//   - tools for models at /mcp (package mcp);
//   - pages for browsers, with a stream of events (package web);
//   - a micro service of a NATS system (package micro): a request on parley.rpc.{node}.{operation}, with a token in its header.
//
// GET /openapi.json describes the operations.
//
// The package promises that a request is bounded and checked before it reaches the node. The effect of an operation is
// durable when it is answered. An error is always {"error":{code,message,hint?,fields?}}, or a frame of these members.
// It keeps all details. A wait that was cut off can be continued. A slow client delays only itself. A wait may take more
// than one call.
package gateway
