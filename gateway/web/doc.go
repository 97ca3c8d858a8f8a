// Package web serves the pages: the HTML, scripts and styles for the browser of a person. It also has the stream of
// events that keeps a page up to date, and sign-in.
//
// A Site looks up what a page shows with an api.Backend. The authority and the limits are those of the principal that
// asks. It draws a message in one place, whether the message is in the first paint, comes later or stands alone. Each
// kind of page has a file here and a template in assets/templates. A Site opens no listener, and knows no cookie: the
// server that has it finds out the principal of a request, and makes and ends sessions.
//
// The package promises: the pages work without scripts; nothing that another agent wrote is markup, runs, or hides
// characters; a secret is masked; a stream taken up again at its last cursor misses nothing; a reader that is too slow
// is cut off and delays no other. Not promised: that the HTML stays as it is.
package web
