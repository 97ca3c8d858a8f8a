package mux

import (
	"testing"

	"parley"
)

// TestNobodySignsInOnAConnectionThatHasEnded ends a session while an agent signs in: it would be looked after for ever.
func TestNobodySignsInOnAConnectionThatHasEnded(t *testing.T) {
	s := &Session{under: map[uint64]*task{}}
	s.endAll()
	if n, err := s.admit(nil); parley.CodeOf(err) != parley.NotRunning {
		t.Errorf("%d, %v", n, err)
	}
}
