//go:build unix

package runtime

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// part is the environment variable that has the test binary play a program.
const part = "PARLEY_TEST_PART"

// parts are the programs that the test binary plays.
var parts = map[string]func(){
	"echo":       playEcho,
	"grandchild": playGrandchild,
	"stubborn":   playStubborn,
	"flood":      playFlood,
	"many":       playMany,
	"agent":      playAgent,
	"deaf":       playDeaf,
	"node":       playNode,
}

func TestMain(m *testing.M) {
	if play, ok := parts[os.Getenv(part)]; ok {
		play()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// playing is the specification of a program that the test binary plays.
func playing(name string) Spec {
	return Spec{Command: []string{os.Args[0]}, Environment: []string{part + "=" + name, "GOCOVERDIR=" + os.TempDir()}}
}

// script is the specification of a shell script.
func script(text string) Spec { return Spec{Command: []string{"sh", "-c", text}} }
