// Package parley is the vocabulary that every room shares: the one kind of error.
//
// The rooms are the folders beside this file. Imports run one way:
//
//	capabilities <- events <- mailbox <- actors <- gateway <- cmd/parley
//	                events <- persistence <- actors
//
// This package imports nothing of Parley's and does nothing by itself.
package parley
