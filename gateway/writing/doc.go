// Package writing tells which files a call of a coding agent would write, under all names by which somebody may have a lease on them.
//
// It looks at links, and at nothing else: what a script or a build writes nobody knows.
package writing
