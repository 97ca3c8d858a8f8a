package actors

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// objectStoreLeft is a goroutine that the NATS client leaves behind, waiting for ever, where an object is stored so fast
// that the client cleans up after it before that goroutine has begun.
const objectStoreLeft = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

func TestMain(m *testing.M) {
	if folder := os.Getenv(loadedNodeEnv); folder != "" {
		runLoadedNode(folder)
	}
	if folder := os.Getenv(programNodeEnv); folder != "" {
		runProgramNode(folder)
	}
	if folder := os.Getenv(promptNodeEnv); folder != "" {
		runPromptNode(folder)
	}
	if spec := os.Getenv(processEnv); spec != "" {
		runProcess(spec)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(objectStoreLeft), goleak.Cleanup(func(code int) {
		for _, pid := range descendantsOf(os.Getpid()) {
			fmt.Println("a process is left:", commandLine(pid))
			code = 1
		}
		os.Exit(code)
	}))
}
