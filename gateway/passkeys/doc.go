// Package passkeys registers the passkeys of people, by WebAuthn, and remembers what they were asked to sign.
//
// What a browser returns of a new passkey is CBOR in a format of its maker's: that is read by the library alone, and what is kept of it
// is the public key as SubjectPublicKeyInfo. What a passkey signs later is checked by package mailbox/passkey, as a proof's reader does.
//
// Challenges are in memory: each is good once, for some minutes, and for the agent that asked. A node that starts knows none of before, so
// nothing that was signed earlier can be sent again.
package passkeys
