package main

import (
	"github.com/spf13/cobra"

	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/api"
)

func (p *program) sendCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "send RECIPIENT TEXT",
		Short: "Send a message, with references",
		Long: `Sends a message. @name in the text carries what the agent holds under that name, @edge:name the same under
another word. The recipient may keep it with "parley adopt". \@ is a plain @, and so is one inside a word.`,
		Example: `  parley send bob 'meet @alice, my address is me@example.com'
  parley send bob 'here is the @worker:build/worker-3' --as fae`,
		Args:              p.exactly("RECIPIENT", "TEXT"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			var sent view.Sent
			err := p.call(c.Context(), "send", api.SendRequest{Acting: p.acting(), Recipient: args[0], Text: args[1]}, &sent)
			if err != nil {
				return err
			}
			p.noteUnreachable(sent.Unreachable, terminal.Quoted(args[0]))
			return p.say(sent, sent.Message.String)
		},
	}
}

func (p *program) replyCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "reply NUMBER TEXT",
		Short:             "Reply to a message",
		Long:              "Replies to whoever sent a message, also where the agent has no name for them. The text is as with send.",
		Example:           "  parley reply 0 'got it' --as bob",
		Args:              p.exactly("NUMBER", "TEXT"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteMessages),
		RunE: func(c *cobra.Command, args []string) error {
			var sent view.Sent
			err := p.call(c.Context(), "reply", api.ReplyRequest{
				Acting: p.acting(), Subject: api.About(args[0]), Text: args[1],
			}, &sent)
			if err != nil {
				return err
			}
			p.noteUnreachable(sent.Unreachable, "whoever sent "+terminal.Visible(args[0]))
			return p.say(sent, sent.Message.String)
		},
	}
}

func (p *program) adoptCommand() *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "adopt NUMBER EDGE",
		Short: "Keep a reference from a message",
		Long:  "Keeps what a message carries under the word EDGE, as --name or under that word.",
		Example: `  parley inbox --as bob        0. "alice" sent "my address: @me" at …
  parley adopt 0 me --name alice --as bob`,
		Args:              p.exactly("NUMBER", "EDGE"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteMessages),
	}
	c.Flags().StringVar(&name, "name", "", "hold it under this `name` (default: EDGE)")
	c.RunE = func(c *cobra.Command, args []string) error {
		err := p.call(c.Context(), "adopt", api.AdoptRequest{
			Acting: p.acting(), Subject: api.About(args[0]), Edge: args[1], Name: name,
		}, nil)
		if err != nil {
			return err
		}
		held := name
		if held == "" {
			held = args[1]
		}
		return p.say(map[string]string{"name": held}, silent)
	}
	return c
}

func (p *program) dismissCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dismiss NUMBER",
		Short: "Drop a message from view",
		Long: `Drops a message from the inbox. It keeps its number and stays in the log and in "inbox --all"; a form that
is dismissed stays open.`,
		Example:           "  parley dismiss 2",
		Args:              p.exactly("NUMBER"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteMessages),
		RunE: func(c *cobra.Command, args []string) error {
			err := p.call(c.Context(), "dismiss", api.MessageRequest{Acting: p.acting(), Subject: api.About(args[0])}, nil)
			if err != nil {
				return err
			}
			return p.say(map[string]string{"dismissed": args[0]}, silent)
		},
	}
}

// silent is the text of a command that says nothing when all is well.
func silent() string { return "" }
