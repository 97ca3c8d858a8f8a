// Package peers carries mail between this node and others.
//
// A Directory holds the nodes that this one knows: those that it has met by an invitation, and those that a met node has
// introduced. The host's log says which they are; Remember and Note take that over. Each known node has a Peer, with an
// actor of its own.
//
// Outbound, a Peer asks the mailboxes that have items for its node. It sends the items in numbered packets, several at
// once. A mailbox learns of each item whether it was accepted or refused. An item without a reply stays in the
// mailbox's outbox. It is sent again, with all items after it, in a window of a later epoch.
//
// Inbound, the packets of a node are admitted in the order of their numbers. Each item is checked as a stranger's, and a
// mailbox decides on it. The sender gets the acks when all that follows from the items is durable.
//
// The package promises:
//   - The items from one mailbox to another arrive in their order, whatever is lost on the way.
//   - An ack that an item was accepted or refused is final, and durable on the node that sent it.
//   - A node that is not known has its packets refused, unless it shows an invitation.
//
// It does not promise that an item arrives once: a mailbox recognizes what it has. Nor does it promise that a node that
// counts as reachable replies.
package peers
