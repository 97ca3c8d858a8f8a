// Package capabilities defines what an agent may hold and how it is named.
//
// An ID names a thing anywhere: a ULID and the key of the node that made it. A Ref is an ID together with the use that
// it permits. A Value is data that can be passed between agents: plain data, or a Ref. A Grant records who gave what to
// whom. A Ledger of grants revokes, with a grant, everything derived from it. Names and paths are how an agent finds
// what it holds.
//
// Promised: everything here is pure, with time and entropy as arguments; equal values have equal encodings; whatever is
// decoded is bounded in size and depth and well formed, or refused.
//
// Not promised: that an ID refers to anything, or that its bearer may use it. Knowing an ID gives no authority. What an
// agent holds is a fact in its mailbox's log, which this package does not see.
package capabilities
