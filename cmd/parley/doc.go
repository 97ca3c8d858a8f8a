// Command parley runs a node and acts for its agents.
//
// Every command calls an operation of the node's gateway, on the socket in the state folder. The program keeps no state of
// its own. Its output, its options and its exit codes are a contract, described in --help and docs/every-day.md. It decides
// nothing: answers are checked and rules are applied by the node.
package main
