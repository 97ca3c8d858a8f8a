// Package ws serves WebSockets: the operations of package api, follows, and the dialects of package compat.
//
// All connections are sessions of one kind. Calls, waits, follows, credit, the end of the node and slow clients have one way
// each. A session's frames have one of two spellings: that of package mux, or JSON.
//
// Each frame of JSON is an object with a type. NAME_request is a request of the operation NAME. It is answered by one
// NAME_response or error with the same requestId, in whatever order they end. follow_messages and
// subscribe_agent_updates open subscriptions, which are follows with credit for all. All other types are those of dialects.
//
// Promised: a frame is bounded and checked before it reaches the node; a subscription that is opened again at its last
// cursor misses nothing and shows nothing twice; a client that reads slowly delays itself alone; a session ends in
// order, with its calls answered. A session at rest has one goroutine, and no buffers.
//
// Not promised: that a session lasts. A client that does not take a frame in time, or whose token ends, is cut off.
package ws
