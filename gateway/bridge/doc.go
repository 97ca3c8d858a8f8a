// Package bridge notifies people of the open forms of the node's host, by mail, a webhook or a notification.
//
// A Worker follows the open forms and sends each to one Receiver. It sends one again when it was amended or has ended.
// It records each notice in a file. So a restart loses nothing, and repeats nothing that the receiver has accepted.
// Each receiver has a worker of its own, so a dead receiver delays no other.
//
// The package promises that texts are cut and made safe to show. No value of an answer and no secret of a field leaves
// the node. A button is a right to answer with one use. It is listed, can be revoked, and ends with the form. A
// receiver may not show a notice that it accepted.
package bridge
