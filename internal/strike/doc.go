// Package strike takes secrets out of words that are kept: of the last lines of a program that has failed, for one.
//
// Promised: what looks like a key of a known service, a token of Parley's, a private key, a password in an address, or the value of a
// name such as PASSWORD or apiKey is replaced by Struck; the rest stays as it is, and a second call changes nothing. Not promised:
// that a secret is found which looks like any other word.
package strike
