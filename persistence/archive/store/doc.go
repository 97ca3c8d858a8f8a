// Package store keeps copies of archived files elsewhere: in a folder, or in a bucket that speaks the S3 protocol.
//
// The package promises:
//   - Copy returns without an error only after it has read the whole copy back and found it equal.
//   - A file in a store is never replaced by another one. A copy that is there already and is equal is left as it is.
//   - A file that was not written completely does not exist.
//   - All operations end when their context does.
//
// It does not promise that a store keeps its files. The content that Get returns is hostile until its reader has checked
// it.
package store
