// Package window has the rules by which the packets of a node are admitted in their order.
//
// It is pure: callers give the time, what is drawn at random and how often the journal has failed, and they lock and wait.
// Package peers and the simulation run the same rules.
//
// It promises that packets of a window are admitted in the order of their numbers and each once, that none is admitted
// after one that could not be stored, and that epochs ascend whatever the other node claims.
package window
