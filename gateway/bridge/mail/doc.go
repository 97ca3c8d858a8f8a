// Package mail tells a person of forms by mail. An approval has links that answer it once, after a page has asked. What
// becomes of a form follows in the same thread. The connection to the server is encrypted, unless both are on this machine.
package mail
