package gateway

import (
	"testing"

	"go.uber.org/goleak"
)

// objectStoreLeft is a goroutine that the NATS client leaves behind, waiting for ever, where an object is stored so fast
// that the client cleans up after it before that goroutine has begun.
const objectStoreLeft = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(withBrowser{m}, goleak.IgnoreTopFunction(objectStoreLeft))
}

// withBrowser runs the tests and then ends the browser that they share, before leaks are looked for.
type withBrowser struct{ *testing.M }

func (m withBrowser) Run() int {
	defer packageBrowser.end()
	return m.M.Run()
}
