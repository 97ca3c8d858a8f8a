package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/capabilities"
	"parley/gateway"
)

func (p *program) promptCommand() *cobra.Command {
	var (
		noWait  bool
		key     string
		timeout duration
	)
	c := &cobra.Command{
		Use:   "prompt AGENT TEXT",
		Short: "Give an agent something to work on",
		Long: `Sends an agent a message to work on, in plain words. It is accepted when it is on disk and the agent, if it has a
program, runs; then the agent's output is shown until it has nothing more to do. A message to an agent that runs already
waits for its turn. The exit status is that of parley wait.`,
		Example:           "  parley prompt builder 'make the tests pass'\n  parley prompt builder 'and now the docs' --no-wait",
		Args:              p.exactly("AGENT", "TEXT"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteNames),
	}
	f := c.Flags()
	f.BoolVar(&noWait, "no-wait", false, "return once it is accepted")
	f.StringVar(&key, "key", "", "idempotency `key`: the same key is the same message")
	f.Var(&timeout, "timeout", "wait so `long` at most; the agent goes on")
	c.RunE = func(c *cobra.Command, args []string) error {
		sent, err := p.prompt(c.Context(), args[0], args[1], key)
		if err != nil {
			return err
		}
		if noWait {
			return p.say(sent, sent.Message.String)
		}
		return p.watch(c.Context(), sent.AgentID, sent.cursor, time.Duration(timeout))
	}
	return c
}

// sentMessage is an accepted message, and the end of the agent's output before it.
type sentMessage struct {
	AgentID  capabilities.ID `json:"agentId"`
	Message  capabilities.ID `json:"message"`
	Accepted bool            `json:"accepted"`
	Queued   bool            `json:"queued"`

	cursor uint64
}

func (p *program) prompt(ctx context.Context, agent, text, key string) (sentMessage, error) {
	client := p.client()
	defer client.Close()
	cursor, err := lastOutput(ctx, client, p.acting(), agent)
	if err != nil {
		return sentMessage{}, err
	}
	var got gateway.SendAgentMessageResponse
	req := gateway.SendAgentMessageRequest{Acting: p.acting(), AgentID: agent, Text: text, MessageID: key}
	if err := client.Call(ctx, "send_agent_message", req, &got); err != nil {
		return sentMessage{}, err
	}
	if got.Error != nil {
		return sentMessage{}, got.Error
	}
	return sentMessage{AgentID: got.AgentID, Message: got.Message, Accepted: got.Accepted, Queued: got.Queued, cursor: cursor}, nil
}

// watch shows an agent's output after a cursor until it has nothing more to do, and then what it came to.
func (p *program) watch(ctx context.Context, agent capabilities.ID, cursor uint64, timeout time.Duration) error {
	id := agent.String()
	showing, stop := context.WithCancel(ctx)
	shown := make(chan error, 1)
	if p.options.json {
		shown <- nil
	} else {
		go func() { shown <- p.showOutput(showing, id, &cursor) }()
	}
	f, err := p.waitFor(ctx, id, timeout)
	stop()
	if told := <-shown; err == nil && parley.CodeOf(told) != parley.NotPermitted && ctx.Err() == nil && told != nil && showing.Err() == nil {
		err = told
	}
	if err != nil {
		return err
	}
	if !p.options.json {
		if err := p.showRest(ctx, id, cursor); err != nil {
			return err
		}
	}
	if p.options.json || f.Status != "idle" {
		if err := p.sayFinished([]finished{f}, false); err != nil {
			return err
		}
	}
	return f.exit()
}
