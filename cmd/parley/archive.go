package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

// archiveOptions are the options of parley log archive.
type archiveOptions struct {
	before past
	list   bool
	move   bool
	fetch  bool
	to     string
	from   string
}

// past is a flag for an instant: RFC 3339, a date, a Unix time, or a duration before now.
type past struct {
	at   time.Time
	text string
}

func (p *past) String() string { return p.text }
func (p *past) Type() string   { return "age" }

// Set implements pflag.Value.
func (p *past) Set(s string) error {
	at, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		at, err = time.ParseInLocation(time.DateOnly, s, time.Local)
	}
	unix, isUnix := terminal.UnixTime(s)
	switch {
	case isUnix:
		at = unix
	case err != nil:
		age, err := parseDuration(s)
		if err != nil {
			return fmt.Errorf("%q is neither an age, as 90d, nor a date, as 2026-01-31", s)
		}
		at = time.Now().Add(-age)
	}
	p.at, p.text = at, s
	return nil
}

func archiveAgentCommand(env *environment) *cobra.Command {
	return agentCommand(env, "archive", api.ArchiveAgent, "Archive an agent",
		"Archives an agent: ends its run, takes back what it asks, and gives it nothing more to work on. Its log stays.")
}

// archiveCommand is the earlier command for both: it archives an agent if it is named.
func archiveCommand(env *environment) *cobra.Command {
	c, agent := archiveLogCommand(env), archiveAgentCommand(env)
	c.Use = "archive AGENT | --list | --before AGE …"
	ofLog, check := c.RunE, c.Args
	isOfAgent := func(c *cobra.Command) bool {
		return !slices.ContainsFunc([]string{"list", "before", "move", "fetch", "to", "from"}, c.Flags().Changed)
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if isOfAgent(c) {
			return agent.Args(c, args)
		}
		return check(c, args)
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if isOfAgent(c) {
			return agent.RunE(c, args)
		}
		return ofLog(c, args)
	}
	c.ValidArgsFunction = agent.ValidArgsFunction
	return c
}

func archiveLogCommand(env *environment) *cobra.Command {
	var o archiveOptions
	c := &cobra.Command{
		Use:   "archive --list | --before AGE [--to PLACE] | --move [SEGMENT…] --to PLACE | --fetch [SEGMENT…] [--from PLACE]",
		Short: "Archive the beginning of the node's log",
		Long: `With --before it moves the beginning of the node's log to compressed segment files in the state folder, while the node
runs. Nothing that can be seen changes: old messages are read from the segments. AGE is a time span, as 90d, or a date.
The newest part of the log stays, and less than 4 MiB is not archived. --list shows the segments.

With --move it copies segments to PLACE, reads them back, compares them, and then removes them here. What is only in them
is refused with ARCHIVED until --fetch brings them back, from PLACE or from where each was moved to. A segment is named by
its first commit; without one, all are meant. PLACE is a folder at the node, or s3://BUCKET/PREFIX. The node finds the server and the credentials of a bucket
where AWS's tools do: AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials.`,
		Example: `  parley log archive --before 90d
  parley log archive --list
  parley log archive --move --to s3://logs/parley
  parley log archive --fetch 1`,
		Args:              func(c *cobra.Command, args []string) error { return o.check(c, args) },
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, args []string) error { return o.run(env, c, args) },
	}
	f := c.Flags()
	f.Var(&o.before, "before", "archive the log from before this `age` or date")
	f.BoolVar(&o.list, "list", false, "list the segments of the archive")
	f.BoolVar(&o.move, "move", false, "move segments to another place")
	f.BoolVar(&o.fetch, "fetch", false, "bring segments back from another place")
	f.StringVar(&o.to, "to", "", "the `place` to move segments to")
	f.StringVar(&o.from, "from", "", "the `place` to bring segments back from (default: where they were moved to)")
	return c
}

// check checks the arguments and which options go together.
func (o *archiveOptions) check(c *cobra.Command, args []string) error {
	chosen := 0
	for _, is := range []bool{o.list, o.before.text != "", o.move, o.fetch} {
		if is {
			chosen++
		}
	}
	switch {
	case chosen > 1:
		return usage(c, "--list, --before, --move and --fetch do not go together")
	case chosen == 0 && (o.to != "" || o.from != ""):
		return usage(c, "--to is for --before and --move, and --from for --fetch")
	case chosen == 0:
		return usage(c, "missing: --list, --before, --move or --fetch")
	case (o.list || o.before.text != "") && len(args) > 0:
		return exactly()(c, args)
	case o.move && o.to == "":
		return usage(c, "--move needs --to")
	case o.to != "" && (o.list || o.fetch), o.from != "" && !o.fetch:
		return usage(c, "--to is for --before and --move, and --from for --fetch")
	}
	return nil
}

// run performs a command on the journal's archive.
func (o *archiveOptions) run(env *environment, c *cobra.Command, args []string) error {
	text := func(got view.Archive) string { return archiveText(got, o.before.text != "") }
	switch {
	case o.before.text != "":
		return perform(c.Context(), env, api.ArchiveJournal, api.ArchiveJournalRequest{Acting: env.acting(), Before: capabilities.At(o.before.at), To: place(o.to)}, text)
	case o.move, o.fetch:
		operation := api.MoveSegments
		r := api.MoveSegmentsRequest{Acting: env.acting(), Place: place(o.to)}
		if o.fetch {
			operation, r.Place = api.FetchSegments, place(o.from)
		}
		for _, a := range args {
			n, err := strconv.ParseUint(a, 10, 64)
			if err != nil || n == 0 {
				return parley.Refuse(parley.InvalidArgument, "%.80q is no segment", a).WithHint("parley log archive --list shows the segments")
			}
			r.Segments = append(r.Segments, n)
		}
		return perform(c.Context(), env, operation, r, text)
	}
	return perform(c.Context(), env, api.ListArchive, api.NodeRequest{Acting: env.acting()}, text)
}

// place returns a place for the node, whose working directory is another.
func place(s string) string {
	if s == "" || strings.Contains(s, "://") {
		return s
	}
	if whole, err := filepath.Abs(s); err == nil {
		return whole
	}
	return s
}

func archiveText(a view.Archive, made bool) string {
	var b strings.Builder
	if made {
		if a.New == 0 {
			b.WriteString("nothing to archive\n")
		} else {
			fmt.Fprintf(&b, "archived %d commits\n", a.New)
		}
	}
	if a.Last == 0 {
		return b.String() + "nothing is archived"
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SEGMENT\tLAST\tFROM\tTO\tBYTES\tPLACE")
	for _, s := range a.Segments {
		where := "here"
		if !s.Here {
			where = cmp.Or(terminal.Visible(s.Place), "elsewhere")
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t%d\t%s\n", s.First, s.Last, s.From.Std().Local().Format(time.DateOnly), s.To.Std().Local().Format(time.DateOnly), s.Bytes, where)
	}
	_ = w.Flush() // into memory
	fmt.Fprintf(&b, "archived up to commit %d: %d bytes in segments, %d bytes of states", a.Last, a.Bytes, a.Checkpoint)
	return b.String()
}
