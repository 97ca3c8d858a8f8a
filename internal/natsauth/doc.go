// Package natsauth has the credentials with which a node connects to a NATS system: a credentials file or an nkey, the
// certificates that the system's servers are checked against, and a certificate of the node's own.
//
// Promised: a file that cannot be used is refused before a connection is made. The files are read again for each
// connection, so they can be replaced while the node runs. No error has what is in a file.
package natsauth
