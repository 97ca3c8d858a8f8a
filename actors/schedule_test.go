package actors

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/capabilities"
)

// TestSeriesOverSummerTime has the times of series on the days when clocks in Berlin are put forward and back: at certain hours each comes
// once, and of each hour none is left out and none waits.
func TestSeriesOverSummerTime(t *testing.T) {
	const forward, back = "2027-03-27T22:00:00Z", "2027-10-30T21:00:00Z" // 23:00 there, on the evening before
	for _, c := range []struct {
		every, after string
		want         []string
	}{
		{"30 2 * * *", forward, []string{"28 03:30 CEST", "29 02:30 CEST"}},
		{"30 2 * * *", back, []string{"31 02:30 CEST", "01 02:30 CET"}},
		{"0 3 * * *", forward, []string{"28 03:00 CEST", "29 03:00 CEST"}},
		{"0 3 * * *", back, []string{"31 03:00 CET", "01 03:00 CET"}},
		{"*/30 2 * * *", back, []string{"31 02:00 CEST", "31 02:30 CEST", "01 02:00 CET"}},
		{"*/30 2-3 * * *", forward, []string{"28 03:00 CEST", "28 03:30 CEST", "29 02:00 CEST"}},
		{"0 */3 * * *", back, []string{"31 00:00 CEST", "31 03:00 CET", "31 06:00 CET"}},
		{"15 * * * *", forward, []string{"27 23:15 CET", "28 00:15 CET", "28 01:15 CET", "28 03:15 CEST"}},
		{"15 * * * *", back, []string{"30 23:15 CEST", "31 00:15 CEST", "31 01:15 CEST", "31 02:15 CEST", "31 02:15 CET", "31 03:15 CET"}},
		{"@daily", forward, []string{"28 00:00 CET", "29 00:00 CEST"}},
		{"@every 90m", back, []string{"31 00:30 CEST", "31 02:00 CEST", "31 02:30 CET"}},
	} {
		berlin, err := zoneOf("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		from, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		at, got := capabilities.At(from), []string(nil)
		for range c.want {
			if at, err = nextTime(c.every, "Europe/Berlin", at); err != nil {
				t.Fatal(err)
			}
			got = append(got, at.Std().In(berlin).Format("02 15:04 MST"))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s after %s comes at %q, want %q", c.every, c.after, got, c.want)
		}
	}
}

// TestSundayIsSevenToo has series on weekdays with 7 for Sunday, as every cron has it, alone, in lists and in ranges.
func TestSundayIsSevenToo(t *testing.T) {
	from := capabilities.At(time.Date(2027, 6, 6, 12, 0, 0, 0, time.UTC)) // a Sunday
	for series, want := range map[string]string{
		"0 9 * * 7": "Sun Sun Sun", "0 9 * * 0": "Sun Sun Sun", "0 9 * * 5-7": "Fri Sat Sun", "0 9 * * fri-7": "Fri Sat Sun", "0 9 * * 1,7": "Mon Sun Mon",
		"0 9 * * 0-7": "Mon Tue Wed", "0 9 * * 1-7/3": "Mon Thu Sun", "0 9 * * 1-5": "Mon Tue Wed", "0 9 * * 7-7": "Sun Sun Sun",
	} {
		at, got := from, []string(nil)
		for range 3 {
			var err error
			if at, err = nextTime(series, "UTC", at); err != nil {
				t.Fatalf("%s: %v", series, err)
			}
			got = append(got, at.Std().Format("Mon"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s comes on %s, want %s", series, got, want)
		}
	}
	for _, series := range []string{"0 9 * * 8", "0 9 * * 7-8", "0 9 * * 7/2", "0 9 * * 17", "0 9 * * 8-7", "0 9 * * 1-7/0", "0 9 * * -7", "0 9 7 * 7-x"} {
		if at, err := nextTime(series, "UTC", from); err == nil {
			t.Errorf("%s comes at %s", series, at)
		}
	}
}
