// Package bridgetest checks that a kind of bridge keeps the promises of package bridge. It uses a real node, and a
// server that speaks the receiver's own protocol.
package bridgetest
