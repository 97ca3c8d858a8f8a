package main

import (
	"context"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"parley"
	"parley/cmd/parley/shell"
	"parley/gateway"
	"parley/gateway/api"
	"parley/gateway/client"
)

// program is one run of the command line: its surroundings, and what its options say.
type program struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	args           []string
	env            func(string) (string, bool)

	options options
	hooked  bool // run by a coding agent, for which an exit status is an answer
	began   bool // arguments and options were understood: what fails now is no mistake of usage
}

// run runs the program and gives its exit code.
func (p *program) run(ctx context.Context) int {
	err := p.execute(ctx)
	if err == nil {
		return exitDone
	}
	code := p.report(ctx, err)
	if p.hooked {
		return exitDone // nothing is decided by a mistake: the status of wrong usage would deny every call
	}
	return code
}

func (p *program) execute(ctx context.Context) error {
	if err := p.checkArguments(); err != nil {
		return err
	}
	root := p.root()
	root.SetArgs(p.args)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	c, err := root.ExecuteContextC(ctx)
	p.hooked = isHook(c)
	return err
}

// checkArguments refuses what no operation could take, before anything is sent.
func (p *program) checkArguments() error {
	for _, a := range p.args {
		if !utf8.ValidString(a) {
			p.began = true
			return parley.Refuse(parley.InvalidArgument, "the argument %q is not valid UTF-8", a)
		}
	}
	return nil
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "parley",
		Short: "Durable mail and forms for agents",
		Long: `Parley is durable mail and forms for agents. One agent sends another a form and waits;
the answer arrives exactly once, whatever restarts or crashes in between.

  parley demo                 see the whole of it in a minute
  parley start                run a node in the background
  parley mkguest fae          make an agent
  parley form HOST 'Configure project settings' --as fae --field 'apiKey:API key'
  parley inbox                what waits for you
  parley respond-form 0       answer it`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: p.begin,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usage(c, "%v", err) })
	p.options.global(root.PersistentFlags())
	root.AddGroup(
		&cobra.Group{ID: groupDaemon, Title: "The node:"},
		&cobra.Group{ID: groupHolding, Title: "Agents and names:"},
		&cobra.Group{ID: groupMail, Title: "Mail:"},
		&cobra.Group{ID: groupWork, Title: "Agents at work:"},
		&cobra.Group{ID: groupNodes, Title: "Other nodes:"},
	)
	add(root, groupDaemon, p.serveCommand(), p.startCommand(), p.stopCommand(), p.restartCommand(), p.statusCommand(),
		p.verifyCommand(), p.backupCommand(), p.restoreCommand(), p.programsCommand(), p.doctorCommand(), p.versionCommand(),
		p.demoCommand(), p.benchCommand())
	add(root, groupHolding, p.makeCommand("host"), p.makeCommand("guest"), p.namesCommand(), p.showCommand(),
		p.locateCommand(), p.storeCommand(), p.renameCommand(), p.removeCommand(), p.copyCommand(),
		p.grantsCommand(), p.revokeCommand())
	add(root, groupMail, p.formCommand(), p.awaitCommand(), p.inboxCommand(), p.respondFormCommand(),
		p.declineCommand(), p.cancelCommand(), p.forwardCommand(), p.requestCommand(), p.resolveCommand(),
		p.rejectCommand(), p.sendCommand(), p.replyCommand(), p.adoptCommand(), p.dismissCommand(), p.logCommand())
	add(root, groupWork, p.lsCommand(), p.inspectCommand(), p.runCommand(), p.promptCommand(), p.waitCommand(), p.interruptCommand(),
		p.archiveCommand(), p.logsCommand(), p.attachCommand(), p.policyCommand(), p.quotaCommand(), p.approveCommand(), p.permitCommand(), p.allowCommand(), p.denyCommand(), p.rulesCommand(),
		p.hookCommand(), p.setupCommand())
	add(root, groupNodes, p.inviteCommand(), p.acceptCommand(), p.nodesCommand(), p.peersCommand())
	add(root, groupHolding, p.tokenCommand(), p.openCommand(), p.mcpCommand())
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(p.completionCommand())
	_ = root.RegisterFlagCompletionFunc("as", p.completeFlag(gateway.CompleteNames)) // the flag exists
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{formatText, formatTable, formatJSON, formatYAML}, cobra.ShellCompDirectiveNoFileComp))
	return root
}

const (
	groupDaemon  = "daemon"
	groupHolding = "holding"
	groupMail    = "mail"
	groupWork    = "work"
	groupNodes   = "nodes"
)

func add(root *cobra.Command, group string, commands ...*cobra.Command) {
	for _, c := range commands {
		c.GroupID = group
		if c.Args == nil {
			c.Args = cobra.NoArgs
		}
		root.AddCommand(c)
	}
}

// begin settles the options before a command runs: those not given are taken from the environment.
func (p *program) begin(c *cobra.Command, _ []string) error {
	if err := fromEnvironment(c, p.env); err != nil {
		return err
	}
	if err := p.options.settle(c, p.env); err != nil {
		return err
	}
	p.began = true
	return nil
}

// client gives a client of the node on the state folder, which makes a call once. Its requests say for whom they are.
func (p *program) client() *client.Client {
	return p.clientOf(client.Options{Patience: -1})
}

// patience is how long a wait outlasts its node: long enough for a restart.
const patience = 15 * time.Second

// waiter gives a client for waits, which go on through restarts of the node. known says that the node was there a
// moment ago; one that was not is not waited for.
func (p *program) waiter(known bool) *client.Client {
	return p.clientOf(client.Options{As: p.options.as, Patience: patience, Known: known})
}

func (p *program) clientOf(o client.Options) *client.Client {
	o.Socket = p.options.socket()
	c, err := client.New(o)
	if err != nil {
		panic(err) // the options are those of a socket
	}
	return c
}

// call performs one operation.
func (p *program) call(ctx context.Context, operation string, req, resp any) error {
	c := p.client()
	defer c.Close()
	return c.Call(ctx, operation, req, resp)
}

func (p *program) acting() api.Acting { return api.Acting{As: p.options.as} }

// asFlag is how the agent that the program acts for is given on a command line.
func (p *program) asFlag() string {
	if p.options.as == "" {
		return ""
	}
	return " --as " + shell.Word(p.options.as)
}

// interactive reports whether a person sits at a terminal.
func (p *program) interactive() bool {
	in, ok := p.stdin.(*os.File)
	if !ok || !term.IsTerminal(in.Fd()) {
		return false
	}
	out, ok := p.stdout.(*os.File)
	return ok && term.IsTerminal(out.Fd())
}
