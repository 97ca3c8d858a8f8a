// Command parley runs a node and speaks for its agents.
//
// Everything it does, it asks of the node's daemon through the operations of the gateway; it holds no
// state of its own. What it prints and its exit codes are a contract: see --help and the README.
package main
