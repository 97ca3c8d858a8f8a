//go:build unix

package runtime

import (
	"testing"

	"parley/actors/runtime/proctest"
)

func TestMain(m *testing.M) { proctest.Main(m, map[string]func(){"node": playNode}) }
