package api

import (
	"testing"
)

func TestPositionRoundTrip(t *testing.T) {
	for _, p := range []Position{{}, {seen: 7}, {1, 5, 0}, {0, 5, 3}} {
		if got, err := ParsePosition(p.String()); err != nil || got != p {
			t.Errorf("%v: %v %v", p, got, err)
		}
	}
	for _, s := range []string{"x", "1.2", "1.2.3.4", "5.3.1", "01", "-1", "1.0.0", " 1"} {
		if p, err := ParsePosition(s); err == nil {
			t.Errorf("%q is read as %v", s, p)
		}
	}
}
