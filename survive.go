package parley

import (
	"fmt"
	"runtime/debug"
)

// Survive calls do and returns its error. A panic of do becomes an error with the stack, so that the goroutine goes on.
func Survive(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}
