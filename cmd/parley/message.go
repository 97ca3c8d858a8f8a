package main

import (
	"github.com/spf13/cobra"

	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

func sendCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "send RECIPIENT TEXT",
		Short: "Send a message, with references",
		Long: `Sends a message. @name in the text carries what the agent holds under that name, @edge:name the same under
another word. The recipient may keep it with "parley adopt". \@ is a plain @, and so is one inside a word.`,
		Example: `  parley send bob 'meet @alice, my address is me@example.com'
  parley send bob 'here is the @worker:build/worker-3' --as fae`,
		Args:              exactly("RECIPIENT", "TEXT"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			var sent view.Sent
			err := env.call(c.Context(), "send", api.SendRequest{Acting: env.acting(), Recipient: args[0], Text: args[1]}, &sent)
			if err != nil {
				return err
			}
			env.noteUnreachable(sent.Unreachable, terminal.Quoted(args[0]))
			return env.print(sent, sent.Message.String)
		},
	}
}

func replyCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:               "reply NUMBER TEXT",
		Short:             "Reply to a message",
		Long:              "Replies to whoever sent a message, also where the agent has no name for them. The text is as with send.",
		Example:           "  parley reply 0 'got it' --as bob",
		Args:              exactly("NUMBER", "TEXT"),
		ValidArgsFunction: completeArguments(env, api.CompleteMessages),
		RunE: func(c *cobra.Command, args []string) error {
			var sent view.Sent
			err := env.call(c.Context(), "reply", api.ReplyRequest{
				Acting: env.acting(), FormRef: api.RefTo(args[0]), Text: args[1],
			}, &sent)
			if err != nil {
				return err
			}
			env.noteUnreachable(sent.Unreachable, "whoever sent "+terminal.Visible(args[0]))
			return env.print(sent, sent.Message.String)
		},
	}
}

func adoptCommand(env *environment) *cobra.Command {
	var name string
	c := &cobra.Command{
		Use:   "adopt NUMBER EDGE [NAME]",
		Short: "Keep a reference from a message",
		Long:  "Keeps what a message carries under the word EDGE, as NAME or under that word.",
		Example: `  parley inbox --as bob        0. "alice" sent "my address: @me" at …
  parley adopt 0 me alice --as bob`,
		Args:              between(2, 3, "NUMBER", "EDGE", "[NAME]"),
		ValidArgsFunction: completeAdopt(env),
	}
	c.Flags().StringVar(&name, "name", "", "the same as NAME: hold it under this `name` (default: EDGE)")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 2 {
			if name != "" && name != args[2] {
				return usage(c, "give the NAME once")
			}
			if name = args[2]; name == "" {
				return usage(c, "the NAME is empty")
			}
		}
		err := env.call(c.Context(), "adopt", api.AdoptRequest{
			Acting: env.acting(), FormRef: api.RefTo(args[0]), Edge: args[1], Name: name,
		}, nil)
		if err != nil {
			return err
		}
		held := name
		if held == "" {
			held = args[1]
		}
		return env.print(map[string]string{"name": held}, silent)
	}
	return c
}

func dismissCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "dismiss NUMBER",
		Short: "Drop a message from view",
		Long: `Drops a message from the inbox. It keeps its number and stays in the log and in "inbox --all"; a form that
is dismissed stays open.`,
		Example:           "  parley dismiss 2",
		Args:              exactly("NUMBER"),
		ValidArgsFunction: completeArguments(env, api.CompleteMessages),
		RunE: func(c *cobra.Command, args []string) error {
			err := env.call(c.Context(), "dismiss", api.MessageRequest{Acting: env.acting(), FormRef: api.RefTo(args[0])}, nil)
			if err != nil {
				return err
			}
			return env.print(map[string]string{"dismissed": args[0]}, silent)
		},
	}
}

// silent is the text of a command without output.
func silent() string { return "" }
