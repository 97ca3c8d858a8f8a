package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/gateway/client"
)

// putOut returns the output of an agent's program after a cursor.
func putOut(t *testing.T, c *client.Client, agent string, after uint64) string {
	t.Helper()
	var all strings.Builder
	for piece, err := range c.Output(t.Context(), agent, after) {
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(piece.Text)
	}
	return all.String()
}

// TestFollowOutputSurvivesRestart follows the output of three runs over cut connections and a killed node.
func TestFollowOutputSurvivesRestart(t *testing.T) {
	h, host, fae := openTest(t)
	id := worker(t, host, newWorker{Name: "w"}, `read prompt; case "$prompt" in *oops*) echo oops >&2; exit 1;; esac; for i in 1 2 3; do echo "$i"; sleep 0.1; done`)
	cut := openCuttingProxy(t, h.address, "/read_output")
	watcher, err := client.Connect(t.Context(), client.Options{URL: cut.url, Token: hostToken(t, host)})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Close()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	type end struct {
		pieces []client.Output
		err    error
	}
	followed := make(chan end, 1)
	go func() {
		var e end
		for piece, err := range watcher.FollowOutput(ctx, "w", 0) {
			if e.err = err; err != nil || piece.Stream == "errors" {
				e.pieces = append(e.pieces, piece)
				break
			}
			e.pieces = append(e.pieces, piece)
		}
		followed <- e
	}()
	prompt(t, host, "w", "go")
	finishes(t, host, "w", client.Idle)
	cut.cuts.Store(2)
	prompt(t, host, "w", "again")
	finishes(t, host, "w", client.Idle)
	h.kill()
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	prompt(t, host, "w", "oops")
	finishes(t, host, "w", client.Failed)
	e := <-followed
	if e.err != nil {
		t.Fatal(e.err)
	}
	if cut.cuts.Load() >= 0 {
		t.Error("nothing was cut")
	}
	var said strings.Builder
	runs := map[client.ID]bool{}
	for i, piece := range e.pieces {
		said.WriteString(piece.Text)
		runs[piece.Run] = true
		if piece.At.IsZero() || i > 0 && piece.Cursor <= e.pieces[i-1].Cursor {
			t.Errorf("piece %d is %+v", i, piece)
		}
	}
	const want = "1\n2\n3\n1\n2\n3\noops\n"
	if said.String() != want || len(runs) != 3 {
		t.Errorf("it was told %q of %d runs", said.String(), len(runs))
	}
	if got := putOut(t, host, string(id), 0); got != want {
		t.Errorf("it put out %q", got)
	}
	for i, piece := range e.pieces { // a follower resumes at its cursor
		var rest strings.Builder
		for _, later := range e.pieces[i+1:] {
			rest.WriteString(later.Text)
		}
		if got := putOut(t, host, "w", piece.Cursor); got != rest.String() {
			t.Errorf("after %d: %q, want %q", piece.Cursor, got, rest.String())
		}
	}
	for which, by := range map[string]*client.Client{string(id): fae, "nobody": host} {
		for _, err := range by.FollowOutput(t.Context(), which, 0) {
			if parley.CodeOf(err) != parley.AgentNotFound {
				t.Errorf("%s: %v", which, err)
			}
		}
	}
	short, stop := context.WithTimeout(t.Context(), pause)
	defer stop()
	for piece, err := range host.FollowOutput(short, "w", e.pieces[len(e.pieces)-1].Cursor) {
		if parley.CodeOf(err) != parley.Timeout {
			t.Errorf("more comes: %+v %v", piece, fmt.Sprint(err))
		}
	}
}

func TestOutputIsReadFromItsEnd(t *testing.T) {
	_, host, _ := openTest(t)
	worker(t, host, newWorker{Name: "w"}, `echo first`)
	if pieces, cursor, err := host.OutputTail(t.Context(), "w", 5); err != nil || len(pieces) != 0 || cursor != 0 {
		t.Fatalf("before there is any: %v %d %v", pieces, cursor, err)
	}
	for range 3 {
		prompt(t, host, "w", "go")
		finishes(t, host, "w", client.Idle)
	}
	pieces, cursor, err := host.OutputTail(t.Context(), "w", 2)
	if err != nil || len(pieces) != 2 || pieces[1].Cursor != cursor || pieces[1].Text != "first\n" || pieces[1].Message == "" {
		t.Fatalf("the end: %+v %d %v", pieces, cursor, err)
	}
	if pieces, at, err := host.OutputTail(t.Context(), "w", 0); err != nil || len(pieces) != 0 || at != cursor {
		t.Fatalf("the cursor alone: %v %d %v", pieces, at, err)
	}
	if rest := putOut(t, host, "w", cursor); rest != "" {
		t.Errorf("after the end there is %q", rest)
	}
}
