// Package freeport chooses ports for servers that a test starts later, or starts again.
//
// It chooses below the range from which systems take the ports of outgoing connections. So no connection of another test
// takes a port while its server is down. It does not protect from programs that listen on a port of their own there.
package freeport
