// Command answer is a program that answers for the host of a node: each form that asks for one number gets 42, and all others are
// left to a person. It misses nothing and answers nothing twice, also if it is killed and started again.
//
//	parley start
//	go run ./examples/answer ~/.local/state/parley/parley.sock
package main
