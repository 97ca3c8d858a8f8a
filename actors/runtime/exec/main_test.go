//go:build unix

package exec

import (
	"testing"

	"parley/actors/runtime/proctest"
)

func TestMain(m *testing.M) {
	proctest.Main(m, map[string]func(){
		"echo":       playEcho,
		"grandchild": playGrandchild,
		"stubborn":   playStubborn,
		"flood":      playFlood,
		"many":       playMany,
		"deaf":       playUnread,
	})
}
