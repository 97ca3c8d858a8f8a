// Package exchange maps conversations of other protocols to forms: one agent asks another, and answers what it is asked
// meanwhile. The edges for A2A and AG-UI share it.
//
// An exchange is a form, and its ID is the form's. The caller asks the agent a form with one field for the answer. While
// that form is open, the oldest form that the agent has asked the caller since, and that the caller may answer, is the
// question of the exchange. A form has no thread: if the caller has several open exchanges with one agent, each that is
// older than a question shows it, and an answer through any of them settles it. A form that another agent asked the caller
// is an exchange too, whose question is the form itself.
//
// Promised: nothing is kept but in the log, so an exchange survives its connection and its node. Beginning with the same
// key again begins nothing new. An answer that the form does not accept changes nothing. An approval is never answered
// here: the exchange only reports that one waits.
//
// Not promised: that a question is found behind more than a thousand other open forms.
package exchange
