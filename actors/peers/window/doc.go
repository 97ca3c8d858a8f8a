// Package window decides which packets of a node are admitted, so that they are admitted in order.
//
// It is pure: callers pass the time, random numbers and the count of the journal's failures. They lock and wait.
// Package peers and the simulation run the same rules.
//
// It promises that the packets of a window are admitted in the order of their numbers, each once. None is admitted
// after a packet that could not be stored. What was put off, since it costs too much for now, holds up its route alone. Epochs
// ascend, whatever the other node claims.
package window
