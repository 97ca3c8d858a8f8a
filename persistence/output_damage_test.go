package persistence

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLostOutputIsReported damages the output store in many places. The journal opens and stores more output. A reader gets one
// report of each loss.
func TestLostOutputIsReported(t *testing.T) {
	const many = 60
	base := testOptions(t)
	j := open(t, base)
	write := func(j *Journal, agent, n int) {
		t.Helper()
		if _, err := j.AppendOutput(t.Context(), mailboxID(agent), []byte(fmt.Sprintf("%d of agent %d %200d", n, agent, n))); err != nil {
			t.Fatal(err)
		}
	}
	for n := range many {
		write(j, 1, n)
		write(j, 2, n)
	}
	closeJournal(t, j)
	wrong := 0
	for i := range 15 {
		for _, how := range []string{"flipped", "cut", "flipped, index lost", "cut, index lost"} {
			o := copyJournal(t, base)
			folder := blockFolderOf(&o, o.outputName())
			rewrite(t, filepath.Join(folder, "1.blk"), func(b []byte) []byte {
				at := (2*i + 1) * len(b) / 30
				if how[0] == 'c' {
					return b[:at]
				}
				b[at] ^= 0x10
				return b
			})
			if strings.HasSuffix(how, "lost") {
				if err := os.Remove(filepath.Join(folder, serverState)); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			began := time.Now()
			j, err := Open(ctx, o)
			if took := time.Since(began); took > 2*listing {
				t.Errorf("%s %d: opening took %s", how, i, took)
			}
			if err != nil {
				t.Errorf("%s %d: %v", how, i, err)
				cancel()
				continue
			}
			for _, agent := range []int{1, 2} {
				write(j, agent, many)
				all, err := j.Output(ctx, mailboxID(agent), 0, 1000)
				if err != nil {
					t.Errorf("%s %d: %v", how, i, err)
				}
				kept, lost := 0, 0
				for _, p := range all {
					if p.Lost > 0 {
						lost++
					} else {
						kept++
					}
				}
				if gone := many + 1 - kept; (gone > 0) != (lost == 1) || lost > 1 {
					wrong++
					t.Logf("%s %d: %d pieces are lost, in %d reports", how, i, gone, lost)
				}
			}
			cancel()
			closeJournal(t, j)
		}
	}
	if wrong > 0 {
		t.Errorf("%d wrong reports", wrong)
	}
}
