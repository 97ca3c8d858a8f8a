// Package connlimit bounds the connections of a listener, by address and altogether.
//
// A connection that comes when there are too many takes the place of an older one on which nothing is under way.
// So those who connect and say nothing keep nobody out.
package connlimit
