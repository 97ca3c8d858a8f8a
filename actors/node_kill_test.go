package actors

import (
	"bufio"
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// nodeProcess is one of the nodes in a process of its own.
type nodeProcess struct {
	node    *clusterNode
	output  *processOutput
	cmd     *exec.Cmd
	drained chan struct{} // closed when output has all lines of the process
}

// start runs the process and blocks until its node listens.
func (p *nodeProcess) start(t *testing.T) {
	t.Helper()
	o := p.node.options
	spec, err := json.Marshal(processSpec{Role: o.Name, Folder: o.Folder, Peers: o.Peers, Public: o.Public})
	if err != nil {
		t.Fatal(err)
	}
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), processEnv+"="+string(spec))
	p.cmd.Stderr = os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.drained = make(chan struct{})
	listens := make(chan string, 1)
	go func() {
		defer close(p.drained)
		defer close(listens)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if at, first := strings.CutPrefix(lines.Text(), "listens "); first {
				listens <- at
				continue
			}
			p.output.add(strings.Fields(lines.Text()))
		}
	}()
	at, ok := <-listens
	if !ok {
		t.Fatalf("%s does not start", o.Name)
	}
	if p.node.proxy != nil {
		p.node.proxy.setTarget(at)
	}
}

// stop ends a process that a failed test has left running.
func (p *nodeProcess) stop() {
	if p.drained != nil {
		_ = p.cmd.Process.Kill() // it fails if the process has ended
		<-p.drained
	}
}

// kill ends the process with SIGKILL.
func (p *nodeProcess) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	<-p.drained
	if p.cmd.Wait() == nil {
		t.Error("the node ended by itself")
	}
}

// TestKilledNodesKeepAcknowledgedForms kills the asker's, the forwarder's and the answerer's process in turn. All nodes are
// connected, then all are disconnected, then only the forwarder is. Every acknowledged operation is there afterwards
// once, and all nodes agree on it.
func TestKilledNodesKeepAcknowledgedForms(t *testing.T) {
	t.Parallel()
	rounds := 9
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		rounds = 180
	}
	a, b, c := openThreeNodes(t)
	l := &processOutput{}
	var processes []*nodeProcess
	for _, s := range []*clusterNode{a, b, c} {
		closeNode(t, s.Node)
		processes = append(processes, &nodeProcess{node: s, output: l})
	}
	for _, p := range processes {
		t.Cleanup(p.stop)
		p.start(t)
	}
	for round := range rounds {
		killAndRestart(t, l, processes, processes[round%3], round/3%3)
	}
	for _, p := range processes {
		p.kill(t)
	}
	for _, s := range []*clusterNode{a, b, c} {
		s.open(t)
	}
	checkAcknowledgedLines(t, l, a, b, c)
}

// killAndRestart kills one process and starts it again.
func killAndRestart(t *testing.T, l *processOutput, processes []*nodeProcess, victim *nodeProcess, phase int) {
	t.Helper()
	awaitLines(t, l, 20+rand.IntN(60))
	severed := map[int][]*nodeProcess{0: {}, 1: processes, 2: processes[1:2]}[phase]
	for _, p := range severed {
		setMode(disconnected, p.node)
	}
	if len(severed) > 0 {
		awaitLines(t, l, 5+rand.IntN(30))
	}
	victim.kill(t)
	if rand.IntN(2) == 0 {
		victim.start(t)
		setMode(forwarding, processes[0].node, processes[1].node, processes[2].node)
		return
	}
	setMode(forwarding, processes[0].node, processes[1].node, processes[2].node)
	victim.start(t)
}

// awaitLines blocks until the given number of lines has come, but not for long: disconnected nodes may have nothing to
// acknowledge.
func awaitLines(t *testing.T, l *processOutput, lines int) {
	t.Helper()
	want, end := l.len(t)+lines, time.Now().Add(700*time.Millisecond)
	eventually.Holds(t, "more lines have come", func() bool { return l.len(t) >= want || time.Now().After(end) })
}

// checkAcknowledgedLines blocks until all mail has arrived. It compares the three nodes with the acknowledged operations
// and with each other.
func checkAcknowledgedLines(t *testing.T, l *processOutput, a, b, c *clusterNode) {
	t.Helper()
	eventually.Holds(t, "all mail has arrived", func() bool {
		return hasDelivered(t, a.Host()) && hasDelivered(t, b.Host()) && hasDelivered(t, c.Host())
	})
	home, atB, atC := formsByID(t, a.Node, a.Host()), formsByID(t, b.Node, b.Host()), formsByID(t, c.Node, c.Host())
	for id, e := range home {
		if e.Type != "form" {
			continue
		}
		checkSameOutcome(t, e, atB[id], "b")
		_, hasC := atC[id]
		forwarded := slices.ContainsFunc(e.ForwardedTo, func(p view.Forwarded) bool { return p.ID == c.host })
		switch {
		case hasC != forwarded && (hasC || e.Outcome == nil): // a form that ended early need not reach c
			t.Errorf("form %s: forwarded to c: %t; c has it: %t", id, forwarded, hasC)
		case hasC:
			checkSameOutcome(t, e, atC[id], "c")
		}
	}
	counts := map[string]int{}
	for _, words := range l.lines {
		counts[words[0]]++
		checkLine(t, words, home, b.host, c.host)
	}
	for _, s := range []*clusterNode{a, b, c} {
		checkSettledOnce(t, s.Host())
		if _, err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
	}
	checkSameMessages(t, home, atB, a.host, b.host)
	checkSameMessages(t, home, atC, a.host, c.host)
	t.Log(counts)
	if counts["answered"] == 0 || counts["forwarded"] == 0 || counts["settled"] == 0 {
		t.Error("nothing was answered, or forwarded, or settled")
	}
}

func checkSameOutcome(t *testing.T, home, copied view.Message, who string) {
	t.Helper()
	switch {
	case copied.Type != "form":
		t.Errorf("%s has no copy of form %s", who, home.MessageID)
	case (home.Outcome == nil) != (copied.Outcome == nil):
		t.Errorf("form %s: %+v at home, %+v with %s", home.MessageID, home.Outcome, copied.Outcome, who)
	case copied.Answering:
		t.Errorf("form %s: the answer of %s is still queued", home.MessageID, who)
	case home.Outcome == nil:
		return
	case home.Outcome.Status != copied.Outcome.Status || home.Outcome.By != copied.Outcome.By || home.Outcome.At != copied.Outcome.At:
		t.Errorf("form %s: %+v at home, %+v with %s", home.MessageID, home.Outcome, copied.Outcome, who)
	}
}

// checkLine checks that the operation of one line has its effect.
func checkLine(t *testing.T, words []string, home map[string]view.Message, b, c capabilities.ID) {
	t.Helper()
	if words[0] == "sent" {
		to := map[string]capabilities.ID{"b": b, "c": c}[words[1]]
		for _, e := range home {
			if e.Type == "message" && e.To == to && e.Text == words[2] {
				return
			}
		}
		t.Errorf("message %v was acknowledged and is gone", words)
		return
	}
	e, ok := home[words[1]]
	switch {
	case !ok:
		t.Errorf("form %v was acknowledged and is gone", words)
	case words[0] == "forwarded":
		if e.Outcome == nil && len(e.ForwardedTo) == 0 {
			t.Errorf("form %v was forwarded, and the home does not know", words)
		}
	case len(words) < 3 || words[0] == "asked":
	case words[0] == "refused":
		checkRefused(t, words, e.Outcome)
	case words[0] == "learned":
		if e.Outcome == nil || string(e.Outcome.Status) != words[2] || e.Outcome.At.String() != words[3] {
			t.Errorf("%v was shown by a copy, and the form has %+v", words, e.Outcome)
		}
	case e.Outcome == nil:
		t.Errorf("%v was acknowledged, and the form is open", words)
	case view.FormStatus(words[2]) == view.StatusAnswering:
	case string(e.Outcome.Status) != words[2] || len(words) > 3 && words[2] == string(view.StatusAnswered) && answerOf(e) != words[3]:
		t.Errorf("%v was acknowledged, and the form has %+v", words, e.Outcome)
	}
}

// checkRefused compares the error of an answer that did not settle its form with the form's outcome.
func checkRefused(t *testing.T, words []string, o *view.Outcome) {
	t.Helper()
	switch {
	case words[2] == string(parley.AnswerPending):
	case o == nil || words[2] != "ALREADY_"+strings.ToUpper(string(o.Status)):
		t.Errorf("%v, and the form has %+v", words, o)
	case o.Status == view.StatusAnswered && o.Values.Text() == words[3]:
		t.Errorf("%v, and that very answer is the outcome", words)
	}
}

// checkSettledOnce checks that each form has at most one outcome in a mailbox's log.
func checkSettledOnce(t *testing.T, a *Agent) {
	t.Helper()
	logged, err := a.Log(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ends := map[capabilities.ID]int{}
	for _, e := range logged.Entries {
		switch e := e.Payload.(type) {
		case *events.FormAnswered:
			ends[e.Form]++
		case *events.FormCancelled:
			ends[e.Form]++
		}
	}
	for form, n := range ends {
		if n != 1 {
			t.Errorf("form %s ended %d times in the log of %s", form, n, a.id)
		}
	}
}

// checkSameMessages checks that all messages from one agent to another have arrived, in order.
func checkSameMessages(t *testing.T, sent, got map[string]view.Message, from, to capabilities.ID) {
	t.Helper()
	order := func(all map[string]view.Message) (ids []string) {
		var mine []view.Message
		for _, e := range all {
			if e.From == from && e.To == to {
				mine = append(mine, e)
			}
		}
		slices.SortFunc(mine, func(x, y view.Message) int { return cmp.Compare(x.Number, y.Number) })
		for _, e := range mine {
			ids = append(ids, e.MessageID.String())
		}
		return ids
	}
	if s, g := order(sent), order(got); !slices.Equal(s, g) {
		t.Errorf("%d were sent to %s, and %d have arrived, or in another order", len(s), to, len(g))
	}
}
