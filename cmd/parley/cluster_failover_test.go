package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/internal/eventually"
)

// takeOver bounds the interruption after a node's process is killed.
const takeOver = 10 * time.Second

func median(d []time.Duration) time.Duration {
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2]
}

// TestStandbyTakesOverOnACluster repeatedly kills the process that runs a node, under load. The standby takes over in
// time with all acknowledged events, and the killed process returns as the standby.
func TestStandbyTakesOverOnACluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	node, standby, _ := c.pair(t)
	l := startLoad(t, node, standby)
	var took []time.Duration
	for range nightly(2, 12) {
		l.more(t, 50+rand.Int64N(100))
		took = append(took, l.gap(t, node.kill))
		standby.runs(t)
		node.start(t)
		node.waits(t)
		node, standby = standby, node
	}
	l.more(t, 50)
	l.end()
	l.check(t, node)
	t.Logf("%d acknowledged, none lost; taken over after %v, median %v", l.acks.Load(), took, median(took))
	if longest := slices.Max(took); longest > takeOver {
		t.Errorf("taken over after %v, want at most %v", longest, takeOver)
	}
}

// TestStandbyTakesOverFromLostMachine kills the node's process together with the server that leads its journal, as if
// both were on one machine. The other servers elect leaders before the standby can begin.
func TestStandbyTakesOverFromLostMachine(t *testing.T) {
	if os.Getenv("PARLEY_NIGHTLY") == "" {
		t.Skip("by night")
	}
	t.Parallel()
	c := startCluster(t)
	node, standby, status := c.pair(t)
	l := startLoad(t, node, standby)
	var took []time.Duration
	for round := range nightly(1, 10) {
		l.more(t, 50+rand.Int64N(100))
		stream := "PARLEY_" + status.Node.String()
		if round%2 == 1 {
			stream = "KV_" + stream + "_lease"
		}
		i := c.leader(t, stream)
		took = append(took, l.gap(t, func() {
			c.servers[i].kill()
			node.kill()
		}))
		standby.runs(t)
		c.start(t, i)
		eventually.Holds(t, "the server has caught up", attempt(t, func(ctx context.Context) bool { return c.isWhole(ctx, status) }))
		node.start(t)
		node.waits(t)
		node, standby = standby, node
	}
	l.end()
	l.check(t, node)
	t.Logf("%d acknowledged, none lost; taken over after %v, median %v", l.acks.Load(), took, median(took))
}

// TestAttachmentsGoOverToTheStandby attaches a file on one machine, and kills that node with the server that leads its journal. The standby
// has the file, whole, and takes the next one.
func TestAttachmentsGoOverToTheStandby(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	node, standby, status := c.pair(t)
	folder := t.TempDir()
	for round := range 2 {
		content := strings.Repeat(fmt.Sprintf("line %d of the log\n", round), 100_000) // of several parts
		file := filepath.Join(folder, fmt.Sprintf("build-%d.log", round))
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		message := node.must(t, "", "send", "SELF", "the log", "--attach", file)
		i := c.leader(t, "PARLEY_"+status.Node.String())
		c.servers[i].kill()
		node.kill()
		standby.runs(t)
		saved := filepath.Join(folder, fmt.Sprintf("saved-%d", round))
		eventually.Holds(t, "the standby has the file", func() bool { // its servers choose a leader first
			out, errs, exit := runTest(t.Context(), standby.folder, nil, "show", message, "--save", saved)
			if exit != exitDone && !strings.Contains(errs, string(parley.ReadOnly)) {
				t.Fatalf("parley show: exit %d\n%s%s", exit, out, errs)
			}
			return exit == exitDone
		})
		if got, err := os.ReadFile(filepath.Join(saved, filepath.Base(file))); err != nil || string(got) != content {
			t.Fatalf("the standby has %d bytes of %d: %v", len(got), len(content), err)
		}
		c.start(t, i)
		eventually.Holds(t, "the server has caught up", attempt(t, func(ctx context.Context) bool { return c.isWhole(ctx, status) }))
		standby.verify(t)
		node.start(t)
		node.waits(t)
		node, standby = standby, node
	}
}

// TestNodeSurvivesLossOfJournalLeader kills the server alone. The node accepts nothing for a while and then continues.
func TestNodeSurvivesLossOfJournalLeader(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	node := c.folderOf(t, nil)
	node.start(t)
	status := node.runs(t)
	l := startLoad(t, node)
	var gaps []time.Duration
	for range nightly(1, 15) {
		l.more(t, 50+rand.Int64N(100))
		i := c.leader(t, "PARLEY_"+status.Node.String())
		gaps = append(gaps, l.gap(t, c.servers[i].kill))
		c.start(t, i)
		eventually.Holds(t, "the server has caught up", attempt(t, func(ctx context.Context) bool { return c.isWhole(ctx, status) }))
	}
	l.more(t, 50)
	l.end()
	if now := node.runs(t); now.PID != status.PID {
		t.Error("it is another process")
	}
	l.check(t, node)
	t.Logf("%d acknowledged, none lost; read-only for %v, median %v", l.acks.Load(), gaps, median(gaps))
}

// TestExpiredLeaseHolderIsRefused pauses a process for longer than its lease, so that there are two when it resumes. It
// is refused whether the other has written or not.
func TestExpiredLeaseHolderIsRefused(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for range nightly(1, 10) {
		t.Run("by one that writes", func(t *testing.T) { overtake(t, c, true) })
		t.Run("by one that waits", func(t *testing.T) { overtake(t, c, false) })
	}
}

func overtake(t *testing.T, c *cluster, busy bool) {
	node, standby, _ := c.pair(t)
	l := startLoad(t, node, standby)
	l.more(t, 50)
	if !busy {
		l.end()
	}
	node.signal(t, syscall.SIGSTOP)
	standby.runs(t)
	if busy {
		l.more(t, 20)
	}
	late := make([]net.Conn, loadGuests)
	for i := range late {
		late[i] = node.post(t, "form", formRequest(fmt.Sprint("guest", i), "HOST", "late"))
	}
	node.signal(t, syscall.SIGCONT)
	for _, conn := range late {
		if got, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil && got.StatusCode == http.StatusOK {
			t.Error("one that was overtaken acknowledges")
		}
	}
	node.stoppedLoudly(t)
	l.end()
	if err := standby.client.Call(t.Context(), "form", formRequest("guest0", "HOST", "afterwards"), nil); err != nil {
		t.Error(err)
	}
	l.check(t, standby)
	for _, e := range standby.inbox(t, "") {
		if e.Description == "late" {
			t.Error("what was refused is in the log")
		}
	}
	standby.kill()
}

// post writes a request to the node's socket, even while the process is paused.
func (n *clusterNode) post(t *testing.T, operation string, req any) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", filepath.Join(n.folder, socketFile))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://parley/rpc/"+operation, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(conn); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestNodesConnectThroughTheirCluster connects two nodes through the cluster only. One of them fails over to its standby,
// and mail is still delivered.
func TestNodesConnectThroughTheirCluster(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	ada := c.folderOf(t, nil)
	ada.start(t)
	ben, standby, _ := c.pair(t)
	ada.runs(t)
	ben.must(t, ada.must(t, "", "invite", "ben"), "accept", "ada")
	asked := ask(t, ada, "before")
	answerThere(t, ben, "before")
	answered(t, ada, asked)

	var took []time.Duration
	for range nightly(1, 10) {
		open := ask(t, ada, "open when it dies")
		eventually.Holds(t, "it is there", func() bool { return pending(t, ben, "open when it dies") != "" })
		ben.kill()
		start := time.Now()
		meanwhile := ask(t, ada, "asked of none")
		standby.runs(t)
		answerThere(t, standby, "open when it dies")
		answered(t, ada, open)
		took = append(took, time.Since(start))
		answerThere(t, standby, "asked of none")
		answered(t, ada, meanwhile)

		back := ask(t, standby, "the other way", "ada")
		answerThere(t, ada, "the other way")
		answered(t, standby, back)
		ben.start(t)
		ben.waits(t)
		ben, standby = standby, ben
	}
	for _, n := range []*clusterNode{ada, ben} {
		n.verify(t)
	}
	t.Logf("answered from the standby, on another node, after %v, median %v", took, median(took))
}

// ask sends a form from a node's host to the other node's, ben by default.
func ask(t *testing.T, n *clusterNode, what string, whom ...string) (form string) {
	t.Helper()
	req := formRequest("", append(whom, "ben")[0], what)
	req.Key = ""
	var asked view.Asked
	if err := n.client.Call(t.Context(), "form", req, &asked); err != nil {
		t.Fatal(err)
	}
	return asked.Form.String()
}

// pendingOf waits for a form to a node's host and returns it.
func pending(t *testing.T, n *clusterNode, what string) string {
	t.Helper()
	for form, e := range n.inbox(t, "") {
		if e.AnswerNeeded && e.Description == what {
			return form
		}
	}
	return ""
}

func answerThere(t *testing.T, n *clusterNode, what string) {
	t.Helper()
	form := ""
	eventually.Holds(t, "the form is there", func() bool {
		form = pending(t, n, what)
		return form != ""
	})
	if err := n.client.Call(t.Context(), "respond_form", answerRequest(form, what), nil); err != nil {
		t.Fatal(err)
	}
}

// answered waits for an answer.
func answered(t *testing.T, n *clusterNode, form string) {
	t.Helper()
	eventually.Holds(t, "the answer is there", attempt(t, func(ctx context.Context) bool {
		var o view.Outcome
		err := n.client.Call(ctx, "await", api.AwaitRequest{FormRef: api.RefTo(form)}, &o)
		return err == nil && o.Status == view.StatusAnswered
	}))
}
