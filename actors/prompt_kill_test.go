package actors

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// promptNodeEnv is the environment variable with the folder of a node that prompts its agents until it is killed.
const promptNodeEnv = "PARLEY_TEST_PROMPT_NODE"

// promptedPrograms are the programs of the agents. The first three print the prompt's text, at once or later. The last one
// asks a form first.
var promptedPrograms = []events.ProgramSet{
	{Command: []string{"sh", "-c", `echo "had $PARLEY_PROMPT"; sleep 0.1`}},
	{Command: []string{"sh", "-c", `sleep 0.2; echo "had $PARLEY_PROMPT"`}},
	{Keep: true, Command: []string{"sh", "-c", `sleep 0.1; while read line; do echo "had $line" | tr '{}' '()'; echo '{"type":"done"}'; done`}},
	{Command: []string{"sh", "-c", `echo '{"type":"ask","id":"go","prompt":"Go on?"}'; read prompt; read answer; echo "had $PARLEY_PROMPT"`}},
}

func promptedName(i int) string { return fmt.Sprint("prompted", i) }

// runPromptNode runs a node that prompts its agents and answers their forms. It prints each accepted prompt, a line each. It
// never returns.
func runPromptNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "prompting"})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	go answerYes(ctx, n)
	for i := range promptedPrograms {
		go func() {
			fmt.Println("failed", promptForever(ctx, n, i))
			os.Exit(1)
		}()
	}
	select {}
}

// answerYes answers every form of the host.
func answerYes(ctx context.Context, n *Node) {
	for e, err := range n.Host().Mail().Follow(ctx, view.MessageFilter{Pending: true}, 0) {
		if err != nil {
			return
		}
		ref, answer := capabilities.FormID(e.MessageID), parley.Answer{Texts: []events.FieldText{{Name: e.Fields[0].Name, Text: "Yes"}}}
		if _, err := n.Host().Answer(ctx, ref, answer); err != nil && ctx.Err() == nil && !isSettledCode(parley.CodeOf(err)) {
			fmt.Println("failed", err)
		}
	}
}

func promptForever(ctx context.Context, n *Node, i int) error {
	a, err := n.ActAs(ctx, promptedName(i))
	if parley.CodeOf(err) == parley.UnknownName {
		p := promptedPrograms[i]
		p.Runtime = "exec"
		a, err = n.Host().Make(ctx, NewAgent{Kind: events.Guest, Name: promptedName(i), Program: &p, Wait: true})
	}
	for k := 0; err == nil; k++ {
		text := fmt.Sprintf("%d-%d-%d", i, os.Getpid(), k)
		var p view.Prompted
		if p, err = n.Host().Prompt(ctx, a, text, text); err == nil {
			fmt.Println("accepted", i, p.Message, text)
		}
		time.Sleep(rand.N(400 * time.Millisecond)) // the pause between prompts
	}
	return err
}

// acceptedPrompt is a prompt that a killed node had accepted.
type acceptedPrompt struct {
	agent, text string
	message     capabilities.FormRef
}

// runAndKillPromptNode runs a node, kills it once it has accepted some prompts, and returns those.
func runAndKillPromptNode(t *testing.T, folder string) (all []acceptedPrompt) {
	t.Helper()
	left := 4 + rand.IntN(12)
	killNode(t, promptNodeEnv, folder, func(words []string) (bool, error) {
		if words[0] != "accepted" {
			return false, errors.New("it has failed")
		}
		message, err := capabilities.ParseFormRef(words[2])
		all = append(all, acceptedPrompt{agent: "prompted" + words[1], message: message, text: words[3]})
		left--
		return left >= 0, err
	})
	return all
}

// TestAcceptedPromptsRunAfterKills kills a node with SIGKILL repeatedly while its agents are prompted. Each accepted prompt
// has runs until its program has written something. The agent's status shows the prompts of interrupted runs.
func TestAcceptedPromptsRunAfterKills(t *testing.T) {
	t.Parallel()
	rounds := 8
	if os.Getenv("PARLEY_NIGHTLY") != "" {
		rounds = 110
	}
	folder := t.TempDir()
	var accepted []acceptedPrompt
	for range rounds {
		accepted = append(accepted, runAndKillPromptNode(t, folder)...)
	}
	n := openNode(t, folder)
	began := time.Now()
	go answerYes(t.Context(), n)
	for i := range promptedPrograms {
		a, err := n.ActAs(t.Context(), promptedName(i))
		if err != nil {
			t.Fatal(err)
		}
		if f, err := a.WaitForFinish(t.Context(), 5*time.Minute); err != nil || f.Status == view.FinishTimeout {
			t.Fatalf("%s: %+v, %v", promptedName(i), f, err)
		}
	}
	t.Logf("%d prompts in %d rounds; all had run %v after the last start", len(accepted), rounds, time.Since(began))
	count := map[string]int{}
	for _, p := range accepted {
		count[checkPrompted(t, n, p)]++
	}
	t.Log(count)
}

// checkPrompted checks the last run for a prompt and returns how it ended.
func checkPrompted(t *testing.T, n *Node, p acceptedPrompt) string {
	t.Helper()
	a, err := n.ActAs(t.Context(), p.agent)
	if err != nil {
		t.Fatal(err)
	}
	e, err := a.Message(t.Context(), p.message)
	if err != nil || e.Queued {
		t.Errorf("%s: %+v, %v", p.text, e, err)
		return "lost"
	}
	runs, last := 0, capabilities.ID{}
	for _, r := range eventsOf[*events.RunStarted](t, a) {
		if r.Prompt == e.MessageID {
			runs, last = runs+1, r.Run
		}
	}
	for _, r := range eventsOf[*events.RunEnded](t, a) {
		switch {
		case r.Run != last:
			continue
		case r.Error == "":
			if !strings.Contains(outputOf(t, a), "had "+p.text) && !strings.Contains(outputOf(t, a), p.text) {
				t.Errorf("%s: its run has succeeded and printed nothing", p.text)
			}
			return "ran"
		case !e.Interrupted && len(currentStatus(t, a).Cut) < 16:
			t.Errorf("%s: the interruption is not shown: %+v", p.text, e)
		case !strings.Contains(outputOf(t, a), p.text) && p.agent != promptedName(3) && runs < 5:
			t.Errorf("%s: it was interrupted before it had printed anything, after %d runs", p.text, runs)
		}
		return r.Error
	}
	t.Errorf("%s had no run", p.text)
	return "none"
}
