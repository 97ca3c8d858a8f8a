package capabilities_test

import (
	"testing"

	"parley/capabilities"
)

func TestNesting(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `1`: 0, `{}`: 1, `{"a":[1,{"b":[]}]}`: 4, `"[[[["`: 0, `["\"[["]`: 1, `["\\",[]]`: 2, `]][`: 0,
	} {
		if got := capabilities.Nesting([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
