package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// tune sets the runtime for what this program does, unless its user has.
//
// A goroutine that waits in a flush of the disk keeps its processor for a while, and on two of them that is
// half the node: two more make up for it (measured: a fifth more cycles a second). The live heap is small
// beside what each second of mail allocates, so collecting half as often costs little memory.
func tune() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300)
	}
}
