// Package httpd serves HTTP on one listener, within bounds.
//
// It is net/http's server with four additions. Connections are counted by their address, and an idle one gives its place
// to a new one (package connlimit). A connection may be refused by the process that opened it. Draining closes idle
// connections at once and lets calls under way end. A malformed request is refused with the JSON of all other errors.
//
// Promised: a call whose request has come is answered, or its connection is closed without an answer; a panic ends one
// call alone. Not promised: that a client which reads slowly is answered in whole.
package httpd
