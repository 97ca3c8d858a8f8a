package actors

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// hostWithMessages opens a node whose host has messages from fae.
func hostWithMessages(t *testing.T, messages, size int) (host, fae *Agent) {
	t.Helper()
	n := openNode(t, t.TempDir())
	host = n.Host()
	fae, err := host.Make(t.Context(), NewAgent{Kind: events.Guest, Name: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		if _, err := fae.Send(t.Context(), "HOST", fmt.Sprint("m", i, strings.Repeat("x", size))); err != nil {
			t.Fatal(err)
		}
	}
	return host, fae
}

// readSince reads all pages of changes after a cursor, and returns the messages' numbers in order.
func readSince(t *testing.T, a *Agent, v view.MessageFilter, cursor uint64) (numbers []uint64, pages int, end uint64) {
	t.Helper()
	for {
		in, err := a.Mail().Since(t.Context(), v, cursor)
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Messages) == 0 {
			return numbers, pages, in.Cursor
		}
		text, err := json.Marshal(in.Messages)
		if err != nil {
			t.Fatal(err)
		}
		if len(in.Messages) > 1 && len(text) > maxListed+len(in.Messages)+2 || len(in.Messages) > maxChanges {
			t.Errorf("%d messages of %d bytes at once", len(in.Messages), len(text))
		}
		for i, e := range in.Messages {
			numbers = append(numbers, e.Number)
			if i > 0 && e.Number <= numbers[len(numbers)-2] || e.Changed <= cursor || e.Changed > in.Cursor {
				t.Fatalf("message %d, changed at %d, after %d up to %d", e.Number, e.Changed, cursor, in.Cursor)
			}
		}
		if in.Cursor <= cursor {
			t.Fatalf("from %d to %d", cursor, in.Cursor)
		}
		cursor, pages = in.Cursor, pages+1
	}
}

func TestSinceReturnsEachChangeOnce(t *testing.T) {
	t.Parallel()
	const messages = 2*maxChanges + 50
	host, fae := hostWithMessages(t, messages, 0)
	numbers, pages, end := readSince(t, host, view.MessageFilter{All: true}, 0)
	if len(numbers) != messages || pages != 3 {
		t.Fatalf("%d messages on %d pages", len(numbers), pages)
	}
	for i, n := range numbers {
		if n != uint64(i) {
			t.Fatalf("message %d comes as %d", n, i)
		}
	}
	for _, n := range []int{7, 900, 3} {
		if err := host.Dismiss(t.Context(), capabilities.FormNumber(uint64(n))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fae.Send(t.Context(), "HOST", "one more"); err != nil {
		t.Fatal(err)
	}
	if numbers, _, _ := readSince(t, host, view.MessageFilter{All: true}, end); fmt.Sprint(numbers) != fmt.Sprint([]int{3, 7, 900, messages}) {
		t.Errorf("afterwards: %v", numbers)
	}
	numbers, _, _ = readSince(t, host, view.MessageFilter{All: true}, 0)
	seen := map[uint64]bool{}
	for _, n := range numbers {
		if seen[n] {
			t.Errorf("%d twice", n)
		}
		seen[n] = true
	}
	if len(seen) != messages+1 {
		t.Errorf("%d messages", len(seen))
	}
	if numbers, _, _ := readSince(t, host, view.MessageFilter{Pending: true}, 0); len(numbers) != 0 {
		t.Errorf("%v are pending", numbers)
	}
}

func TestListsAreBoundedByBytes(t *testing.T) {
	const messages = 20
	host, _ := hostWithMessages(t, messages, 100<<10)
	if numbers, pages, _ := readSince(t, host, view.MessageFilter{}, 0); len(numbers) != messages || pages < 4 {
		t.Errorf("%d messages on %d pages", len(numbers), pages)
	}
	seen := 0
	for e, err := range host.Mail().All(t.Context(), view.MessageFilter{}) {
		if err != nil || e.Number != uint64(seen) {
			t.Fatalf("%d: %v", e.Number, err)
		}
		seen++
	}
	if seen != messages {
		t.Errorf("%d messages", seen)
	}
	in, err := host.Mail().Page(t.Context(), view.MessageFilter{}, 0, 1000)
	if err != nil || in.Next == 0 || len(in.Messages) > 5 {
		t.Errorf("%d on the first page, the next begins with %d: %v", len(in.Messages), in.Next, err)
	}
}
