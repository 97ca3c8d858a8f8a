// Package text reads the text of a message: words, and references to what its sender holds.
//
// It promises that nothing is taken for a reference that only speaks of one, in code or in quotes. All text is kept, but for
// the backslash of an escaped @. Whether a reference names something is not known here.
package text
