// Package resource has the kinds of resources: what a node's host makes, names and gives, and what its holders invoke.
//
// A resource has a mailbox of its own, which is the home of all its grants. The mailbox decides on each use, charges it in the log, and
// only then this package does it:
//
//	ResourceMade    what the host has made: a folder, a file, a secret, or the tools of a server
//	UseBegun        a use was charged: to its grant, and to all that this derives from. It waits if somebody decides on each use
//	UseAllowed      that was allowed
//	UseEnded        done, failed, denied (the charge is given back), or unknown: the node ended while it was under way
//
// A kind says what a use does (Read), which the mailbox compares with the facets of all grants, and does it (Invoke).
//
// What fails: a use that the mailbox refuses has charged nothing. A use that fails is charged. One that was under way when the node
// ended is unknown and charged, and nothing repeats it. A repeated call with the same key is the same use.
//
// Hostile are the holder, what is in a folder, the hosts that a secret is sent to, and the servers of tools. Not hostile is who can
// change the folder's own path, or the node's state folder.
package resource
