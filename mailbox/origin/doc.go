// Package origin finds the forms that a dialect asked by what the dialect calls them.
//
// An origin has a dialect, and IDs of that dialect: of the form, and of a session or a run. Forms of one session belong
// together, as do forms of one run and agent. A form with neither stands alone.
//
// An Index lists the numbers of such forms in order. Each number is listed once. The caller enters forms, and removes
// those that are over. The package is pure, and an Index is not safe for concurrent use.
package origin
