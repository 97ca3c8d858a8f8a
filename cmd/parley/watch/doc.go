// Package watch is an agent's inbox on a terminal: a list of messages, the selected one in full, and keys that decide on
// calls, answer forms and reply.
//
// It follows the mailbox over the connection of its client. When the node cannot be reached it says so, and keeps what
// it has shown. It tries again until the node is back. A decision names the form and the digest of the call that was
// shown. So it decides nothing else, whatever arrives meanwhile. A key that is pressed while the node is away decides
// nothing. Text from others is escaped before it is shown. The package keeps nothing of its own: the mailbox is the
// node's.
package watch
