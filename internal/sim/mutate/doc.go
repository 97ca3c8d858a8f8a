// Command mutate breaks rules of the program on purpose, and reports the test that finds each.
//
//	go run ./internal/sim/mutate [WORD]
//
// It reads the patches in internal/sim/testdata/mutations whose names contain WORD. The line of a patch that begins with
// "test:" has the arguments for go test. The files of the module stay as they are: the tests are built with an overlay.
// The command fails if a patch does not apply or build, or if its test passes.
package main
