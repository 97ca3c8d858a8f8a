package capabilities

import (
	"testing"
	"time"
)

// A span has no units that are 0, and time.ParseDuration reads it as the same one.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 250 * time.Millisecond: "250ms", 10 * time.Second: "10s", time.Minute: "1m", 10 * time.Minute: "10m", 90 * time.Second: "1m30s",
		time.Hour: "1h", 100 * time.Hour: "100h", 90 * time.Minute: "1h30m", time.Hour + time.Second: "1h0m1s", 168 * time.Hour: "168h", -time.Minute: "-1m",
	} {
		if got := Span(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
		if again, err := time.ParseDuration(want); err != nil || again != d {
			t.Errorf("%q is read as %v, %v", want, again, err)
		}
	}
}
