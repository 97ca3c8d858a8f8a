// Package due orders what has to happen by its time.
//
// A queue promises that the next item is found at once, and that the items which are due cost as much as there are of
// them, however many others wait. It doesn't know whether an item still matters: its owner drops those that don't.
package due
