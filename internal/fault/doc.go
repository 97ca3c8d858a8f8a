// Package fault is the one kind of error. It stands below everything, so that IDs and values can refuse too.
// Package parley has its names for all that stands above it.
package fault
