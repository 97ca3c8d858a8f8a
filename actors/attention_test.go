package actors

import (
	"testing"
	"time"

	"parley"
	"parley/capabilities"
)

// TestQuietIsInItsZone has hours of quiet begin and end by the clock of their zone, also when that is changed.
func TestQuietIsInItsZone(t *testing.T) {
	t.Parallel()
	a := parley.Attention{Quiet: "22:00-07:00", Zone: "Europe/Berlin"}
	for _, c := range []struct{ now, until string }{
		{"2026-07-01T19:59:00Z", ""},
		{"2026-07-01T20:00:00Z", "2026-07-02T05:00:00Z"},
		{"2026-12-01T20:59:59Z", ""},
		{"2026-12-01T21:00:00Z", "2026-12-02T06:00:00Z"},
		{"2026-03-28T22:00:00Z", "2026-03-29T05:00:00Z"}, // summer time begins that night
		{"2026-12-02T06:00:00Z", ""},
	} {
		now, err := time.Parse(time.RFC3339, c.now)
		if err != nil {
			t.Fatal(err)
		}
		quiet, until := quietAt(a, capabilities.At(now))
		got := ""
		if quiet {
			got = until.Std().UTC().Format(time.RFC3339)
		}
		if got != c.until {
			t.Errorf("at %s it is quiet until %q, want %q", c.now, got, c.until)
		}
	}
	if quiet, until := quietAt(parley.Attention{Quiet: parley.QuietAlways}, 0); !quiet || until != 0 {
		t.Error("always is not always")
	}
}
