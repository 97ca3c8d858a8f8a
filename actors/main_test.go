package actors

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(victimFolder); folder != "" {
		runVictim(folder)
	}
	if folder := os.Getenv(programVictim); folder != "" {
		runProgramVictim(folder)
	}
	if spec := os.Getenv(farawayNode); spec != "" {
		runFaraway(spec)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, pid := range childrenOf(os.Getpid()) {
			fmt.Println("a process is left:", commandLine(pid))
			code = 1
		}
		os.Exit(code)
	}))
}
