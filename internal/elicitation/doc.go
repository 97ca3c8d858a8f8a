// Package elicitation reads the schemas with which programs ask a person for values. Two protocols have the same ones: the
// Model Context Protocol and the Agent Client Protocol. A schema is an object of texts, numbers, switches and choices.
// Reading does no I/O.
package elicitation
