package parley_test

import (
	"testing"

	"parley"
	"parley/events"
)

func TestQuietHoursAreOfADay(t *testing.T) {
	for _, c := range []struct {
		quiet  string
		minute int
		want   int
	}{
		{"", 0, 0},
		{parley.QuietAlways, 700, -1},
		{"22:00-07:00", 22 * 60, 9 * 60},
		{"22:00-07:00", 0, 7 * 60},
		{"22:00-07:00", 7*60 - 1, 1},
		{"22:00-07:00", 7 * 60, 0},
		{"22:00-07:00", 12 * 60, 0},
		{"12:00-13:30", 12*60 + 29, 61},
		{"12:00-13:30", 11*60 + 59, 0},
	} {
		if got := parley.QuietFor(c.quiet, c.minute); got != c.want {
			t.Errorf("%q at minute %d goes on for %d minutes, want %d", c.quiet, c.minute, got, c.want)
		}
	}
	for _, bad := range []string{"", "22:00", "22-07", "24:00-07:00", "22:60-07:00", "22:00-22:00", "+2:00-07:00", "22:00-07:00-08:00", "always-never"} {
		if _, _, err := parley.QuietHours(bad); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestInterruptionsAreOfAPriority(t *testing.T) {
	all := []parley.Priority{events.Urgent, events.Normal, "", events.Low}
	for set, want := range map[string][]bool{
		"":                     {true, false, false, false},
		"normal":               {true, true, true, false},
		"low":                  {true, true, true, true},
		parley.NoInterruptions: {false, false, false, false},
	} {
		for i, p := range all {
			if got := parley.MayInterrupt(set, p); got != want[i] {
				t.Errorf("with %q, a message of priority %q: %v", set, p, got)
			}
		}
	}
}
