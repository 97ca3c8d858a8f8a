package actors

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/internal/eventually"
)

// TestGrowthOfARestart kills a node after the same work for few agents and for many. What it then takes to read all
// mailboxes depends on the work, and not on how many agents had a part in each commit.
func TestGrowthOfARestart(t *testing.T) {
	const cycles = 6144
	few, many := bytesOfARestart(t, 8, cycles), bytesOfARestart(t, 128, cycles)
	t.Logf("%d and %d KiB allocated for 8 and 128 agents", few>>10, many>>10)
	if many > 3*few {
		t.Errorf("to read 128 mailboxes took %d KiB, and 8 with as many events %d KiB", many>>10, few>>10)
	}
}

// bytesOfARestart has each agent ask and answer itself at once with the others. It returns the bytes that are allocated
// when a copy of the log, as a kill would leave it, is opened and all mailboxes are read.
func bytesOfARestart(t *testing.T, agents, cycles int) uint64 {
	t.Helper()
	folder := t.TempDir()
	n := openNode(t, folder)
	all := make([]*Agent, agents)
	for i := range all {
		all[i] = guest(t, n, fmt.Sprint("agent-", i))
	}
	var work sync.WaitGroup
	for _, a := range all {
		work.Go(func() {
			for range cycles / agents {
				asked, err := a.Ask(t.Context(), parley.Form{To: "@self", Description: "what?", Fields: textField("a")})
				if err == nil {
					_, err = a.Answer(t.Context(), capabilities.FormID(asked.Form), parley.Answer{Values: map[string]capabilities.Value{"a": capabilities.String(strings.Repeat("b", 2000))}})
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	var killed string
	eventually.Holds(t, "no group is written", func() bool { // a file that is replaced meanwhile cannot be copied
		killed = t.TempDir()
		return os.CopyFS(killed, os.DirFS(folder)) == nil && os.Chmod(killed, 0o700) == nil && os.Chmod(killed+"/node.key", 0o600) == nil
	})
	closeNode(t, n)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n = openNode(t, killed)
	for _, a := range all {
		if _, _, err := n.replay(t.Context(), a.ID()); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
