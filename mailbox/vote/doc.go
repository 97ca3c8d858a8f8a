// Package vote counts the votes on a form that needs several.
//
// A principal has one vote: another one takes the place of the first. A vote is on one revision of the question, and an
// amendment makes it void. A vote is known by the ID of its answer for as long as the form is kept, so an answer that is
// delivered again after its vote was replaced, withdrawn or made void changes nothing.
//
// Promised: a form is decided by as many principals as it needs that answer alike, by one denial if it has a veto, or by
// the denial after which too few are left. Not promised: who a principal is. The caller says that.
package vote
