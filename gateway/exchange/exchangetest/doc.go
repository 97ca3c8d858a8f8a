// Package exchangetest has a client of a node on which every exchange waits for an answer. It is for tests of what
// reads requests.
package exchangetest
