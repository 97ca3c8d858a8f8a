// Package proctest has what tests of processes share: a test binary that plays programs, and checks that processes
// are gone. It is for tests only, and knows nothing of the rest of the module.
package proctest
