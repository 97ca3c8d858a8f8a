package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// slowly yields pieces of a mebibyte, one each 100 ms.
type slowly struct{ pieces int }

func (s *slowly) Read(b []byte) (int, error) {
	if s.pieces == 0 {
		return 0, io.EOF
	}
	s.pieces--
	time.Sleep(100 * time.Millisecond) // virtual
	return len(b), nil
}

// TestProgressIsShownOfWhatTakesLong copies for 2 s: there is nothing to see for the first second, then a line that changes five
// times a second and is cleared. What takes less shows nothing.
func TestProgressIsShownOfWhatTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for pieces, want := range map[int]int{9: 0, 20: 6} {
			var out bytes.Buffer
			p := &progress{out: &out, what: "restored", next: time.Now().Add(progressAfter)}
			r := progressReader{p, &slowly{pieces}}
			for b := make([]byte, 1<<20); ; {
				if _, err := r.Read(b); err != nil {
					break
				}
			}
			p.end()
			text := out.String()
			if shown := strings.Count(text, "restored "); shown != want {
				t.Errorf("of %d pieces it was shown %d times, and not %d: %q", pieces, shown, want, text)
			}
			if want > 0 && (!strings.Contains(text, "restored 20.0 MiB") || !strings.HasSuffix(text, "\r\x1b[K")) {
				t.Errorf("%q", text)
			}
		}
	})
}
