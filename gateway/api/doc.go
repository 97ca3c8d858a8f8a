// Package api holds the operations of a node as its clients call them: the types of requests and responses, and the
// statuses of errors.
//
// Promised: the JSON of a type changes only by new members. What an edge of the gateway takes and gives, and what the Go
// client, the command line and the tools for models send and read, is of these types.
//
// Not promised: anything about how an operation is performed. The package imports no actors, and no server.
package api
