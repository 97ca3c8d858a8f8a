// Package exchange maps the requests of other protocols to forms. One agent asks another, and answers the questions
// that the other asks meanwhile. The edges for A2A and AG-UI share it.
//
// An exchange is a form, and its ID is the form's. The caller asks the agent a form with one field for the answer.
// While that form is open, the agent may ask the caller forms of its own. The oldest of these that the caller may
// answer is the question of the exchange. A form has no thread. If the caller has several open exchanges with one
// agent, a question is shown in each older exchange. An answer through any of them settles it. A form that another
// agent asked the caller is an exchange too. Its question is the form itself.
//
// The package keeps everything in the log, so an exchange survives its connection and a restart of its node. A repeated
// request with the same key begins no second exchange. An answer that the form does not accept changes nothing. An
// approval is never answered here: the exchange only reports that one waits.
//
// It does not promise to find a question behind more than a thousand other open forms.
package exchange
