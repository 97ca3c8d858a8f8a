//go:build unix

package acp

import (
	"testing"

	"parley/actors/runtime/proctest"
)

func TestMain(m *testing.M) { proctest.Main(m, map[string]func(){"agent": playAgent}) }
