// Package backend performs the operations of package api on a node's actors. It is the one package below gateway that
// knows the actors: edges know an api.Backend.
//
// Promised: an operation is performed for its principal, with no more authority than that has; what it changed is
// durable when it returns; an account never uses more than its limits, and guests never use the host's share; a wait
// ends when its token ends.
//
// Not promised: anything about how a request comes and how its response goes. A Backend opens no listener, and reads and
// writes no JSON but a request's.
package backend
