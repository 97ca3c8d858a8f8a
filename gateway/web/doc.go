// Package web draws the page: the HTML, scripts and styles that a person's browser is sent.
//
// It draws what it is given, and looks up nothing: it knows neither a node nor a request. A message is drawn in one
// place, whether it is in the first paint, comes later or stands alone.
//
// Promised: the pages work without scripts; nothing that another agent wrote is markup, runs, or hides characters; a
// secret is masked. Not promised: that the HTML stays as it is.
package web
