// Package fair shares a few places among many flows by what the work in them costs: start-time fair queueing (Goyal, Vin and
// Cheng, 1996), with costs that are measured when the work is done.
//
// Each flow has a tag, a virtual time. A place goes to the waiting flow with the lowest tag, and the work moves the tag on by the time
// that it took. So a flow gets the same share with one caller and with sixteen, and the same share for many cheap pieces as for a few
// expensive ones. With one place, pieces of A that take 3 ms from many callers, and pieces of B that take 1 ms from three:
//
//	place    A  B  B  B  A  B  B  B  A ...
//	tag of A 3  3  3  3  6  6  6  6  9
//	tag of B 0  1  2  3  3  4  5  6  6
//
// A flow that comes later starts at the virtual time of the queue, which is the tag of the flow that got a place last. So it
// has no claim for the time before, and waits for one piece of work of each other flow at most.
package fair
