// Package eventually waits in tests for conditions that other goroutines and processes bring about. It polls a condition,
// and fails the test with the condition's name if it does not hold in time.
//
// It does not measure: its times are limits for conditions that never hold, not bounds on performance.
package eventually
