// Package websocket speaks the protocol of RFC 6455 on both sides of a connection, without extensions. A library reads, checks
// and writes the frames; net/http carries the handshake, so that a client's transport and the errors of a server are those of
// its other requests.
//
// It promises that a connection at rest holds no buffer and no goroutine of its own. It takes a buffer from a pool once bytes
// are there, where the system says that. Several messages are one write. A message is bounded, and its memory follows the
// bytes that have come. What the RFC forbids fails the connection with its code: frames without a mask, reserved bits, parts
// out of order, and reasons and texts that are not UTF-8.
//
// It does not promise to keep a message: that is good until the next Read.
package websocket
