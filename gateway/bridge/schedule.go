package bridge

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"time"

	"parley/capabilities"
)

// waits are the times between the tries to tell the same, over four days. The last try is the one after the last.
var waits = []time.Duration{
	5 * time.Second, 30 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour, 24 * time.Hour,
}

// Schedule counts the tries to tell a receiver one thing, over four days.
type Schedule struct {
	Since capabilities.Time `json:"since"` // of the first try
	Tries int               `json:"tries"`

	tried bool // by this process: the first try after a restart is at once
}

// Due returns when the next try is due; 0 for now. It reports false if there is no further try. The key is the same for
// all tries.
func (s *Schedule) Due(key string, now capabilities.Time) (at capabilities.Time, more bool) {
	at, more = next(key, s.Since, s.Tries)
	if !more || s.Tries > 0 && s.tried && at > now {
		return at, more
	}
	return 0, true
}

// Begin counts a try.
func (s *Schedule) Begin() {
	s.Tries++
	s.tried = true
}

// After returns when to look at the schedule again after a try that failed. It is later than now.
func (s *Schedule) After(key string, now capabilities.Time) capabilities.Time {
	at, _ := next(key, s.Since, s.Tries)
	return max(at, now+1)
}

// next returns when something is tried again after so many tries, from the time of the first. The jitter of up to a tenth
// follows from the key, so a restart changes no time. It reports false if there is no further try.
func next(key string, since capabilities.Time, tries int) (capabilities.Time, bool) {
	if tries > len(waits) {
		return 0, false
	}
	at := since
	for i, w := range waits[:tries] {
		sum := sha256.Sum256([]byte(key + "/" + strconv.Itoa(i)))
		at = at.Add(w + time.Duration(binary.BigEndian.Uint32(sum[:])%1000)*w/10_000)
	}
	return at, true
}
