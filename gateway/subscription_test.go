package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/capabilities"
)

func TestCursorMissesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	const messages = 7
	for i := range messages {
		if _, err := fae.Send(t.Context(), "HOST", fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	cursor := ""
	for i := range messages { // one by one, with a new connection for each
		k := h.dial("host")
		k.send(`{"type":"follow_messages","requestId":"r","subscriptionId":"s","cursor":"` + cursor + `"}`)
		want(t, k.receive(), `"type":"subscribed"`, `"requestId":"r"`)
		f := k.receiveMembers()
		if got := f["message"].(map[string]any)["text"]; got != fmt.Sprint(i) {
			t.Fatalf("message %d: got %v after cursor %s", i, got, cursor)
		}
		cursor = f["cursor"].(string)
		if i == 3 { // what was shown changes, while the rest of the batch is still to be shown
			if err := h.node.Host().Dismiss(t.Context(), capabilities.FormNumber(1)); err != nil {
				t.Fatal(err)
			}
			k.send(`{"type":"follow_messages","subscriptionId":"all","all":true,"cursor":"` + cursor + `"}`)
			var seen []string
			for len(seen) < 7 {
				f := k.receiveMembers()
				m := f["message"].(map[string]any)
				seen = append(seen, fmt.Sprint(f["subscriptionId"], m["text"], m["dismissed"]))
			}
			for _, s := range []string{"all4false", "all5false", "all6false", "all1true", "s4false"} {
				if n := strings.Count(" "+strings.Join(seen, " ")+" ", " "+s+" "); n != 1 {
					t.Errorf("%s came %d times in %v", s, n, seen)
				}
			}
		}
		k.disconnect()
	}
	k := h.dial("host")
	k.send(`{"type":"follow_messages","subscriptionId":"s","cursor":"` + cursor + `"}`)
	if _, err := fae.Send(t.Context(), "HOST", "new"); err != nil {
		t.Fatal(err)
	}
	want(t, k.receive(), `"text":"new"`)
	k.send(`{"type":"unsubscribe","requestId":"u","subscriptionId":"s"}`)
	want(t, k.receive(), `"type":"unsubscribed"`, `"subscriptionId":"s"`)
	if _, err := fae.Send(t.Context(), "HOST", "newer"); err != nil {
		t.Fatal(err)
	}
	k.send(`{"type":"list_names_request"}`)
	want(t, k.receive(), "list_names_response")
}

// TestCursorWithRestRepeatsNothing cuts off in the middle of a batch, has some of its rest change and more come, and cuts off
// again after each message of what is told then.
func TestCursorWithRestRepeatsNothing(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	fae := h.guest("fae")
	send := func(text string) {
		t.Helper()
		if _, err := fae.Send(t.Context(), "HOST", text); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		send(fmt.Sprint(i))
	}
	// read follows from a cursor, and gives what so many frames say and the cursor of the last.
	read := func(from string, count int, then func()) (told []string, cursor string) {
		t.Helper()
		k := h.dial("host")
		defer k.disconnect()
		k.send(`{"type":"follow_messages","subscriptionId":"s","all":true,"cursor":"` + from + `"}`)
		for cursor = from; len(told) < count; {
			f := k.receiveMembers()
			m, _ := f["message"].(map[string]any)
			told, cursor = append(told, fmt.Sprint(m["text"], m["dismissed"])), f["cursor"].(string)
		}
		if then != nil {
			then()
			m, _ := k.receiveMembers()["message"].(map[string]any)
			told = append(told, fmt.Sprint(m["text"], m["dismissed"]))
		}
		return told, cursor
	}
	_, middle := read("", 3, nil)
	if err := h.node.Host().Dismiss(t.Context(), capabilities.FormNumber(4)); err != nil {
		t.Fatal(err)
	}
	send("6")
	want := []string{"3false", "4true", "5false", "6false"}
	for cut := range len(want) + 1 {
		first, cursor := read(middle, cut, nil)
		end := fmt.Sprint(7 + cut)
		rest, _ := read(cursor, len(want)-cut, func() { send(end) }) // whatever is told twice is told before the end
		told := append(first, rest...)
		want = append(want, end+"false")
		slices.Sort(told)
		slices.Sort(want)
		if !slices.Equal(told, want) {
			t.Errorf("cut after %d, at %s: got %v, want %v", cut, cursor, told, want)
		}
	}
}
