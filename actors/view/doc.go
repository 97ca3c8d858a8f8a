// Package view holds the types in which a node shows what it knows: messages, forms and their outcomes, agents, rules,
// tokens and other nodes. Every edge uses them: the actors that make them, the gateway that sends them, and the clients
// that read them.
//
// Promised: the types are plain data. Each is written as JSON in one way, and reads what it writes. A secret that is
// masked stays masked when it is read. Names in them are those of the agent that looks.
//
// Not promised: that texts are safe to show. They may come from strangers: escape them wherever they are shown.
package view
