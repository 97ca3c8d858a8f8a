package actors

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/actors/view"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// programNodeEnv is the environment variable with the folder of a node whose programs run until it is killed.
const programNodeEnv = "PARLEY_TEST_PROGRAM_NODE"

// deployScript asks for permission and then for a time, and prints both answers.
const deployScript = pythonHead + `
send(type="approval", id="a", tool="deploy", input={"to": "production"})
allowed = receive()["approved"]
send(type="ask", id="when", prompt="When?", widgets=[{"type": "select", "options": ["now", "later"]}])
send(type="done", text="%s: %s, %s" % (prompt, allowed, receive()["value"]))
`

// runProgramNode runs a node with two agents. Each has a run whose call awaits permission, and one also has a message that
// awaits the next run. It prints a line once all that is durable. It never returns.
func runProgramNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "programs"})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	for _, name := range []string{"busy", "lone"} {
		if err := startWork(ctx, n, name); err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
	}
	if _, err := n.Host().Send(ctx, "busy", "second"); err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

func startWork(ctx context.Context, n *Node, name string) error {
	p := &events.ProgramSet{Runtime: "exec", Command: []string{"python3", "-c", deployScript}}
	a, err := n.Host().Make(ctx, NewAgent{Kind: events.Guest, Name: name, Program: p, Wait: true})
	if err != nil {
		return err
	}
	if _, err := n.Host().Prompt(ctx, a, "first", ""); err != nil {
		return err
	}
	f, err := a.WaitForFinish(ctx, 0)
	if err == nil && f.Status != view.FinishPermission {
		err = fmt.Errorf("%s has finished: %s", name, f.Status)
	}
	for _, pid := range descendantsOf(os.Getpid()) {
		fmt.Println("process", pid)
	}
	return err
}

// TestProgramsContinueAfterNodeIsKilled kills a node with SIGKILL. Its runs end and are shown as interrupted. Open forms
// stay open, the next run gets their answers, and no form is asked twice. Queued messages get runs.
func TestProgramsContinueAfterNodeIsKilled(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	folder := t.TempDir()
	processes := killWhenReady(t, folder)
	eventually.Holds(t, "the programs have ended with their node", func() bool { return !slices.ContainsFunc(processes, isAlive) })

	n := openNode(t, folder)
	actAs := func(name string) *Agent {
		t.Helper()
		a, err := n.ActAs(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	busy, lone := actAs("busy"), actAs("lone")
	list, err := n.Host().Agents().List(t.Context(), view.AgentFilter{Statuses: []string{mailbox.Failed}})
	if err != nil || len(list) != 1 || list[0].ID != lone.id || list[0].Error != mailbox.Interrupted || len(list[0].Pending) != 1 {
		t.Errorf("after the kill: %+v, %v", list, err)
	}
	for _, a := range []*Agent{busy, lone} {
		waitForFinish(t, a, view.FinishPermission)
		if ended := eventsOf[*events.RunEnded](t, a); len(ended) != 1 || ended[0].Error != mailbox.Interrupted {
			t.Errorf("the run that was killed: %+v", ended)
		}
	}

	// One form is answered while the next run waits for it, the other before there is a next run.
	eventually.Holds(t, "the next run awaits the form", func() bool {
		run := n.supervisor.currentRun(busy.id)
		return run != nil && len(run.host.forms()) == 1
	})
	for _, a := range []*Agent{busy, lone} {
		answerAsHost(t, a, awaitFormsAsked(t, a, 1), "decision", mailbox.Once)
	}
	prompt(t, lone, "third")
	for a, text := range map[*Agent]string{busy: "second", lone: "third"} {
		answerAsHost(t, a, awaitFormsAsked(t, a, 2), "value", "now")
		waitForFinish(t, a, view.FinishIdle)
		if out := outputOf(t, a); !strings.Contains(out, text+": True, now") {
			t.Errorf("the output is %q", out)
		}
		if starts := eventsOf[*events.RunStarted](t, a); len(starts) != 2 {
			t.Errorf("%d runs", len(starts))
		}
	}
	if _, err := n.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// killWhenReady runs a node until it is ready, kills it, and returns the processes of its programs.
func killWhenReady(t *testing.T, folder string) (processes []int) {
	t.Helper()
	killNode(t, programNodeEnv, folder, func(words []string) (bool, error) {
		switch words[0] {
		case "process":
			pid, err := strconv.Atoi(words[1])
			processes = append(processes, pid)
			return true, err
		case "ready":
			return false, nil
		}
		return false, errors.New("it has failed")
	})
	return processes
}
