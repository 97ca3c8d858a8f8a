package actors

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// loadedNodeEnv is the environment variable with the folder of a node that this test's binary runs until it is killed.
const loadedNodeEnv = "PARLEY_TEST_LOADED_NODE"

const loadedPairs = 8

// runLoadedNode runs a node under load. It prints each acknowledged operation, a line each. It never returns.
func runLoadedNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "loaded"})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	for i := range loadedPairs {
		go func() {
			if err := askAndAnswerForever(ctx, n, "guest"+strconv.Itoa(i)); err != nil {
				fmt.Println("failed", err)
				os.Exit(1)
			}
		}()
	}
	select {}
}

// askAndAnswerForever asks and answers forms without end. Each line is written by one call, so that a kill divides none.
func askAndAnswerForever(ctx context.Context, n *Node, name string) error {
	g, err := n.ActAs(ctx, name)
	if parley.CodeOf(err) == parley.UnknownName {
		g, err = n.Host().Make(ctx, NewAgent{Kind: events.Guest, Name: name})
	}
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		asked, err := g.Ask(ctx, parley.Form{To: "HOST", Description: "load", Fields: textField("a"), Key: fmt.Sprint(os.Getpid(), "-", i)})
		if err != nil {
			return err
		}
		fmt.Println("asked", name, asked.Form)
		if i%5 == 4 {
			continue // some stay open
		}
		value := fmt.Sprint(name, "/", os.Getpid(), "/", i)
		if _, err := n.Host().Answer(ctx, capabilities.FormID(asked.Form), parley.Answer{Values: text("a", value)}); err != nil {
			return err
		}
		fmt.Println("answered", name, asked.Form, value)
	}
}

// TestKilledNodeKeepsAcknowledgedAnswers kills a process with SIGKILL repeatedly. Every acknowledged operation is there
// afterwards once, and both mailboxes agree on it.
func TestKilledNodeKeepsAcknowledgedAnswers(t *testing.T) {
	t.Parallel()
	rounds := 3
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		rounds = 200
	}
	folder := t.TempDir()
	asked, answered := map[string]string{}, map[string]string{}
	for round := range rounds {
		runAndKillNode(t, folder, asked, answered)
		checkAfterKill(t, folder, asked, answered)
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if len(answered) == 0 {
		t.Fatal("no answer was acknowledged in any round")
	}
	t.Logf("%d rounds: %d asks and %d answers acknowledged, none lost", rounds, len(asked), len(answered))
}

// killNode runs this test's binary as the node that a variable of its environment stands for, and passes on the words of each
// line that it prints. When heard first returns false or an error, it kills the process with SIGKILL. Lines that the process
// printed before it ended still come. An error fails the test.
func killNode(t *testing.T, variable, folder string, heard func(words []string) (goOn bool, err error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		goOn, err := heard(strings.Fields(lines.Text()))
		if err != nil {
			t.Errorf("the node says %q: %v", lines.Text(), err)
		}
		if killed || goOn && err == nil {
			continue
		}
		killed = true
		if err := cmd.Process.Kill(); err != nil {
			t.Error(err)
		}
	}
	if cmd.Wait() == nil || !killed {
		t.Error("the node ended by itself")
	}
	if t.Failed() {
		t.FailNow()
	}
}

// runAndKillNode runs a node until it has printed a random number of acknowledged operations, kills it, and records them.
func runAndKillNode(t *testing.T, folder string, asked, answered map[string]string) {
	t.Helper()
	left := 20 + rand.IntN(300)
	killNode(t, loadedNodeEnv, folder, func(words []string) (bool, error) {
		switch words[0] {
		case "asked":
			asked[words[2]] = words[1]
		case "answered":
			answered[words[2]] = words[3]
		default:
			return false, errors.New("it has failed")
		}
		left--
		return left >= 0, nil
	})
}

func checkAfterKill(t *testing.T, folder string, asked, answered map[string]string) {
	t.Helper()
	n, err := Open(t.Context(), Options{Folder: folder, Name: "checker"})
	if err != nil {
		t.Fatal(err)
	}
	defer closeNode(t, n)
	eventually.Holds(t, "all mail is delivered", func() bool {
		for _, m := range n.journal.Mailboxes() {
			if m.Summary.Outbox > 0 {
				return false
			}
		}
		return true
	})
	host := formsByID(t, n, n.Host())
	for i := range loadedPairs {
		name := "guest" + strconv.Itoa(i)
		g, err := n.ActAs(t.Context(), name)
		if parley.CodeOf(err) == parley.UnknownName {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for form, e := range formsByID(t, n, g) {
			copied, ok := host[form]
			switch {
			case !ok:
				t.Errorf("form %s has no copy", form)
			case answerOf(e) != answerOf(copied):
				t.Errorf("form %s: %q at home, %q in the copy", form, answerOf(e), answerOf(copied))
			case answered[form] != "" && answerOf(e) != `{"a":"`+answered[form]+`"}`:
				t.Errorf("form %s: acknowledged %q, has %q", form, answered[form], answerOf(e))
			}
		}
	}
	for form := range asked {
		if _, ok := host[form]; !ok {
			t.Errorf("form %s was acknowledged and is gone", form)
		}
	}
	if _, err := n.Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// formsByID returns an agent's forms by ID. It fails the test if a form occurs twice or a number is missing.
func formsByID(t *testing.T, n *Node, a *Agent) map[string]view.Message {
	t.Helper()
	in, err := a.Mail().Inbox(t.Context(), view.MessageFilter{All: true})
	if err != nil {
		t.Fatal(err)
	}
	forms := map[string]view.Message{}
	for i, e := range in.Messages {
		if _, twice := forms[e.MessageID.String()]; twice || e.Number != uint64(i) {
			t.Fatalf("message %d is number %d, or occurs twice", i, e.Number)
		}
		forms[e.MessageID.String()] = e
	}
	return forms
}

func answerOf(e view.Message) string {
	if e.Outcome == nil {
		return ""
	}
	return e.Outcome.Values.Text()
}
