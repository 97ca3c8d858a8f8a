// Package quota limits what an agent, or another node, uses of a mailbox and of its node.
//
// Amounts are a usage or a limit, one for each Quota. Limits refuse growth over a limit, and nothing else: who is over a
// quota can always free some. The caller counts the usage, and says whose usage counts together.
//
// The package is pure: days and times are the caller's.
package quota
