package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"parley"
	"parley/cmd/parley/editor"
	"parley/cmd/parley/hook"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/mcp"
)

func mcpCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve an agent's mail to a language model (MCP)",
		Long: `Speaks the Model Context Protocol on standard input and output: the agent's mail as tools, with which a model asks
people and agents, waits for their answers, and answers what it is asked. A client of the protocol starts it.

Over HTTP a node offers the same at /mcp, for who shows the agent's token.`,
		Example: `  parley mkguest fae
  parley mcp --as fae        # what a client's settings have as the command of a server`,
	}
	var coder string
	c.Flags().StringVar(&coder, "for", "", "act for the guest of the folder that this `agent` works in, as its hook does: "+coderNames())
	completeFlagOf(c, "for", coders()...)
	c.RunE = func(c *cobra.Command, _ []string) error {
		user := &toolUser{env: env, register: func(ctx context.Context) (string, error) { return register(ctx, c, env, coder) }}
		defer user.close()
		for _, agent := range hook.Agents() {
			if agent.Name == coder {
				env.checkNode(agent)
			}
		}
		log := slog.New(slog.NewTextHandler(env.stderr, nil))
		// An unknown agent fails here, where its user looks, and not at the first call of a model. But a coding agent starts its
		// servers once: one that ends because the node restarts at that moment would be missing for the whole session.
		if err := api.ListNames.Run(c.Context(), user, api.ListNamesRequest{}); err != nil {
			if coder == "" || parley.CodeOf(err) != parley.NotRunning && parley.CodeOf(err) != parley.Timeout {
				return err
			}
			log.Warn("the node is away; the tools look for it at each call", "error", err)
		}
		ctx, cancel := context.WithCancel(c.Context())
		defer cancel()
		if coder == hook.Codex().Name && env.options.as == "" { // no other program is woken by what it has started
			go hook.WakeCodex(ctx, hook.Options{Dial: env.dial}, func(err error) { // ends with the client
				log.Warn("a session with mail is not woken", "error", err)
			})
		}
		return serveMCP(ctx, env, user, log)
	}
	return c
}

func acpCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "acp [AGENT]",
		Short: "Serve the inbox to an editor (ACP)",
		Long: `Speaks the Agent Client Protocol on standard input and output, as an agent. An editor starts it. What waits in the inbox
is asked in the editor: calls as permission requests, forms as its forms. What you type is a message to AGENT, or a
command: /inbox, /answer, /resolve, /decline, /send.`,
		Example: `  parley acp builder         # what an editor's settings have as the command of an agent
  parley acp --as fae`,
		Args:              between(0, 1, "[AGENT]"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			node := env.clientOf(client.Options{As: env.options.as, Patience: -1})
			defer node.Close()
			// An unknown agent fails here, where its user looks.
			if err := api.Locate.Run(c.Context(), node, api.NameRequest{Name: "@self"}); err != nil {
				return err
			}
			o := editor.Options{Node: node, Version: version(), Log: slog.New(slog.NewTextHandler(env.stderr, nil))}
			if len(args) > 0 {
				agent, err := node.Agent(c.Context(), args[0])
				if err != nil {
					return err
				}
				o.Agent = string(agent.ID)
			}
			return editor.Run(c.Context(), o, env.stdin, env.stdout)
		},
	}
}

// register has the command act for the session of a coding agent, or for the guest of the folder that it works in. Without a
// name of one it does nothing. It returns the agent that forms of the session are to be found at.
func register(ctx context.Context, c *cobra.Command, env *environment, name string) (asker string, err error) {
	if name == "" || env.options.as != "" {
		return env.options.as, nil
	}
	for _, agent := range hook.Agents() {
		if agent.Name == name {
			done, err := agent.Register(ctx, hook.Options{Env: env.lookup, Dial: env.dial, Holder: env.options.state.nodeProcess, Unheard: env.options.state.in(api.UnheardFolder)})
			if asker = cmp.Or(done.Session, done.Name); !done.Bound { // else the node knows whom the process acts for, also after a clear
				env.options.as = asker
			}
			return asker, err
		}
	}
	return "", usage(c, "--for %s: %s", name, coderNames())
}

// coders returns the names of the coding agents that have hooks.
func coders() (names []string) {
	for _, agent := range hook.Agents() {
		names = append(names, agent.Name)
	}
	return names
}

// coderNames returns them as a list in words.
func coderNames() string {
	names := coders()
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// serveMCP serves a client on standard input and output.
func serveMCP(ctx context.Context, env *environment, user *toolUser, log *slog.Logger) error {
	key := make([]byte, 32) // seals need not outlive this process, which ends with its client
	if _, err := rand.Read(key); err != nil {
		return err
	}
	in, ok := env.stdin.(io.ReadCloser)
	if !ok {
		in = io.NopCloser(env.stdin)
	}
	err := mcp.Run(ctx, user, mcp.Options{Version: version(), Key: key, Log: log}, in, writeCloser{env.stdout})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// writeCloser is output that Close leaves open.
type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }

// toolUser is the agent that the tools act for, through the node's socket. It is known once it has registered, which the first call does
// that finds the node.
type toolUser struct {
	env      *environment
	register func(ctx context.Context) (asker string, err error)

	mu     sync.Mutex
	client *client.Client // nil before it is known
	asker  string         // the agent's name, where the page shows its forms
}

// Identity implements mcp.Agent. There is only one agent.
func (u *toolUser) Identity() string { return "" }

// May implements mcp.Agent. A process that may open the socket may do everything.
func (u *toolUser) May(string) error { return nil }

// Call implements mcp.Agent.
func (u *toolUser) Call(ctx context.Context, operation string, request, response any) error {
	node, _, err := u.known(ctx)
	if err != nil {
		return err
	}
	return node.Call(ctx, operation, request, response)
}

// known returns the client of the agent, and the agent's name.
func (u *toolUser) known(ctx context.Context) (*client.Client, string, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.client == nil {
		asker, err := u.register(ctx)
		if err != nil {
			return nil, "", err
		}
		u.asker = asker
		u.client = u.env.clientOf(client.Options{As: u.env.options.as, Patience: -1})
	}
	return u.client, u.asker, nil
}

func (u *toolUser) close() {
	if u.client != nil {
		u.client.Close()
	}
}

// Link implements mcp.Agent.
func (u *toolUser) Link(ctx context.Context, form string) string {
	_, asker, err := u.known(ctx)
	if err != nil {
		return ""
	}
	at, err := api.Status.Do(ctx, u.env, api.NodeRequest{})
	if err != nil || at.Listen == api.Off {
		return ""
	}
	scheme := "http"
	if at.TLSCert != "" {
		scheme = "https"
	}
	return api.FormLink(scheme+"://"+at.Listen, asker, form)
}
