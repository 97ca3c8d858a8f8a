package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/client"
)

// withNode runs an example with a node in a process of its own. host connects to its socket, and the guest fae has a URL
// and a token.
func withNode(do func(ctx context.Context, h *testServer, host, fae client.Options)) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	h, err := openTestServer("127.0.0.1:0")
	if err != nil {
		log.Print(err)
		return
	}
	defer h.close()
	token, err := h.token(ctx, "fae")
	if err != nil {
		log.Print(err)
		return
	}
	do(ctx, h, client.Options{Socket: h.socket()}, client.Options{URL: h.url(), Token: token})
}

// One program asks, another answers.
func Example() {
	withNode(func(ctx context.Context, _ *testServer, hostOptions, faeOptions client.Options) {
		fae, err := client.Connect(ctx, faeOptions)
		if err != nil {
			log.Print(err)
			return
		}
		defer fae.Close()
		asked, err := fae.Ask(ctx, client.Form{
			To: "HOST", Description: "Where to listen?",
			Fields: []client.Field{{Name: "port", Type: "number", Required: true}, {Name: "public", Type: "checkbox"}},
		})
		if err != nil {
			log.Print(err)
			return
		}

		host, err := client.Connect(ctx, hostOptions) // any program that may open the socket, at any time
		if err != nil {
			log.Print(err)
			return
		}
		defer host.Close()
		for m, err := range host.List(ctx, client.View{Pending: true}) {
			if err != nil {
				log.Print(err)
				return
			}
			fmt.Println(m.FromName, "asks:", m.Description)
			if _, err := host.Answer(ctx, m.ID(), map[string]any{"port": 443, "public": true}); err != nil {
				log.Print(err)
				return
			}
		}

		outcome, err := asked.Await(ctx) // now, or after a restart
		if err != nil {
			log.Print(err)
			return
		}
		var answer struct {
			Port   int
			Public bool
		}
		if err := outcome.Decode(&answer); err != nil { // an error also if it was declined, cancelled or expired
			log.Print(err)
			return
		}
		fmt.Println(outcome.ByName, "says:", answer.Port, answer.Public)
	})
	// Output:
	// fae asks: Where to listen?
	// HOST says: 443 true
}

// A refused answer has an error for each wrong field, and leaves the form open.
func ExampleClient_Answer() {
	withNode(func(ctx context.Context, _ *testServer, hostOptions, faeOptions client.Options) {
		fae, err := client.Connect(ctx, faeOptions)
		if err != nil {
			log.Print(err)
			return
		}
		defer fae.Close()
		asked, err := fae.Ask(ctx, client.Form{To: "HOST", Description: "?", Fields: []client.Field{{Name: "port", Type: "number"}}})
		if err != nil {
			log.Print(err)
			return
		}
		host, err := client.Connect(ctx, hostOptions)
		if err != nil {
			log.Print(err)
			return
		}
		defer host.Close()

		_, err = host.Answer(ctx, client.Number(0), map[string]any{"port": "http", "host": "x"})
		var refused *parley.Error
		if errors.As(err, &refused) {
			fmt.Println(refused.Code, refused.Fields["port"], "/", refused.Fields["host"])
		}

		if _, err := host.Decline(ctx, client.Number(0), "not today"); err != nil {
			log.Print(err)
			return
		}
		outcome, err := asked.Await(ctx)
		fmt.Println(outcome.Status, outcome.Note, err)
		fmt.Println(parley.CodeOf(outcome.Err()))
	})
	// Output:
	// INVALID_ANSWER want a number / no such field
	// declined not today <nil>
	// DECLINED
}

// A follower resumes with its last cursor, also after the node was killed.
func ExampleClient_Follow() {
	withNode(func(ctx context.Context, h *testServer, hostOptions, faeOptions client.Options) {
		host, err := client.Connect(ctx, hostOptions)
		if err != nil {
			log.Print(err)
			return
		}
		defer host.Close()
		fae, err := client.Connect(ctx, faeOptions)
		if err != nil {
			log.Print(err)
			return
		}
		defer fae.Close()
		for _, text := range []string{"one", "two", "three"} {
			if _, err := fae.Send(ctx, "HOST", client.Post{Text: text}); err != nil {
				log.Print(err)
				return
			}
		}

		var last client.Cursor
		for m, err := range host.Follow(ctx, client.View{}, "") {
			if err != nil {
				log.Print(err)
				return
			}
			fmt.Println(m.FromName, "said", m.Text)
			if last = m.Cursor; m.Text == "two" {
				break // the program ends here and keeps the cursor
			}
		}

		h.kill()
		if err := h.start(); err != nil {
			log.Print(err)
			return
		}
		for m, err := range host.Follow(ctx, client.View{}, last) {
			if err != nil {
				log.Print(err)
				return
			}
			fmt.Println(m.FromName, "said", m.Text)
			break
		}
	})
	// Output:
	// fae said one
	// fae said two
	// fae said three
}

// An agent asks before it calls a tool.
func ExampleClient_Approve() {
	withNode(func(ctx context.Context, _ *testServer, hostOptions, faeOptions client.Options) {
		fae, err := client.Connect(ctx, faeOptions)
		if err != nil {
			log.Print(err)
			return
		}
		defer fae.Close()
		permission, err := fae.Approve(ctx, client.Approval{Tool: "shell", Input: json.RawMessage(`{"command":"git push"}`)})
		if err != nil {
			log.Print(err)
			return
		}

		host, err := client.Connect(ctx, hostOptions)
		if err != nil {
			log.Print(err)
			return
		}
		defer host.Close()
		m, err := host.Message(ctx, client.Number(0))
		if err != nil {
			log.Print(err)
			return
		}
		fmt.Println(m.Title, m.Description)
		if _, err := host.Answer(ctx, m.ID(), map[string]any{"decision": "once"}); err != nil {
			log.Print(err)
			return
		}

		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		decision, err := permission.Await(ctx)
		fmt.Println(decision.Allowed, err)
	})
	// Output:
	// shell {"command":"git push"}
	// true <nil>
}

// A program sends a prompt to an agent, and waits until the agent has finished.
func ExampleClient_Prompt() {
	withNode(func(ctx context.Context, _ *testServer, hostOptions, _ client.Options) {
		host, err := client.Connect(ctx, hostOptions)
		if err != nil {
			log.Print(err)
			return
		}
		defer host.Close()
		// As parley run does. Programs are added on the node's own socket only; the calls below work by URL too.
		err = host.Call(ctx, "run_agent", map[string]any{
			"name": "counter", "labels": map[string]string{"job": "count"}, "wait": true,
			"command": []string{"sh", "-c", "read message; echo one; echo two"}, "folder": os.TempDir(),
		}, nil)
		if err != nil {
			log.Print(err)
			return
		}

		got, err := host.Prompt(ctx, client.Prompt{Agent: "counter", Text: "Count to two."})
		if err != nil { // AGENT_NOT_FOUND, AMBIGUOUS, AGENT_ARCHIVED, or why its program does not run
			log.Print(err)
			return
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		status, agent, err := host.WaitForAgent(ctx, string(got.Agent))
		switch {
		case err != nil: // with the code TIMEOUT the agent continues
			log.Print(err)
			return
		case status == client.NeedsPermission:
			fmt.Println("it asks for permission:", agent.PendingPermissions)
		case status == client.Failed:
			fmt.Println("it failed:", agent.Error)
		default:
			fmt.Println(agent.Name, "is", status)
		}
		for piece, err := range host.Output(ctx, string(got.Agent), 0) {
			if err != nil {
				log.Print(err)
				return
			}
			fmt.Print(piece.Text)
		}

		err = api.ArchiveAgent.Run(ctx, host, api.AgentRequest{AgentID: "counter"})
		if err == nil {
			_, err = host.Prompt(ctx, client.Prompt{Agent: "counter", Text: "And on."})
		}
		fmt.Println(parley.CodeOf(err))
	})
	// Output:
	// counter is idle
	// one
	// two
	// AGENT_ARCHIVED
}
