// Package capabilities says what an agent may hold and how it is named.
//
// An ID names a thing anywhere: a ULID and the key of the node that made it. A Ref is an ID together
// with what may be done with it. A Value is data that can be passed between agents: plain data, or a
// Ref. A Grant records who gave what to whom, and a Ledger of grants cuts, when one is revoked, all
// that was derived from it. Names and paths are how one agent finds what it holds.
//
// Promised: everything here is pure (time and entropy come in as arguments); equal values have equal
// encodings; whatever is decoded is bounded in size and depth and is well formed, or refused.
//
// Not promised: that an ID refers to anything, or that whoever knows one may use it. Knowing an ID
// gives no authority. What an agent holds is a fact in its mailbox's log, which this package does
// not see.
package capabilities
