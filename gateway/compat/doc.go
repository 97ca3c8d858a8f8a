// Package compat speaks the dialects of older clients: it turns their frames into forms of an agent, and the agent's
// forms into their frames.
//
// A dialect keeps nothing of its own. The origin of a form has its names for the form, and the mailbox the rest: a client
// that connects again gets the forms that wait for it.
//
// Promised: a client gets each form that waits for it, and the outcome of each form that it asked. That ends with the
// session; one frame of a name means one form, or is refused with AMBIGUOUS.
//
// Not promised: the transport of frames. A Session sends them, and decides which frames the client may send.
package compat
