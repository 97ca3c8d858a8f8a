// Package queue orders what waits for a person, and folds what is alike into rows. The page, the terminal and notices use it, so
// that each shows the same rows in the same order with the same words.
//
// What ends soon comes first, then what agents are stopped on, the riskiest and oldest first, and then what can wait. Identical
// calls are one row, and so are similar calls from three on. A call of high risk is a row with identical ones alone.
//
// Promised: the same messages at the same time give the same rows. A call is read once, whatever else comes, and the work for
// n messages is that of sorting them. Not promised: that two calls in a row do the same; a row says what differs, and each
// decision names its own call. The package is pure.
package queue
