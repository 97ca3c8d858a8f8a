// Package lease says what the patterns of leases cover, and which files a call of a coding agent writes.
//
// A pattern is of files, or any other name. It is pure: folders are the caller's, and so are the links in them.
package lease
