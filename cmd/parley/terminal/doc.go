// Package terminal makes text and documents from others safe to print, and reads input within bounds.
//
// Text that Visible and Quoted return stays on one line and hides nothing: no control characters, nothing that reorders
// the line. YAML escapes the same characters and means the same document as the JSON that it was made from. The package
// writes nothing itself.
package terminal
