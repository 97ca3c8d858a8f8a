package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/api"
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
program, runs; then what it puts out for the message is shown until it has nothing more to do. A message to an agent that
runs already waits for its turn. The exit status is that of parley wait, and so is what is said as JSON.`,
		Example:           "  parley prompt builder 'make the tests pass'\n  parley prompt builder 'and now the docs' --no-wait",
		Args:              p.exactly("AGENT", "TEXT"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteNames),
	}
	f := c.Flags()
	f.BoolVar(&noWait, "no-wait", false, "return once it is accepted")
	f.StringVar(&key, "key", "", "idempotency `key`: the same key is the same message")
	f.Var(&timeout, "timeout", "wait so `long` at most; the agent goes on")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		if noWait {
			sent, err := p.sendPrompt(ctx, args[0], args[1], key)
			if err != nil {
				return err
			}
			return p.say(sent, sent.Message.String)
		}
		end, err := p.outputEnd(ctx, args[0], 0)
		if err != nil && parley.CodeOf(err) != parley.NotPermitted { // who may not see its output may write to it
			return err
		}
		sent, err := p.sendPrompt(ctx, args[0], args[1], key)
		if err != nil {
			return err
		}
		s := p.showing(end.Cursor)
		s.message = sent.Message
		return p.watch(ctx, sent.AgentID, s, time.Duration(timeout))
	}
	return c
}

// sentMessage is an accepted message.
type sentMessage struct {
	AgentID  capabilities.ID `json:"agentId"`
	Message  capabilities.ID `json:"message"`
	Accepted bool            `json:"accepted"`
	Queued   bool            `json:"queued"`
}

// sendPrompt gives an agent a message to work on.
func (p *program) sendPrompt(ctx context.Context, agent, text, key string) (sentMessage, error) {
	var got api.SendAgentMessageResponse
	req := api.SendAgentMessageRequest{Acting: p.acting(), AgentID: agent, Text: text, MessageID: key}
	if err := p.call(ctx, "send_agent_message", req, &got); err != nil {
		return sentMessage{}, err
	}
	if got.Error != nil {
		return sentMessage{}, got.Error
	}
	return sentMessage{AgentID: got.AgentID, Message: got.Message, Accepted: got.Accepted, Queued: got.Queued}, nil
}

// watch shows an agent's output until it has nothing more to do, and then what it came to. All that it put out before
// that is stored by then, so what was not shown as it came can be read.
func (p *program) watch(ctx context.Context, agent capabilities.ID, s *shownOutput, timeout time.Duration) error {
	id := agent.String()
	showing, stop := context.WithCancel(ctx)
	defer stop()
	shown := make(chan error, 1)
	if p.options.json {
		shown <- nil
	} else {
		go func() { shown <- s.follow(showing, id) }()
	}
	f, err := p.waitFor(ctx, id, timeout)
	stop()
	<-shown // what is wrong there is wrong with the rest too
	switch {
	case ctx.Err() != nil:
		return &interrupted{message: "the agent goes on", hint: fmt.Sprintf("parley attach %[1]s%[2]s shows it again, parley interrupt %[1]s%[2]s ends its run", id, p.asFlag())}
	case err != nil:
		return err
	case !p.options.json:
		if err := s.rest(ctx, id); err != nil && parley.CodeOf(err) != parley.NotPermitted { // who may not see its output may write to it
			return err
		}
	}
	return p.sayHow(f)
}

// sayHow says what an agent came to that was watched: its output stands alone on standard output.
func (p *program) sayHow(f finished) error {
	switch {
	case p.options.json:
		if err := p.sayJSON(f); err != nil {
			return err
		}
	case f.Status != view.FinishIdle && f.Status != view.FinishTimeout:
		fmt.Fprintln(p.stderr, f.line())
		if f.Status == view.FinishPermission {
			fmt.Fprintf(p.stderr, "hint: parley permit allow %[1]s%[2]s, or: parley permit deny %[1]s%[2]s\n", shell.Word(terminal.Visible(f.called())), p.asFlag())
		}
	}
	return f.exit()
}
