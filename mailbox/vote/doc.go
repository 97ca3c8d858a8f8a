// Package vote counts the votes on a form that needs several.
//
// A principal has one vote: a second vote replaces the first. A vote is on one revision of the question, and an
// amendment makes it void. The ID of its answer identifies a vote for as long as the form is kept. So an answer that is
// delivered again changes nothing, even if its vote was replaced, withdrawn or made void.
//
// The package promises that a form is decided once enough principals have given the same answer. One denial decides a
// form with a veto. Without a veto, the form is denied once too few voters are left to allow it. The caller says who a
// principal is.
package vote
