package actors

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
)

// processEnv is the environment variable with the processSpec of a node that this test's binary runs.
const processEnv = "PARLEY_TEST_PROCESS"

// processSpec describes one of three nodes: a asks and sends, b forwards and answers, c answers.
// With Votes it is one that takes calls of TestVotesSurviveKills.
type processSpec struct {
	Role, Folder, Peers, Public string
	Votes                       bool
}

const (
	maxOpenForms       = 24 // forms that a awaits at once
	maxConcurrentForms = 12 // forms that b and c handle at once
	answersPerForm     = 3  // concurrent answers of each to a form
)

// runProcess runs a node under load. It prints its address and each acknowledged operation, a line each. It never
// returns.
func runProcess(spec string) {
	var f processSpec
	err := json.Unmarshal([]byte(spec), &f)
	ctx := context.Background()
	var n *Node
	if err == nil {
		n, err = Open(ctx, Options{Folder: f.Folder, Name: f.Role, Peers: f.Peers, Public: f.Public})
	}
	if err == nil {
		fmt.Println("listens", n.PeerAddress())
		run := map[string]func(context.Context, *Agent) error{"a": askForever, "b": forwardAndAnswer, "c": answerEachPending}[f.Role]
		if f.Votes {
			run = voteOnCalls
		}
		err = run(ctx, n.Host())
	}
	fmt.Println("failed", err)
	os.Exit(1)
}

// askForever asks b and sends messages to b and c, without end.
func askForever(ctx context.Context, host *Agent) error {
	in, err := host.Mail().Inbox(ctx, view.MessageFilter{All: true})
	if err != nil {
		return err
	}
	open := make(chan struct{}, maxOpenForms)
	await := func(form capabilities.ID) {
		o, err := host.Await(ctx, capabilities.FormID(form))
		printResult("settled", form, o.Status, o.Values.Text(), err)
	}
	for _, e := range in.Messages {
		if e.Type == "form" && e.Outcome == nil {
			go await(e.MessageID)
		}
	}
	for i := 0; ; i++ {
		text := fmt.Sprint(os.Getpid(), "/", i)
		q := parley.Form{To: "b", Description: text, Fields: textField("a"), Key: text}
		if i%11 == 5 {
			q.Deadline = host.node.now().Add(500 * time.Millisecond)
		}
		asked, err := host.Ask(ctx, q)
		if err != nil {
			return err
		}
		fmt.Println("asked", asked.Form)
		for _, to := range []string{"b", "c"} {
			if _, err := host.Send(ctx, to, text); err != nil {
				return err
			}
			fmt.Println("sent", to, text)
		}
		if i%7 == 3 {
			_, err := host.Cancel(ctx, capabilities.FormID(asked.Form), "")
			printResult("cancelled", asked.Form, view.StatusCancelled, "", err)
		}
		open <- struct{}{}
		go func() {
			await(asked.Form)
			<-open
		}()
	}
}

// eachPending calls do once for every form that awaits the host's answer, for several forms at once.
func eachPending(ctx context.Context, host *Agent, do func(view.Message)) error {
	room, seen := make(chan struct{}, maxConcurrentForms), map[capabilities.ID]bool{}
	for e, err := range host.Mail().Follow(ctx, view.MessageFilter{Pending: true}, 0) {
		if err != nil {
			return err
		}
		if seen[e.MessageID] {
			continue
		}
		seen[e.MessageID] = true
		room <- struct{}{}
		go func() {
			do(e)
			<-room
		}()
	}
	return nil
}

// forwardAndAnswer forwards two forms of three and answers two of three, so that one of three is a race.
func forwardAndAnswer(ctx context.Context, host *Agent) error {
	return eachPending(ctx, host, func(e view.Message) {
		kind := e.MessageID.ULID[15] % 3
		if kind != 0 && len(e.ForwardedTo) == 0 {
			err := host.Forward(ctx, capabilities.FormID(e.MessageID), "c")
			if parley.CodeOf(err) != parley.NotPermitted { // c has it: the node was killed before it recorded the outcome
				printResult("forwarded", e.MessageID, "", "", err)
			}
		}
		if kind != 1 {
			answerRepeatedly(ctx, host, "b", e)
		}
	})
}

func answerEachPending(ctx context.Context, host *Agent) error {
	return eachPending(ctx, host, func(e view.Message) { answerRepeatedly(ctx, host, "c", e) })
}

// answerRepeatedly answers a form several times at once. It prints the result of each answer and the form's outcome.
func answerRepeatedly(ctx context.Context, host *Agent, name string, e view.Message) {
	var answers sync.WaitGroup
	for i := range answersPerForm {
		answers.Go(func() {
			value := fmt.Sprint(name, "/", os.Getpid(), "/", i)
			shown := `{"a":"` + value + `"}`
			o, err := host.Answer(ctx, capabilities.FormID(e.MessageID), parley.Answer{Values: text("a", value)})
			if code := parley.CodeOf(err); isSettledCode(code) || code == parley.AnswerPending {
				printResult("refused", e.MessageID, view.FormStatus(code), shown, nil)
				return
			}
			printResult("answered", e.MessageID, o.Status, shown, err)
		})
	}
	o, err := host.Await(ctx, capabilities.FormID(e.MessageID))
	printResult("learned", e.MessageID, o.Status, o.At.String(), err)
	answers.Wait()
}

// isSettledCode reports whether a code says that a form has ended.
func isSettledCode(c parley.Code) bool {
	return slices.Contains([]parley.Code{parley.AlreadyAnswered, parley.AlreadyCancelled, parley.AlreadyDeclined, parley.AlreadyExpired}, c)
}

var outputMu sync.Mutex

// printResult prints one line in one call. A form that has already ended is no failure.
func printResult(event string, form capabilities.ID, status view.FormStatus, value string, err error) {
	outputMu.Lock()
	defer outputMu.Unlock()
	switch {
	case err == nil:
		fmt.Println(event, form, string(status), value)
	case !isSettledCode(parley.CodeOf(err)):
		fmt.Println("failed", event, form, err)
	}
}

// processOutput holds the operations that the three nodes have acknowledged.
type processOutput struct {
	mu     sync.Mutex
	lines  [][]string // of words
	failed string
}

func (l *processOutput) add(words []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if words[0] == "failed" && l.failed == "" {
		l.failed = strings.Join(words, " ")
	}
	l.lines = append(l.lines, words)
}

func (l *processOutput) len(t *testing.T) int {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed != "" {
		t.Fatal(l.failed)
	}
	return len(l.lines)
}
