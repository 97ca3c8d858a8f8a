//go:build !client

package main

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"net/url"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/setup"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/api"
	"parley/gateway/bridge"
	"parley/gateway/bridge/slack"
	"parley/gateway/bridge/webhook"
	"parley/gateway/qr"
)

func tokenCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke tokens and browser sessions",
		Example: `  parley token create --as fae --scope ask,read --expires 30d
  parley token ls --as fae
  parley token revoke 01JQ…@N…`,
	}
	c.AddCommand(tokenCreateCommand(env), tokenListCommand(env), tokenRevokeCommand(env))
	return c
}

func tokenCreateCommand(env *environment) *cobra.Command {
	var (
		scopes  []string
		expires moment
		note    string
	)
	c := &cobra.Command{
		Use:     "create",
		Short:   "Create a token",
		Example: "  parley token create --as fae --scope ask,read --expires 30d",
		Long: `Prints a token by which a program acts for the agent (--as), on the address that the node listens on. It is
shown this once, and kept only as a digest. Scopes: ask sends mail, answer settles what others asked, read
looks, reveal opens the secrets that the agent was answered with, admin changes what the agent holds. Without
--scope it is good for all but admin, and for the node's host not for reveal. A token that is made by another is
good for no more and no longer than that, and ends with it.`,
		Args: exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			made, err := api.CreateToken.Do(c.Context(), env, api.CreateTokenRequest{
				Acting: env.acting(), Scopes: scopes, Until: capabilities.At(expires.at), Note: note,
			})
			if err != nil {
				return err
			}
			return env.print(made, func() string { return made.Text })
		},
	}
	c.Flags().StringSliceVar(&scopes, "scope", nil, "what it is good for: `ask,answer,read,reveal,admin`; default all but admin, and reveal for guests alone")
	c.Flags().Var(&expires, "expires", "it is good until then: a `time` from now (30d) or a moment; default for ever")
	c.Flags().StringVar(&note, "note", "", "what it is for, in `words`")
	return c
}

func tokenListCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List tokens and browser sessions",
		Example: "  parley token ls --as fae",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			tokens, err := api.All(c.Context(), env, api.ListTokens, api.ListTokensRequest{Acting: env.acting()},
				func(r api.ListTokensResponse) []view.Token { return r.Tokens })
			if err != nil {
				return err
			}
			return printList(env, tokens, "no tokens", func() string {
				lines := make([]string, len(tokens))
				for i, t := range tokens {
					lines[i] = tokenLine(t, env.screen())
				}
				return strings.Join(lines, "\n")
			})
		},
	}
}

func tokenLine(t view.Token, s terminal.Screen) string {
	until := "for ever"
	if t.Until != 0 {
		until = "until " + s.Moment(t.Until.Std(), t.Until.String())
	}
	kind := "token"
	if t.Session {
		kind = "session, used " + s.Time(t.Used.Std(), t.Used.String())
	}
	line := fmt.Sprintf("%s  %s  %s", kind, strings.Join(slices.Sorted(slices.Values(t.Scopes)), ","), until)
	if t.Note != "" && s.Width > 0 {
		line += "  " + terminal.Visible(t.Note)
	}
	if !t.By.IsZero() {
		line += "  by " + t.By.String()
	}
	if t.Note != "" && s.Width == 0 {
		line += "  " + terminal.Visible(t.Note)
	}
	return s.Fit(listedID(t.ID, s) + "  " + line)
}

func tokenRevokeCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a token or a session",
		Example: "  parley token revoke 01JQ…",
		Args:    exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := env.listedIDOf(c.Context(), args[0])
			if err != nil {
				return err
			}
			return change(env, c, api.RevokeToken, api.RevokeTokenRequest{Acting: env.acting(), Token: id}, args[0], "revoked "+terminal.Visible(args[0]))
		},
	}
}

func openCommand(env *environment) *cobra.Command {
	var quiet, pair bool
	var address string
	c := &cobra.Command{
		Use:   "open",
		Short: "Open the page in a browser",
		Long: `Prints a link that signs a browser in as the agent (--as; default the node's host), and opens it. The link is
good once, for two minutes. The session ends a day after its last use, and after two weeks at the latest: parley token ls
lists it, and parley token revoke or "Sign out" on the page ends it. With --qr the link is for another device, such as
a phone, and is drawn as a QR code: the node has to listen beyond this machine, or be reached at --address.`,
		Example: "  parley open\n  parley open --print --as fae\n  parley open --qr --address https://node.example",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			link, err := api.OpenLink.Do(c.Context(), env, api.OpenLinkRequest{Acting: env.acting()})
			if err != nil {
				return err
			}
			switch {
			case pair:
				return showPairing(env, link, address)
			case address != "":
				if link.URL, err = linkAt(link.URL, address); err != nil {
					return err
				}
			}
			if err := env.print(link, func() string { return link.URL }); err != nil || quiet || env.options.json {
				return err
			}
			if err := openBrowser(c.Context(), env, link.URL); err != nil {
				_, err = fmt.Fprintf(env.stderr, "parley: note: no browser could be opened (%v): open the link yourself\n", parley.AsError(err).Message)
				return err
			}
			return nil
		},
	}
	c.Flags().BoolVar(&quiet, "print", false, "print the link and open nothing")
	c.Flags().BoolVar(&pair, "qr", false, "draw the link for another device as a QR code, and open nothing")
	c.Flags().StringVar(&address, "address", "", "`address` at which the browser reaches this node, as https://node.example or http://localhost:7420")
	return c
}

// linkAt returns a link at another address of the node: such as that with a name, for which browsers have passkeys.
func linkAt(link, address string) (string, error) {
	to, err := url.Parse(address)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" || to.User != nil || to.RawQuery != "" || to.Fragment != "" {
		return "", parley.Refuse(parley.InvalidArgument, "%s is no address of a page, as http://localhost:7420", parley.Quoted(address, 100))
	}
	from, err := url.Parse(link)
	if err != nil {
		return "", notANode(err)
	}
	from.Scheme, from.Host, from.Path = to.Scheme, to.Host, strings.TrimSuffix(to.Path, "/")+from.Path
	return from.String(), nil
}

// showPairing prints a link for another device, and its QR code.
func showPairing(env *environment, link api.OpenLinkResponse, address string) (err error) {
	if link.URL, err = gateway.PairingLink(link.URL, address); err != nil {
		return err
	}
	screen := env.screen()
	code, err := qr.Terminal(link.URL, screen.Color)
	if err != nil {
		return err
	}
	return env.print(link, func() string {
		return fmt.Sprintf("%s\n%s\ngood once, until %s", code, link.URL, screen.Moment(link.Until.Std(), link.Until.String()))
	})
}

// openBrowser opens a link in the person's browser. All users of a machine see the arguments of every process. The
// browser gets a file that no other user can read, and that redirects to the link.
func openBrowser(ctx context.Context, env *environment, link string) error {
	opener := map[string]string{"darwin": "open", "windows": "explorer"}[runtime.GOOS]
	if opener == "" {
		opener = "xdg-open"
	}
	path, err := exec.LookPath(opener)
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "there is no %s here", opener)
	}
	lead, err := writeRedirect(env, link)
	if err != nil {
		return env.options.state.unwritable(err)
	}
	if err := exec.CommandContext(ctx, path, lead).Run(); err != nil {
		return parley.Refuse(parley.InvalidArgument, "%s: %v", opener, err)
	}
	return nil
}

// writeRedirect writes the file that redirects to a link. The file stays, since the browser does not tell when it was
// read. The link works once, and not for long.
func writeRedirect(env *environment, link string) (path string, err error) {
	page := fmt.Sprintf(`<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Parley</title>
<meta http-equiv="refresh" content="0; url=%[1]s"><p><a href="%[1]s">Sign in to Parley</a></p>
`, html.EscapeString(link))
	path = env.options.state.redirect()
	return path, setup.WriteFile(path, []byte(page), 0o600)
}

// bridgeCommand changes the settings of the bridges, which a running node reads again by itself.
func bridgeCommand(env *environment) *cobra.Command {
	c := &cobra.Command{
		Use:   "bridge",
		Short: "Send notices of open forms by mail, Slack, ntfy or webhook",
		Long: `Tells a receiver of each open form of the node's host, or of another agent by --as, and of how it ended. An approval has
buttons that answer it, once; parley grants lists them, and parley revoke ends one. A running node takes a change up by itself.`,
		Example: `  parley bridge add ntfy - --address https://node.example < topic
  parley bridge add mail smtps://mail.example --from parley@example.org --to me@example.org --login me --token-file password
  parley bridge add slack https://team.slack.com/archives/C0123ABCDEF --token-file tokens
  parley bridge add webhook https://ops.example/parley --name ops
  parley bridge add ntfy - --as bob --name bob --address https://node.example < topic-of-bob
  parley bridge list
  parley bridge drop ops`,
	}
	c.AddCommand(bridgeAddCommand(env), bridgeListCommand(env), bridgeDropCommand(env))
	return c
}

// addedBridge is what is shown of a bridge.
type addedBridge struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	As      string `json:"as,omitempty"` // the agent whose forms are told; none for the node's host
	URL     string `json:"url"`
	To      string `json:"to,omitempty"` // of mail: the recipient
	Network string `json:"network"`
	Key     string `json:"publicKey,omitempty"` // of a webhook: checks its signatures v1a
	Shared  string `json:"secret,omitempty"`    // of a webhook that was just added: checks its signatures v1
	Gone    bool   `json:"gone,omitempty"`      // the receiver wanted no more
}

func shownBridge(env *environment, b bridge.Config) (addedBridge, error) {
	shown := addedBridge{Name: b.Name, Kind: b.Kind, As: b.As, URL: b.URL, To: b.To, Network: cmp.Or(b.Network, string(bridge.Public))}
	if b.Kind == "push" { // its address is a secret, its key of no use to others
		if at, err := url.Parse(b.URL); err == nil {
			shown.URL = at.Scheme + "://" + at.Host
		}
	} else if b.Kind == "webhook" {
		key, err := webhook.ParseKey(b.Key)
		if err != nil {
			return shown, err
		}
		shown.Key = webhook.PublicKey(key)
	}
	var err error
	shown.Gone, err = bridge.IsGone(gateway.BridgeFile(env.options.state.bridges(), b.Name))
	return shown, err
}

func bridgeAddCommand(env *environment) *cobra.Command {
	var b bridge.Config
	var tokenFile string
	c := &cobra.Command{
		Use:   "add KIND URL",
		Short: "Add a bridge: mail, ntfy, slack or webhook",
		Long: `Adds a bridge. Whoever reads a topic of ntfy may press its buttons: choose a name that nobody guesses, or a server
of your own. The same goes for the links in a mail. The buttons lead to --address, where the receiver reaches this
node; by default that is the address on which it listens. A webhook is signed twice, with a new key and with a secret. The
key that checks the one is printed, and once the secret (whsec_) that checks the other, which most libraries know.
--token-file gives the secret that a receiver has already.

With --as, the person behind the bridge is that agent: it is told of the forms to that agent and to the groups that it is in, and
what it answers is that agent's vote, not the host's.

Mail goes to smtps://HOST, or smtp://HOST with STARTTLS. Both check the server's certificate. Only a server on this
machine (--network machine) may be without.

Slack takes the link of a channel, and two tokens: that of the app for Socket Mode (xapp-) and that of its bot (xoxb-),
each on a line of the file. docs/bridges.md has the rest.

All users of a machine see the arguments of every process: give tokens and passwords with --token-file, by standard
input, or in PARLEY_TOKEN. An address that is a secret, such as a topic of ntfy, comes from standard input with - as
its URL.`,
		Example: "  parley bridge add webhook https://hooks.example/parley\n  parley bridge add ntfy - --address https://node.example < topic",
		Args:    exactly("KIND", "URL"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			b.Kind, b.URL = args[0], args[1]
			if b.URL == "-" {
				if tokenFile == "-" {
					return usage(c, "standard input has the URL or the token, and not both")
				}
				if b.URL, err = readToken(env, "-"); err != nil {
					return err
				}
			}
			b.Name = cmp.Or(b.Name, b.Kind)
			if tokenFile != "" {
				if b.Token != "" {
					return usage(c, "--token and --token-file are one too many")
				}
				if b.Token, err = readToken(env, tokenFile); err != nil {
					return err
				}
			}
			if b.Kind == "webhook" {
				if b.Key, err = webhook.NewKey(); err != nil {
					return err
				}
				if v, _ := env.lookup(variablePrefix + "TOKEN"); v == b.Token && !webhook.IsShared(v) { // it is an agent's
					b.Token = webhook.NewShared()
				}
			}
			if b.Kind == "slack" {
				b.Key = slack.NewKey()
			}
			if err := gateway.CheckBridge(b); err != nil {
				return err
			}
			return addBridge(c.Context(), env, b)
		},
	}
	c.Flags().StringVar(&b.Name, "name", "", "`name` of the bridge (default: its kind)")
	c.Flags().StringVar(&b.Network, "network", "public", "the nearest `network` in which the receiver may be: public, private or machine")
	c.Flags().StringVar(&b.Address, "address", "", "`address` at which the receiver reaches this node, as https://node.example")
	c.Flags().StringVar(&tokenFile, "token-file", "", "`file` with the token or password for the receiver's server; - for standard input")
	c.Flags().StringVar(&b.Token, "token", "", "the `token` itself")
	_ = c.Flags().MarkHidden("token") // all users of the machine would see it: it is there for PARLEY_TOKEN
	c.Flags().StringVar(&b.From, "from", "", "of mail: the sender's `address`")
	c.Flags().StringVar(&b.To, "to", "", "of mail: the recipient's `address`")
	c.Flags().StringSliceVar(&b.Users, "user", nil, "of slack: a `user` who may answer, as U0123ABCDEF (default: all who see the channel)")
	c.Flags().StringVar(&b.Login, "login", "", "of mail: the `name` at the server")
	return c
}

// addBridge adds a bridge to the settings, and prints it.
func addBridge(ctx context.Context, env *environment, b bridge.Config) error {
	if err := env.checkOutside(ctx); err != nil {
		return err
	}
	if err := env.options.state.secure(); err != nil {
		return err
	}
	if as := env.acting(); as.As != "" && capabilities.Special(as.As) != capabilities.NameHost {
		found, err := api.FetchAgent.Do(ctx, env, api.AgentRequest{Acting: as, AgentID: "SELF"})
		if err != nil {
			return err
		}
		b.As, b.Agent = as.As, found.Agent.ID.String()
	}
	shown, err := shownBridge(env, b)
	if err == nil {
		err = bridge.Add(env.options.state.bridges(), b)
	}
	if err != nil {
		return err
	}
	if b.Kind == "webhook" {
		shown.Shared = b.Token
	}
	return env.print(shown, func() string { return bridgeLine(shown) })
}

func bridgeLine(b addedBridge) string {
	line := fmt.Sprintf("%s  %s  %s  %s", b.Name, b.Kind, terminal.Visible(b.URL), b.Network)
	if b.To != "" {
		line += "  to " + terminal.Visible(b.To)
	}
	if b.As != "" {
		line += "  for " + terminal.Quoted(b.As)
	}
	if b.Key != "" {
		line += "  signed by " + b.Key
	}
	if b.Shared != "" {
		line += "\nsecret of its receiver, which is not shown again: " + b.Shared
	}
	if b.Gone {
		line += "  ended: the receiver wants no more"
	}
	return line
}

func bridgeListCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the bridges",
		Example: "  parley bridge list",
		Args:    exactly(),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := env.checkOutside(c.Context()); err != nil {
				return err
			}
			all, err := bridge.ReadConfigs(env.options.state.bridges())
			if err != nil {
				return err
			}
			shown := []addedBridge{}
			for _, b := range all {
				s, err := shownBridge(env, b)
				if err != nil {
					return err
				}
				shown = append(shown, s)
			}
			return printList(env, shown, "no bridges", func() string {
				lines := make([]string, len(shown))
				for i, b := range shown {
					lines[i] = bridgeLine(b)
				}
				return strings.Join(lines, "\n")
			})
		},
	}
}

func bridgeDropCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:     "drop NAME",
		Aliases: []string{"rm"},
		Short:   "Remove a bridge, with the buttons that it made",
		Example: "  parley bridge drop phone",
		Args:    exactly("NAME"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := env.checkOutside(c.Context()); err != nil {
				return err
			}
			if err := bridge.Remove(env.options.state.bridges(), args[0]); err != nil {
				return err
			}
			return env.print(map[string]string{"name": args[0]}, func() string { return "dropped " + terminal.Quoted(args[0]) })
		},
	}
}
