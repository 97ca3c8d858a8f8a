// Package edgetest holds what every edge of a node has to do, as tests for any of them.
//
// Run takes an Edge, which calls operations by JSON. It plays one list of scenes: each operation of the table of package
// api, and each refusal. An operation without a scene fails. The transcript of the scenes is a golden file that is the same
// for all edges: the result of each call, or its code, message, hint and fields.
//
// It does not test frames, streams, limits of load, or how an edge is reached.
package edgetest
