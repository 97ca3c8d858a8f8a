// Package exchangetest has a client of a node on which every exchange waits for an answer, for tests of what reads requests.
package exchangetest
