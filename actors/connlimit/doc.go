// Package connlimit bounds the connections of a listener, for each address and altogether.
//
// It promises that a new connection takes the place of an idle one when all places are taken. So silent connections
// keep nobody out. It does not promise a place while all others are busy, and closes no connection itself: the Occupant
// does.
package connlimit
