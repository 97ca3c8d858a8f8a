// Package prose reads what agents write: Markdown without HTML. The page draws it, and rows of the page and of the terminal show its words.
//
// Promised: the work for a text is bounded by IsEntangled, which Words asks itself. Not promised: that words are safe to print; sanitize has
// that. The package is pure.
package prose
