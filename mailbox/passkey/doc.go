// Package passkey says what a person signs with a passkey (WebAuthn), and checks it.
//
// Where the host of an agent wants it, a decision that allows a call is signed by a device that the person has and has unlocked. The
// sequence, with who does what:
//
//	the page          sends respond_form, which is refused with PASSKEY_REQUIRED
//	the page          sends ask_passkey with the same answer
//	the host's mailbox drafts the answer, and says what it means: Statement
//	the gateway       adds a nonce, and notes it: it is good once, and for some minutes
//	the device        signs SHA-256 of the statement as WebAuthn's challenge, for the page's origin alone
//	the page          sends respond_form again, with what the device returned
//	the gateway       takes the nonce
//	the host's mailbox drafts the answer again, which has to mean the same, checks the signature, and writes PasskeyUsed
//	the form's home   writes DecisionSigned and FormAnswered (or VoteCast) in one commit
//
// The need for a passkey, the passkeys and the counts of devices are in the log of who decides, and the signature is in the log of who
// asked, from which a proof is made. A node that dies between the last two has used the device's count and decided nothing: the person is
// asked once more.
//
// A denial and a decline need no passkey: a lost device must not keep a call open. A rule, a mandate and a reviewer decide as the person
// has set them up, without one.
//
// The signature is checked here and not by the library that registers passkeys: whoever reads a proof has neither that nor a node. A key
// is kept as SubjectPublicKeyInfo, so no CBOR is read here.
//
// Promised: what Check accepts was signed by the key, for that origin, by a device that had verified its user, over that statement.
// Not promised: that the person read what the page showed.
//
// The package is pure.
package passkey
