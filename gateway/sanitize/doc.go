// Package sanitize makes text from others safe to read: what does not show itself, would move a cursor, reorder a line
// or hide between letters stands as an escape. Markup is the care of whoever writes it.
package sanitize
