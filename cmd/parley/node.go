//go:build !client

package main

import (
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"parley/cmd/parley/proc"
)

// addNodeCommands adds the commands that run a node, or read and write its files. With the tag "client" the program is built
// without them: Go initialises each package that is linked, before main. Those of a node take most of the time of a short
// command.
func addNodeCommands(root *cobra.Command, env *environment) {
	add(root, groupDaily, demoCommand(env), setupCommand(env), startCommand(env), stopCommand(env), openCommand(env))
	add(root, groupNode, serviceCommand(env), uninstallCommand(env), serveCommand(env), restartCommand(env), doctorCommand(env), backupCommand(env), restoreCommand(env), verifyCommand(env), benchCommand(env))
	add(root, groupAccess, tokenCommand(env), bridgeCommand(env))
}

// The collector begins when as much has become garbage as lives, but at least collectorFloor bytes. A small node is
// collected as seldom as at 300 % before. A large one is resident with twice what lives in place of four times.
//
// Measured with 64 callers on the socket and some 35 MiB that live, two interleaved runs each: the processor time of the
// collector, and the resident MiB. See docs/benchmarks.md.
//
//	percent  floor  collector  resident
//	300       0     2.7, 4.7 %  188, 179
//	100       0     8.0, 8.4 %  109, 123
//	100      64     5.3, 6.6 %  142, 145
//	100      96     2.5, 4.1 %  163, 167
//	100     128     2.9, 3.7 %  199, 208
//	150      64     5.6, 4.1 %  143, 143
//	200      48     4.9, 4.9 %  159, 160
const (
	collectorPercent = 100
	collectorFloor   = 96 << 20
)

// tune sets the runtime for a command that works on a journal for long, unless its user has. It takes a millisecond of
// processor, so short commands do without.
//
// A goroutine that waits for the disk keeps its processor for a while. Two more processors make up for that: a fifth more
// cycles a second were measured.
func tune() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)
	}
	if os.Getenv("GOGC") == "" {
		proc.TuneCollector(collectorPercent, collectorFloor)
	}
}
