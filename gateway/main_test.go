package gateway

import (
	"testing"

	"go.uber.org/goleak"
)

// objectStoreLeft is a goroutine that the NATS client leaks if it stores an object before the goroutine has begun.
const objectStoreLeft = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

// patternClock is a goroutine of the patterns by which calls are coloured. It ends by itself, a while after the last match.
const patternClock = "github.com/dlclark/regexp2/v2.runClock"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(withBrowser{m}, goleak.IgnoreTopFunction(objectStoreLeft), goleak.IgnoreAnyFunction(patternClock))
}

// withBrowser runs the tests and ends their shared browsers before the check for leaks.
type withBrowser struct{ *testing.M }

func (m withBrowser) Run() int {
	defer packageBrowser.end()
	defer wholeBrowser.end()
	return m.M.Run()
}
