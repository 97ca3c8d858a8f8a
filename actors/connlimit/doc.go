// Package connlimit bounds the connections of a listener, for each address and altogether.
//
// It promises that a connection which comes when all places are taken gets the place of an idle one, so that silent
// connections keep nobody out. It does not promise a place while all others are busy, and closes no connection itself:
// the Occupant does.
package connlimit
