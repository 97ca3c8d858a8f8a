// Package api holds the operations of a node as its clients call them: the types of requests and responses, and the
// statuses of errors.
//
// All edges of the gateway take and return these types. The Go client, the command line and the tools for models send
// and read them. The JSON of a type changes only by new members.
//
// The package does not say how an operation is performed. The package imports no actors, and no server.
package api
