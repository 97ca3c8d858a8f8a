package terminal

import (
	"fmt"
	"time"
)

// LongCall is the time after which a person is told what a call waits for.
const LongCall = 2 * time.Second

// SlowDisk returns the words for a disk whose flush has taken so many seconds.
func SlowDisk(seconds int) string {
	return fmt.Sprintf("has not finished a flush for %d s: what is written waits for it", seconds)
}

// ClockBehind returns the words for a clock that is so many seconds behind the newest time in the log.
func ClockBehind(seconds int) string {
	return fmt.Sprintf("%s behind the newest time in the log: leave ends by that until the clock has caught up", time.Duration(seconds)*time.Second)
}
