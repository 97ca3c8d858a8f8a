// Package pack appends msgpack values to byte slices: those of the log, and those of the frames of clients.
//
// The package promises the shortest form of each head and number, and floats in 64 bits. The log depends on that: its hashes
// are of these bytes. It does not read msgpack, and checks nothing: a map is whole once the caller has appended its pairs.
package pack
