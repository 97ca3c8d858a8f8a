// Package openapi describes the operations of package api as an OpenAPI 3.1 document.
//
// Promised: the document has every operation of the table, with the JSON Schema (2020-12) of its request and response.
// It follows from the table and its types alone. A type keeps the name that it was first published under. Two documents
// of one version have the same JSON.
//
// Not promised: a general generator. The package knows the kinds of types that requests and responses have, and the
// types that encode themselves. A generator library would not be smaller: published names, types that encode themselves
// and required members, which are most of the code, would be its configuration.
package openapi
