package persistence

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
)

// textsOf returns the texts of pieces. It fails the test if their cursors do not increase.
func textsOf(t *testing.T, pieces []OutputPiece, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(pieces))
	for i, p := range pieces {
		got[i] = string(p.Body)
		if i > 0 && p.Cursor <= pieces[i-1].Cursor {
			t.Fatalf("cursor %d comes after %d", p.Cursor, pieces[i-1].Cursor)
		}
	}
	return got
}

func TestLatestOutput(t *testing.T) {
	j := open(t, testOptions(t))
	if pieces, cursor, err := j.LatestOutput(t.Context(), mailboxID(1), 10); len(pieces) > 0 || cursor != 0 || err != nil {
		t.Fatalf("without output: %v, %d, %v", pieces, cursor, err)
	}
	last := map[int]uint64{}
	want := map[int][]string{}
	for i := range 400 { // one agent writes often, one rarely, one at the beginning only
		agent := 1
		switch {
		case i%37 == 0:
			agent = 2
		case i < 4:
			agent = 3
		}
		text := fmt.Sprint(i)
		cursor, err := j.AppendOutput(t.Context(), mailboxID(agent), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		last[agent], want[agent] = cursor, append(want[agent], text)
	}
	if pieces, cursor, err := j.LatestOutput(t.Context(), mailboxID(4), 10); len(pieces) > 0 || cursor != 0 || err != nil {
		t.Fatalf("of an agent without output: %v, %d, %v", pieces, cursor, err)
	}
	for agent, all := range want {
		whole, err := j.Output(t.Context(), mailboxID(agent), 0, 1000)
		if got := textsOf(t, whole, err); !slices.Equal(got, all) {
			t.Errorf("agent %d: got %v", agent, got)
		}
		for _, limit := range []int{0, 1, 2, 3, 10, 11, 12, 388, 1000} {
			pieces, cursor, err := j.LatestOutput(t.Context(), mailboxID(agent), limit)
			if got := textsOf(t, pieces, err); !slices.Equal(got, all[max(0, len(all)-limit):]) || cursor != last[agent] {
				t.Errorf("the last %d of agent %d: got %v up to %d, want up to %d", limit, agent, got, cursor, last[agent])
			}
		}
		for _, c := range []struct{ back, limit int }{{0, 3}, {1, 2}, {len(all) - 1, 5}, {len(all), 1}} { // before the one so far from the end
			whole, err := j.Output(t.Context(), mailboxID(agent), 0, 1000)
			at, end := uint64(1), max(0, len(all)-c.back)
			if end > 0 {
				at = last[agent] + 1
			}
			if end < len(all) {
				at = whole[end].Cursor
			}
			pieces, errBefore := j.OutputBefore(t.Context(), mailboxID(agent), at, c.limit)
			if got := textsOf(t, pieces, cmp.Or(err, errBefore)); !slices.Equal(got, all[max(0, end-c.limit):end]) {
				t.Errorf("agent %d before %d: got %v", agent, at, got)
			}
		}
		after, err := j.Output(t.Context(), mailboxID(agent), last[agent], 10)
		if got := textsOf(t, after, err); len(got) > 0 {
			t.Errorf("agent %d: %v comes after the end", agent, got)
		}
	}
}
