// Package proof makes and reads proofs: files that show what was decided on a form, to somebody who has the file, the public
// key of the node and nothing else.
//
// A proof says what was shown, or only its digest, who decided what and when, and which events of which commits of the node's
// log say so. Where an event shares its place in the log with nothing else, the proof shows it with the hashes from which the
// hash of its commit is made; otherwise it has the hash of the section alone, and the event stands on the word of the node. All
// of it is signed with the node's key. docs/proofs.md describes the format.
//
// Promised: a file that was cut or changed in any byte is refused, and so is one of another node or form than the wanted one;
// what a proof says agrees with each event that it shows; no value of a secret field is in it. Reading takes memory in
// proportion to the file, of MaxSize at most.
//
// Not promised: that the node told the truth, or that its log has one end. A holder of the node's key can sign anything.
//
// The package is pure.
package proof
