// Package sanitize makes text from others safe to read: it escapes characters that are invisible, move a cursor, or
// reorder a line. It does not escape markup.
package sanitize
