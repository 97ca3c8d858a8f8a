package terminal

import (
	"strings"
	"testing"
	"time"
)

func TestTimesAreRelativeOnATerminal(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for want, at := range map[string]time.Time{
		"now": now.Add(-time.Millisecond), "40s ago": now.Add(-40 * time.Second), "3m ago": now.Add(-3*time.Minute - 59*time.Second),
		"23h ago": now.Add(-24*time.Hour + 1), "29d ago": now.Add(-30*24*time.Hour + 1), "2026-01-01": now.Add(-30 * 24 * time.Hour),
		"in 2h": now.Add(2 * time.Hour), "in 1h 23m": now.Add(83 * time.Minute), "in 11h": now.Add(11*time.Hour + 5*time.Minute),
	} {
		if got := Ago(at, now); got != want {
			t.Errorf("%v is %q, want %q", at, got, want)
		}
	}
	if got := (Screen{}).Time(now, "exact"); got != "exact" {
		t.Errorf("a file has %q", got)
	}
}

func TestLinesFit(t *testing.T) {
	narrow, file := Screen{Width: 20}, Screen{}
	if got := narrow.FitBetween("7. ", strings.Repeat("x", 30), " 3m ago"); got != "7. "+"xxxxxxxxx…"+" 3m ago" {
		t.Errorf("%q", got)
	}
	if got := narrow.FitBetween("7. ", "日本語日本語日本語", " 3m ago"); got != "7. 日本語日… 3m ago" {
		t.Errorf("%q", got)
	}
	if got := narrow.FitBetween("7. ", "xxxxxxxxxx", strings.Repeat("y", 30)); got != "7. xxxxx…"+"yyyyyyyyyy…" {
		t.Errorf("%q", got)
	}
	if got := file.FitBetween("7. ", strings.Repeat("x", 30), " 3m ago"); len(got) != 40 {
		t.Errorf("%q", got)
	}
	columns := []Column{{Name: "ID"}, {Name: "TITLE", Shrink: true}, {Name: "AT"}}
	rows := [][]string{{"0123456789", "a long title", "now"}, {"1", "b", "40s ago"}}
	if got, want := file.Table(columns, rows, true), "ID          TITLE         AT\n0123456789  a long title  now\n1           b             40s ago"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, want := (Screen{Width: 28}).Table(columns, rows, false), "0123456789  a long…  now\n1           b        40s ago"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := (Screen{Color: true}).Paint(Wrong, "x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}

func TestLaterReadsMoments(t *testing.T) {
	now := time.Date(2026, 1, 31, 13, 0, 0, 0, time.FixedZone("", 3600))
	for words, want := range map[string]string{
		"2h": "2026-01-31T15:00:00+01:00", "3d": "2026-02-03T13:00:00+01:00", "14:00": "2026-01-31T14:00:00+01:00", "12:30": "2026-02-01T12:30:00+01:00",
		"tomorrow": "2026-02-01T09:00:00+01:00", "2026-03-01": "2026-03-01T09:00:00+01:00", "2026-03-01T12:00:00Z": "2026-03-01T12:00:00Z", "off": "0001-01-01T00:00:00Z",
		"1769864400": "2026-01-31T14:00:00+01:00", "1769864400000": "2026-01-31T14:00:00+01:00",
	} {
		if got, err := Later(words, now); err != nil || got.Format(time.RFC3339) != want && got.In(now.Location()).Format(time.RFC3339) != want {
			t.Errorf("%s is %s, %v; want %s", words, got.Format(time.RFC3339), err, want)
		}
	}
	for _, words := range []string{"", "d", "-2h", "99999d", "25:00", "soon", "2026-02-30", "17698644000", "-1769864400"} {
		if got, err := Later(words, now); err == nil {
			t.Errorf("%q is %s", words, got)
		}
	}
}

// TestFarTimeHasDateOfClock shows a time on a date that is another one in UTC.
func TestFarTimeHasDateOfClock(t *testing.T) {
	clock := time.FixedZone("", 3*3600)
	now := time.Date(2026, 6, 1, 0, 0, 0, 0, clock)
	if got := Ago(time.Date(2026, 1, 31, 1, 0, 0, 0, clock).UTC(), now); got != "2026-01-31" {
		t.Error(got)
	}
}

func TestMomentTellsWhatIsNotToday(t *testing.T) {
	s := Screen{Width: 80, Now: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}
	for want, at := range map[string]time.Time{
		"18:00": s.Now.Add(6 * time.Hour), "1 Feb 18:00": s.Now.Add(30 * time.Hour), "31 Jan 2027 12:00": s.Now.AddDate(1, 0, 0),
	} {
		if got := s.Moment(at, ""); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestNamesStayApart draws names that differ at their ends alone, on terminals of several widths: their ends stay, and other columns go before they
// are cut to nothing.
func TestNamesStayApart(t *testing.T) {
	columns := []Column{{Name: "NAME", Shrink: true, Ends: true}, {Name: "STATUS"}, {Name: "WAITING", Shrink: true, Spare: 1}, {Name: "AT", Spare: 2}}
	rows := [][]string{{"payments-checkout-worker-1", "Idle", "1 answer", "3m ago"}, {"日本語日本語日本語-2", "Idle", "-", "3m ago"}}
	for width, want := range map[int]string{
		80: "payments-checkout-worker-1  Idle  1 answer  3m ago\n日本語日本語日本語-2        Idle  -         3m ago",
		44: "payment…out-worker-1  Idle  1 answer  3m ago\n日本語日本語日本語-2  Idle  -         3m ago",
		30: "payments-…ckout-worker-1  Idle\n日本語日本語日本語-2      Idle",
		16: "pay…rker-1  Idle\n日…本語-2   Idle",
	} {
		if got := (Screen{Width: width}).Table(columns, rows, false); got != want {
			t.Errorf("%d:\n%s\nwant\n%s", width, got, want)
		}
	}
}
