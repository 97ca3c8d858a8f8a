// Package natsauth reads the credentials of a node for a NATS system: a credentials file or an nkey, the system's root
// certificates, and the node's own certificate.
//
// The package promises to refuse an unusable file before a connection is made. The files are read again for each
// connection, so they can be replaced while the node runs. No error contains the contents of a file.
package natsauth
