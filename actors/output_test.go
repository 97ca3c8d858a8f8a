package actors

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/actors/runtime"
	"parley/actors/view"
	"parley/capabilities"
)

// maxOutputPieces is the number of output pieces that a node keeps of each agent.
const maxOutputPieces = 2048

// TestOutputKeepsNewestPieces writes more output than a node keeps. The newest pieces remain in order, can be read in pages,
// and survive a restart.
func TestOutputKeepsNewestPieces(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openNode(t, folder)
	loud, quiet := guest(t, n, "loud"), guest(t, n, "quiet")
	write := func(a *Agent, text string) {
		if err := a.Output().write(t.Context(), view.OutputPiece{Stream: "output", Text: text}); err != nil {
			t.Error(err)
		}
	}
	write(loud, "first of all")
	write(quiet, "one")
	var writers sync.WaitGroup
	for w := range 256 {
		writers.Go(func() {
			for i := range maxOutputPieces / 256 {
				write(loud, fmt.Sprint(w, " ", i))
			}
		})
	}
	writers.Wait()
	write(quiet, "two")

	check := func() []view.OutputPiece {
		t.Helper()
		all, err := loud.Output().Since(t.Context(), 0, math.MaxInt)
		if err != nil || len(all) != maxOutputPieces {
			t.Fatalf("%d pieces, %v", len(all), err)
		}
		next := map[string]int{} // each writer's pieces are in order
		var paged []view.OutputPiece
		for i, p := range all {
			if i > 0 && p.Cursor <= all[i-1].Cursor {
				t.Fatalf("cursor %d after %d", p.Cursor, all[i-1].Cursor)
			}
			writer, count, _ := strings.Cut(p.Text, " ")
			if count != fmt.Sprint(next[writer]) {
				t.Fatalf("%s at %d", p.Text, next[writer])
			}
			next[writer]++
		}
		for cursor := uint64(0); ; cursor = paged[len(paged)-1].Cursor {
			page, err := loud.Output().Since(t.Context(), cursor, 500)
			if err != nil || len(page) > 500 {
				t.Fatalf("%d pieces, %v", len(page), err)
			}
			if len(page) == 0 {
				break
			}
			paged = append(paged, page...)
		}
		if len(paged) != len(all) || paged[len(paged)-1] != all[len(all)-1] {
			t.Fatalf("%d pieces in pages, %d at once", len(paged), len(all))
		}
		if other := outputOf(t, quiet); other != "onetwo" {
			t.Errorf("the other has %q", other)
		}
		return all
	}
	before := check()
	closeNode(t, n)
	n = openNode(t, folder)
	loud, quiet = &Agent{node: n, id: loud.id}, &Agent{node: n, id: quiet.id}
	after := check()
	if before[0] != after[0] || before[len(before)-1] != after[len(after)-1] {
		t.Error("a restart changes the output")
	}
}

func TestOutputFollowerIsWoken(t *testing.T) {
	n := openNode(t, t.TempDir())
	g := newBarrier(t)
	a := newShellAgent(t, n, "w", "echo one; "+g.wait()+"; echo two")
	prompt(t, a, "go")
	var text string
	for cursor := uint64(0); !strings.HasSuffix(text, "two"); {
		if last, err := a.Output().Beyond(t.Context(), cursor); err != nil || last <= cursor {
			t.Fatalf("woken at %d behind %d, %v", last, cursor, err)
		}
		pieces, err := a.Output().Since(t.Context(), cursor, 10)
		if err != nil || len(pieces) == 0 {
			t.Fatalf("got %v, %v", pieces, err)
		}
		for _, p := range pieces {
			text += strings.TrimSpace(p.Text)
			cursor = p.Cursor
		}
		if text == "one" {
			g.open()
		}
	}
	if text != "onetwo" {
		t.Errorf("got %q", text)
	}
	waitForFinish(t, a, view.FinishIdle)
	ended, end := context.WithCancel(t.Context())
	end()
	if last, err := a.Output().Beyond(ended, math.MaxUint32); err != nil || last != math.MaxUint32 {
		t.Errorf("a cancelled call gets %d, %v", last, err)
	}
}

// TestLongestOutputCanBeStored writes the longest pieces, of the characters with the longest encodings.
func TestLongestOutputCanBeStored(t *testing.T) {
	n := openNode(t, t.TempDir())
	a := guest(t, n, "w")
	for _, unit := range []string{"\x01", "<", "\u2028", "\"", "x"} {
		text := strings.Repeat(unit, runtime.MaxText/len(unit))
		if err := a.Output().write(t.Context(), view.OutputPiece{Run: capabilities.ID{}, Stream: "output", Text: text}); err != nil {
			t.Errorf("%d times %q: %v", len(text), unit, err)
			continue
		}
		if kept := outputOf(t, a); !strings.HasSuffix(kept, text) {
			t.Errorf("%d times %q is stored differently", len(text), unit)
		}
	}
}

// TestLostOutputIsReportedOnce damages the output store between two pieces of a program.
func TestLostOutputIsReportedOnce(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	a := guest(t, n, "a")
	for i := range 9 {
		if err := a.Output().write(t.Context(), view.OutputPiece{Stream: "output", Text: fmt.Sprintf("line %d\n", i)}); err != nil {
			t.Fatal(err)
		}
	}
	closeNode(t, n)
	blocks, err := filepath.Glob(filepath.Join(folder, "journal", "jetstream", "$G", "streams", "PARLEY_OUT_*", "msgs", "1.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	b, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	b[bytes.Index(b, []byte("line 4"))] ^= 1
	if err := os.WriteFile(blocks[0], b, 0o600); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, folder)
	a = &Agent{node: n, id: a.id}
	all, err := a.Output().Since(t.Context(), 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	reports := 0
	for _, p := range all {
		if strings.Contains(p.Text, "was lost") {
			reports++
		}
	}
	if reports != 1 {
		t.Fatalf("it is reported %d times: %+v", reports, all)
	}
	if more, err := a.Output().Since(t.Context(), all[len(all)-1].Cursor, 100); err != nil || len(more) > 0 {
		t.Errorf("after the end: %+v, %v", more, err)
	}
}
