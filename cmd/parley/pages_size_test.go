package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"parley/gateway/api"
	"parley/gateway/client"
)

// TestListsOfSeveralPagesArePrintedWhole lists more items than a page has.
func TestListsOfSeveralPagesArePrintedWhole(t *testing.T) {
	t.Parallel()
	state := nodeTest(t)
	c := onceClient(t, state)
	if err := c.Call(t.Context(), "make_agent", api.MakeAgentRequest{Name: "fae"}, nil); err != nil {
		t.Fatal(err)
	}
	const names = 1100 // a page has 1,000
	for i := range names {
		if err := api.StoreName.Run(t.Context(), c, api.StoreNameRequest{Name: fmt.Sprintf("name-%04d", i), Value: json.RawMessage(strconv.Itoa(i))}); err != nil {
			t.Fatal(err)
		}
	}
	const messages = 15 // of 100 KiB, about five of which fit a page
	for range messages {
		if _, err := c.Send(t.Context(), "fae", client.Post{Text: strings.Repeat("x", 100<<10)}); err != nil {
			t.Fatal(err)
		}
	}
	lines := func(want int, args ...string) {
		t.Helper()
		out, errs, exit := runTest(t.Context(), state, nil, args...)
		if got := strings.Count(out, "\n"); exit != 0 || got != want {
			t.Errorf("parley %s: %d lines, want %d: %s", strings.Join(args, " "), got, want, errs)
		}
	}
	lines(names+3, "names") // with fae, @self and @host
	lines(messages, "inbox", "--as", "fae")
	lines(messages+1, "log", "--agent", "fae", "--json") // and the agent's creation
	held, err := c.Names(t.Context(), "")
	if err != nil || len(held) < names {
		t.Errorf("%d names: %v", len(held), err)
	}
	all := 0
	for m, err := range c.List(t.Context(), client.View{All: true}) {
		if err != nil || m.Number != uint64(all) {
			t.Fatalf("%d: %v", m.Number, err)
		}
		all++
	}
	if all != messages {
		t.Errorf("%d messages", all)
	}
}
