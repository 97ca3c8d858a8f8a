// Package bridge tells people of the open forms of the node's host, where they are: by mail, a webhook or a notification.
//
// A Worker follows the open forms and has one Receiver tell of each, and again when a form was amended or has ended. What
// it has told is in a file, so a restart tells nothing twice that the receiver took, and loses nothing. Each receiver has
// a worker of its own: a dead one delays nobody else.
//
// Promised: texts are cut and made safe to show; no value of an answer and no secret of a field leaves the node; a button
// is a right to answer with one use, which is listed, revocable, and ends with the form. Not promised: that a receiver
// shows what it took.
package bridge
