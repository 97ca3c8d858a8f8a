// Package parley is the public vocabulary: what is said of mail on every edge, one type for each noun. What is written of a
// noun is an event (package events). What is decided on is its state (package mailbox).
//
// The rooms are the folders beside this file. Imports run one way:
//
//	fault <- capabilities <- events <- parley <- mailbox <- actors <- gateway <- cmd/parley
//	                         events <- persistence <- actors
//
// This package does nothing by itself.
package parley
