// Package fair shares a few places among many flows by what the work in them costs. It is start-time fair queueing (Goyal, Vin
// and Cheng, 1996), with costs that are measured when the work is done.
//
// Each flow has a tag, a virtual time. A place goes to the waiting flow with the lowest tag. The work then moves the tag on by the
// time that it took. So a flow gets the same share with one caller and with sixteen. Many cheap pieces get what a few expensive
// ones get. In this example there is one place. Pieces of A take 3 ms, and pieces of B 1 ms. Both have several callers.
//
//	place    A  B  B  B  A  B  B  B  A ...
//	tag of A 3  3  3  3  6  6  6  6  9
//	tag of B 0  1  2  3  3  4  5  6  6
//
// A flow that comes later starts at the virtual time of the queue: the tag of the flow that got a place last. So it has no
// claim for the time before. It waits for one piece of each other flow at most.
//
// A Rest says when work that can wait leaves the processors to those who write: after each piece of it, while anything is written.
package fair
