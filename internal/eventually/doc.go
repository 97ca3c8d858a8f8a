// Package eventually waits in tests for what other goroutines and processes bring about. It polls a condition, and fails
// the test with the name of the condition if it does not hold in time.
//
// It does not measure: its times are limits for what never comes, and say nothing about how long something may take.
package eventually
