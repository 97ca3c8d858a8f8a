// Package keys keeps a node's key in its state folder, and seals the values of secret fields with it.
//
// A node is its key: an nkeys server key, whose public half is the node's ID. Its seed is the file FileName, in a
// folder that only the node's user can read.
//
// The package promises:
//   - A key file appears whole or not at all, and is on disk before LoadOrCreate returns.
//   - A folder or a key that others can read is refused, and so is a folder with a journal and no key.
//   - A sealed value shows nothing without the key but its length. The keys that Derive returns for two purposes are
//     independent.
//
// It does not promise to hide the seed from programs of the same user. Nor does it protect against a copied folder: who
// has the seed is the node.
package keys
