// Package transport carries sealed packets between nodes, as requests and responses over NATS.
//
// A node is its key. The key that a packet is sealed to is computed from the receiving node's ID. So no second key is
// exchanged. A packet is signed by its sender, and opens at one receiver only. The package does not look at bodies.
//
// Nodes connect at a node's own listener or at a hub. A listener is an embedded server without storage. A hub is any
// NATS system that both nodes reach. A node takes packets from the subject parley.node.{node}.mail, and responses from
// parley.node.{node}.reply.{packet}.
//
// The package promises:
//   - A packet that Receive gets was sealed to this node by the node in From, and is unchanged. A packet that is forged,
//     altered, for another node, or a response in the place of a request, has no effect and is counted.
//   - Call returns the response that the called node sealed for that packet, or NODE_UNREACHABLE.
//   - A dialed connection leads to the dialed node, also when it is made again: the listener's certificate is its node's
//     key. A node that connects to the listener has proved its key for this listener, and has permissions for its own
//     subjects and the host's only.
//   - Strangers use a bounded share of slots, counters and log lines.
//   - Close ends everything that Open and Dial have started.
//
// It does not promise that a packet arrives once. A packet without a response may have been received, and whoever
// watches a hub may send it again: receivers recognise packets by their IDs. Packets may change their order. A hub sees
// who writes to whom, when and how much, and may drop packets.
package transport
