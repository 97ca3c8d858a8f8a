// Package due orders items by the time at which they are due.
//
// A queue promises that the next item is found in constant time. Taking the due items costs no more when many others
// wait. It doesn't know whether an item still matters: its owner drops those that don't.
package due
