// Package transport carries sealed packets between nodes, over NATS, as request and response.
//
// A node is its key. Whoever knows a node's ID can seal a packet to it, since the key that a packet is sealed
// to is computed from the ID; no second key is passed around. A packet is sealed to one node, signed by
// another, and opens nowhere else. What a packet says is none of the transport's concern.
//
// Nodes meet where they can: at a node's own listener, an embedded server without storage that others dial, or
// at a hub, any NATS system that both reach. On each of them a node takes its packets from one subject,
// parley.node.{node}.mail, and the responses to its own from parley.node.{node}.reply.{packet}.
//
// Promised:
//   - A Packet that Receive gets was sealed by the node it is From, to this one, as it is. What is forged,
//     altered, meant for another, or a response where a packet belongs, changes nothing and is counted.
//   - Call returns what the callee itself sealed in response to that packet, or an error: NODE_UNREACHABLE.
//   - A dialed connection leads to the node that was dialed, each time it is made again: the listener's
//     certificate is its node's key. A node that connects to the listener has proved its key, for this listener
//     alone, and reaches nothing there but the listener's node and its own subjects.
//   - Strangers cost a bounded amount: of places for packets, of memory for counters, of lines in the log.
//   - Close ends all that Open and Dial began.
//
// Not promised: that a packet arrives once. One that was not answered may have been received, who watches a hub
// may send a packet again, and so a receiver knows by its ID what it has seen. Nor that packets keep their order;
// nor that a hub hides who writes to whom, when and how much, or delivers at all.
package transport
