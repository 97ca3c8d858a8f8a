package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
)

// Defaults.
const (
	defaultListen   = "127.0.0.1:7420"
	defaultLogLevel = "info"
	defaultCallers  = 64
	defaultAgents   = 1000
	defaultDuration = 5 * time.Second
	defaultReady    = 15 * time.Second // how long start waits for the node
	pollEvery       = 20 * time.Millisecond
	standbyPause    = time.Second      // before a standby that could not begin waits again
	drainTime       = 10 * time.Second // longest time that a stopping node waits for requests under way
	variablePrefix  = "PARLEY_"        // of the environment variables that are options
	formatText      = "text"
	formatTable     = "table" // the same as text
	formatJSON      = "json"
	formatYAML      = "yaml"
	formatWide      = "wide" // text with whole IDs
	maxLogFile      = 16 << 20
)

// options are the options of every command.
type options struct {
	state  stateFolder // absolute once settled
	as     string
	output string
	json   bool
	yaml   bool // of JSON
	wide   bool // of text
	quiet  bool // only IDs, of text
}

func (o *options) global(f *pflag.FlagSet) {
	f.StringVar((*string)(&o.state), "state", "", "state `folder` (default $XDG_STATE_HOME/parley or ~/.local/state/parley)")
	f.StringVar(&o.as, "as", "", "act as the agent that the node's host holds under this `name` (default HOST)")
	f.StringVarP(&o.output, "output", "o", formatText, "output `format`: text (or table), wide (with whole IDs), json or yaml")
	f.BoolVar(&o.json, "json", false, "the same as -o json")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print only IDs, where there are any")
}

// settle completes the options after flags and environment were read.
func (o *options) settle(c *cobra.Command, env func(string) (string, bool)) error {
	switch o.output {
	case formatText, formatTable:
	case formatWide:
		o.wide = true
	case formatJSON:
		o.json = true
	case formatYAML:
		o.json, o.yaml = true, true
	default:
		return usage(c, "unknown output format %q: want text, table, wide, json or yaml", o.output)
	}
	if o.state == "" {
		o.state = defaultState(env)
	}
	if o.state == "" {
		return usage(c, "there is no home folder to keep the state in: give one with --state")
	}
	state, err := filepath.Abs(string(o.state))
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	o.state = stateFolder(state)
	return nil
}

// ofPrograms returns the variables that the node sets for the programs of agents. They are no options, though such a
// program may run this one.
func ofPrograms() []string {
	return []string{variablePrefix + "AGENT", variablePrefix + "RUN", variablePrefix + "MESSAGE", variablePrefix + "PROMPT"}
}

// fromArguments marks a flag that is set on the command line alone.
const fromArguments = "from-arguments"

// notFromEnvironment has a flag be set on the command line alone.
func notFromEnvironment(f *pflag.FlagSet, name string) {
	f.Lookup(name).Annotations = map[string][]string{fromArguments: {}}
}

// fromEnvironment sets options that were not given on the command line from variables, as --log-level from
// PARLEY_LOG_LEVEL. For an option that may be repeated, the variable has one value a line.
//
// A hook that a coding agent runs in a project takes none: the settings of the repository may set variables, and would say which node is
// asked, as whom, for how long, and what happens where nobody decides.
func fromEnvironment(c *cobra.Command, env func(string) (string, bool)) error {
	if project, _ := env("CLAUDE_PROJECT_DIR"); project != "" && isHook(c) {
		return nil
	}
	var failed error
	c.Flags().VisitAll(func(f *pflag.Flag) {
		name := variablePrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := env(name)
		if !ok || value == "" || f.Changed || f.Name == "help" || f.Annotations[fromArguments] != nil || slices.Contains(ofPrograms(), name) || failed != nil {
			return
		}
		values := []string{value}
		if f.Value.Type() == "stringArray" {
			values = strings.Split(strings.TrimSuffix(value, "\n"), "\n")
		}
		for _, v := range values {
			if err := c.Flags().Set(f.Name, v); err != nil {
				failed = usage(c, "%s: %v", name, err)
				return
			}
		}
	})
	return failed
}

// duration is a flag for a time span: 30 (seconds), 30s, 2h30m, 3d.
type duration time.Duration

func (d *duration) String() string {
	if *d == 0 {
		return "0"
	}
	return capabilities.Span(time.Duration(*d))
}
func (d *duration) Type() string { return "duration" }

func (d *duration) Set(s string) error {
	got, err := parseDuration(s)
	if err != nil {
		return err
	}
	*d = duration(got)
	return nil
}

// checkCount refuses how many are wanted that is none, or more than come at once: what is cut without a word looks like all.
func checkCount(flag string, n, most int, hint string) error {
	if n < 1 || n > most {
		return parley.Refuse(parley.InvalidArgument, "--%s %d: give a number from 1 to %d", flag, n, most).WithHint("%s", hint)
	}
	return nil
}

func parseDuration(s string) (time.Duration, error) {
	text := s
	if at, ok := terminal.UnixTime(s); ok {
		return 0, fmt.Errorf("%s is the Unix time of %s, and not a duration: want 30s, 2h30m or 3d", s, at.UTC().Format(time.RFC3339))
	}
	if text != "" && strings.Trim(text, "0123456789.") == "" {
		text += "s"
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if d, err := time.ParseDuration(days + "h"); err == nil && d >= 0 && d < 1e5*time.Hour {
			return 24 * d, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration: want 30s, 2h30m or 3d", s)
	}
	return d, nil
}

// moment is a flag for an instant, as terminal.Later reads it, or a duration from now.
type moment struct {
	at   time.Time
	text string
}

func (m *moment) String() string { return m.text }
func (m *moment) Type() string   { return "time" }

func (m *moment) Set(s string) error {
	if d, err := parseDuration(s); err == nil {
		m.at, m.text = time.Now().Add(d), s
		return nil
	}
	at, err := terminal.Later(s, time.Now())
	if err != nil || at.IsZero() {
		return fmt.Errorf("%q is neither a duration, as 2h, nor a time, as 14:00, tomorrow or 2026-01-31T12:00:00Z", s)
	}
	m.at, m.text = at, s
	return nil
}

// in returns the instant that the text means in a time zone; the machine's for "". A duration means the same in all.
func (m *moment) in(zone string) (time.Time, error) {
	if _, err := parseDuration(m.text); err == nil || zone == "" {
		return m.at, nil
	}
	where, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return time.Time{}, parley.Refuse(parley.InvalidArgument, "unknown time zone %s", terminal.Quoted(zone)).WithHint("as in Europe/Berlin")
	}
	return terminal.Later(m.text, time.Now().In(where))
}

// pastMoment is a moment whose duration counts back from now.
type pastMoment struct{ moment }

func (m *pastMoment) Set(s string) error {
	if d, err := parseDuration(s); err == nil {
		m.at, m.text = time.Now().Add(-d), s
		return nil
	}
	return m.moment.Set(s)
}

// readInput reads a file, or standard input for "-".
func (env *environment) readInput(path string) ([]byte, error) {
	if path == "-" {
		return readAll(env.stdin, "standard input")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "cannot read %s: %v", path, terminal.Reason(err))
	}
	defer f.Close() //nolint:errcheck // only read from
	return readAll(f, path)
}

// atLeast accepts the named arguments and any number of others.
func atLeast(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < len(names) {
			return usage(c, "missing: %s", strings.Join(names[len(args):], ", "))
		}
		return nil
	}
}

// withText accepts to whom or what a text is, and the text unless it is an option.
func withText(several bool, to string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		names := []string{to, "TEXT"}
		if c.Flags().Changed("text") {
			names = names[:1]
		}
		if several {
			return atLeast(names...)(c, args)
		}
		return exactly(names...)(c, args)
	}
}

// exactly accepts as many arguments as are named.
func exactly(names ...string) cobra.PositionalArgs {
	return between(len(names), len(names), names...)
}

// between accepts at least and at most so many of the named arguments.
func between(least, most int, names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(c, "missing: %s", strings.Join(names[len(args):least], ", "))
		case len(args) > most && most == 0 && c.HasAvailableSubCommands():
			return usage(c, "unknown command %q for %q", args[0], c.CommandPath())
		case len(args) > most && most == 0:
			return usage(c, "%q is one argument too many: want none", args[0])
		case len(args) > most:
			return usage(c, "%q is one argument too many: want %s", args[most], strings.Join(slices.Clone(names), " "))
		}
		return nil
	}
}
