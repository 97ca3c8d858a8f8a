//go:build !linux

package main

// refuseTracing does nothing here.
func refuseTracing() {}
