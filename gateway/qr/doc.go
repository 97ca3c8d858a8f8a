// Package qr draws a text as a QR code: for a terminal, and as an image.
package qr
