package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/shell"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/mailbox"
)

// An AGENT of these commands is an ID, the beginning of one, a name or an exact title. The node finds the agent; the
// commands fetch no list for that.

func lsCommand(env *environment) *cobra.Command {
	var (
		all, bare        bool
		labels, statuses []string
	)
	c := &cobra.Command{
		Use:   "ls",
		Short: "List agents and their status",
		Long:  "Lists the agents of the node that the caller sees: those that it holds, and the node's host all of them.",
		Example: `  parley ls
  parley ls --label team=web --status running --status error
  parley ls -a -o yaml`,
		Args: exactly(),
	}
	f := c.Flags()
	f.BoolVarP(&all, "all", "a", false, "also those that are archived")
	f.StringArrayVar(&labels, "label", nil, "only those with a label `key=value`; may be repeated")
	f.StringArrayVar(&statuses, "status", nil, "only those with a `status`: "+strings.Join(agentStatuses(), ", ")+"; may be repeated")
	f.BoolVar(&bare, "no-headers", false, "no line of headers")
	completeFlagOf(c, "status", agentStatuses()...)
	c.RunE = func(c *cobra.Command, _ []string) error {
		for _, s := range statuses {
			if !slices.Contains(agentStatuses(), s) {
				return usage(c, "%q is no status: want one of %s", s, strings.Join(agentStatuses(), ", "))
			}
		}
		byKey, err := parseLabels(c, labels)
		if err != nil {
			return err
		}
		if all && len(statuses) == 0 {
			statuses = agentStatuses()
		}
		agents, err := api.All(c.Context(), env, api.FetchAgents, api.FetchAgentsRequest{Acting: env.acting(), Filter: view.AgentFilter{Labels: byKey, Statuses: statuses}},
			func(r api.FetchAgentsResponse) []view.AgentStatus { return r.Agents })
		if err != nil {
			return err
		}
		if env.options.quiet {
			ids := make([]string, len(agents))
			for i, a := range agents {
				ids[i] = a.ID.String()
			}
			return printList(env, ids, "no agents", func() string { return strings.Join(ids, "\n") })
		}
		listed, err := withWaiting(c.Context(), env, agents)
		if err != nil {
			return err
		}
		screen := env.screen()
		if screen.Width > 0 && !screen.IDs && len(listed) > 0 {
			name, err := env.nameFunc(c.Context())
			if err != nil {
				return err
			}
			named(listed, name)
		}
		return printList(env, listed, "no agents", func() string { return agentTable(listed, screen, !bare) })
	}
	return c
}

// agentStatuses returns the statuses that an agent may have.
func agentStatuses() []string {
	return []string{mailbox.Initializing, mailbox.Idle, mailbox.Running, mailbox.Failed, mailbox.Closed}
}

// listedAgent is an agent with the number of its questions that wait for the caller, and of the calls among them. It may have others,
// on which the caller has voted or which it put to somebody else.
type listedAgent struct {
	view.AgentStatus
	ForYou int `json:"waitingForYou,omitempty"`
	calls  int
	inRows show.Asker      // what waits for the caller as the inbox has it, in rows
	forYou view.AgentState // the state for the caller
}

// withWaiting returns agents with the number of their questions that wait for the caller's answer.
func withWaiting(ctx context.Context, env *environment, agents []view.AgentStatus) ([]listedAgent, error) {
	asked, calls := map[string]int{}, map[string]int{}
	var waiting []view.Message
	if slices.ContainsFunc(agents, func(a view.AgentStatus) bool { return a.Asks > 0 }) {
		c := env.client()
		defer c.Close()
		pending, err := listMessages(ctx, c, client.View{Pending: true, All: true})
		if err != nil {
			return nil, err
		}
		for _, m := range pending {
			from := m.From.String()
			if asked[from]++; m.Type == approvalType {
				calls[from]++
			}
		}
		for i := range pending {
			waiting = append(waiting, pending[i].Message)
		}
	}
	askers := show.Askers(waiting, capabilities.At(time.Now()))
	listed := make([]listedAgent, len(agents))
	for i, a := range agents {
		id := a.ID.String()
		listed[i] = listedAgent{a, asked[id], calls[id], askers[a.ID], askers[a.ID].State(a)}
	}
	return listed, nil
}

// named has agents be called as a person reads it, and those come first that wait for the caller.
func named(agents []listedAgent, name show.NameFunc) {
	for i, a := range agents {
		agents[i].Name, agents[i].State = name(a.ID, a.Name), a.forYou
	}
	slices.SortStableFunc(agents, func(a, b listedAgent) int { return a.State.Rank() - b.State.Rank() })
}

// forYou is the state of an agent that waits for the caller.
const forYou = "waiting for you"

// agentTable returns a table with a line for each agent. In a file the status stays in its column, for scripts. What is wrong with an
// agent stands where others say what they wait for.
func agentTable(agents []listedAgent, s terminal.Screen, headed bool) string {
	rows := make([][]string, len(agents))
	for i, a := range agents {
		status, waiting := a.Status, cell(a.waiting())
		switch {
		case s.Width > 0 && !s.IDs:
			status, waiting = stateText(a, s), cell(strings.Trim(a.Error+", "+a.rowsText(), ", "))
		case a.ForYou > 0 && s.Width > 0:
			status = s.Paint(terminal.Waiting, forYou)
		case a.Status == mailbox.Failed:
			status, waiting = s.Paint(terminal.Wrong, status), cell(strings.TrimSuffix(a.Error+", "+waitingText(a.AgentStatus), ", "))
		case a.Status == mailbox.Running:
			status = s.Paint(terminal.Right, status)
		}
		name := cell(a.Name)
		if a.Name == "" && !s.IDs {
			name = shortID(a.ID)
		}
		rows[i] = []string{
			a.ID.ULID.String(), name, status, cell(a.Title), cell(labelText(a.Labels)), waiting,
			s.Time(a.Updated.Std(), a.Updated.Std().UTC().Format(time.DateTime)),
		}
	}
	columns := []terminal.Column{
		{Name: "ID"}, {Name: "NAME", Shrink: true, Ends: true}, {Name: "STATUS"}, {Name: "TITLE", Shrink: true, Drop: true, Spare: 3},
		{Name: "LABELS", Shrink: true, Drop: true, Spare: 4}, {Name: "WAITING", Shrink: true, Spare: 1}, {Name: "UPDATED", Spare: 2},
	}
	if s.IDs {
		for i := range columns {
			columns[i].Spare = 0 // all of it was asked for
		}
	} else {
		columns = columns[1:]
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	return s.Table(columns, rows, headed)
}

// stateText returns the state of an agent in words.
func stateText(a listedAgent, s terminal.Screen) string {
	switch words := a.State.Words(); a.State {
	case view.AgentWaiting:
		return s.Paint(terminal.Waiting, words)
	case view.AgentFailed:
		return s.Paint(terminal.Wrong, words)
	case view.AgentRunning:
		return s.Paint(terminal.Right, words)
	default:
		return words
	}
}

// shortID returns the end of the ID of an agent without a name, by which commands take it too.
func shortID(id capabilities.ID) string {
	text := id.ULID.String()
	return "…" + text[len(text)-8:]
}

// cell returns a text as it stands in a table, where an empty one is a dash.
func cell(s string) string {
	if s == "" {
		return terminal.Empty
	}
	return terminal.Visible(s)
}

func labelText(labels map[string]string) string {
	words := make([]string, 0, len(labels))
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		words = append(words, k+"="+labels[k])
	}
	return strings.Join(words, ",")
}

// askedText returns how many permissions and answers there are, in words; "" for none.
func askedText(calls, answers int) string {
	var words []string
	if calls > 0 {
		words = append(words, counted(uint64(calls), "permission"))
	}
	if answers > 0 {
		words = append(words, counted(uint64(answers), "answer"))
	}
	return strings.Join(words, ", ")
}

// waiting is waitingText with what of it waits for the caller.
func (a listedAgent) waiting() string {
	if a.ForYou == 0 {
		return waitingText(a.AgentStatus)
	}
	text := forYou + ": " + askedText(a.calls, a.ForYou-a.calls)
	if others := askedText(a.Calls()-a.calls, a.Asks-a.Calls()-a.ForYou+a.calls); others != "" {
		text += "; for others: " + others
	}
	rest := a.AgentStatus
	rest.Asks, rest.Pending, rest.More = 0, nil, 0
	return strings.TrimSuffix(text+", "+waitingText(rest), ", ")
}

// rowsText is waiting for a person at a terminal, where what waits for the caller is counted in rows, as the inbox has it.
func (a listedAgent) rowsText() string {
	words := askedText(a.inRows.Calls, a.inRows.Rows-a.inRows.Calls)
	if others := a.Asks - a.inRows.Messages; others > 0 {
		words = strings.TrimPrefix(fmt.Sprintf("%s, %d for others", words, others), ", ")
	}
	rest := a.AgentStatus
	rest.Asks, rest.Pending, rest.More = 0, nil, 0
	return strings.Trim(words+", "+waitingText(rest), ", ")
}

// waitingText returns what an agent waits for, the number of messages that wait for it, and whether it is away.
func waitingText(a view.AgentStatus) string {
	var words []string
	if asks := askedText(a.Calls(), a.Asks-a.Calls()); asks != "" {
		words = append(words, asks)
	}
	if a.Queued > 0 {
		words = append(words, fmt.Sprintf("%d queued", a.Queued))
	}
	if a.Held && a.Queued > 0 {
		words = append(words, "programs are held")
	}
	if a.AwayUntil != 0 {
		words = append(words, "away")
	}
	return strings.Join(words, ", ")
}

func inspectCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:               "inspect AGENT",
		Short:             "Show an agent's details",
		Example:           "  parley inspect fae\n  parley inspect 01JQ --json",
		Args:              exactly("AGENT"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			agent, err := fetchAgent(env, c, args[0])
			if parley.CodeOf(err) == parley.AgentNotFound && describeHolding(c.Context(), env, api.InvokeRequest{Acting: env.acting(), Name: args[0]}) == nil {
				return nil // it is a folder, a file, a secret or a tool
			}
			if err != nil {
				return err
			}
			listed, err := withWaiting(c.Context(), env, []view.AgentStatus{agent})
			if err != nil {
				return err
			}
			return env.print(agent, func() string { return agentText(listed[0]) })
		},
	}
}

// fetchAgent returns the status of an agent. The node finds it by an ID, the beginning of one, a name or a title.
func fetchAgent(env *environment, c *cobra.Command, which string) (view.AgentStatus, error) {
	got, err := api.FetchAgent.Do(c.Context(), env, api.AgentRequest{Acting: env.acting(), AgentID: which})
	if err != nil {
		return view.AgentStatus{}, err
	}
	switch {
	case got.Error != nil:
		return view.AgentStatus{}, got.Error
	case got.Agent == nil:
		return view.AgentStatus{}, notANode(errors.New("it has no agent"))
	}
	return *got.Agent, nil
}

func agentText(a listedAgent) string {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name+":", terminal.Visible(value))
		}
	}
	line("id", a.ID.String())
	line("name", a.Name)
	line("title", a.Title)
	line("status", a.Status)
	if a.State == view.AgentWaiting && a.calls == 0 {
		line("state", "Waiting for others")
	} else {
		line("state", a.State.Words())
	}
	line("error", a.Error)
	if a.AwayUntil != 0 {
		line("away", "until "+a.AwayUntil.String())
	}
	line("labels", labelText(a.Labels))
	line("runtime", a.Runtime)
	line("user", a.User)
	line("wrap", shell.Join(a.Wrap))
	if a.Held {
		line("program", "held since the node was restored: parley node programs start")
	}
	if a.Stopped {
		line("program", "stopped: parley agent start")
	}
	line("policy", a.Policy)
	line("waiting", waitingText(a.AgentStatus))
	line("created", a.Created.String())
	line("updated", a.Updated.String())
	for _, m := range a.Cut {
		line("cut off", fmt.Sprintf("%d. %q, sent at %s", m.Number, m.Text, m.At))
	}
	for _, w := range a.Pending {
		line("asks", strings.TrimSpace(w.Tool+" "+w.Input))
	}
	if a.More > 0 {
		line("asks", fmt.Sprintf("for %d earlier calls", a.More))
	}
	return strings.TrimRight(b.String(), "\n")
}

func interruptCommand(env *environment) *cobra.Command {
	return agentCommand(env, "interrupt", api.StopAgent, "End an agent's run and what it was asking", `Ends the run of an agent's program, and takes back what it was asking. It returns when the program has ended. What
waits for the agent beyond that is run for next.`)
}

func stopAgentCommand(env *environment) *cobra.Command {
	return holdCommand(env, "stop", true, "Stop an agent, and hold what waits for it", `Ends the run of an agent's program, and takes back what it was asking. What waits for the agent stays queued until
"parley agent start". It returns when the program has ended.`)
}

func startAgentCommand(env *environment) *cobra.Command {
	return holdCommand(env, "start", false, "Start an agent that was stopped", `Has the node run an agent's program again, for what has waited meanwhile and what comes.`)
}

// holdCommand returns a command that stops an agent or starts it.
func holdCommand(env *environment, verb string, hold bool, short, long string) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " AGENT",
		Short:             short,
		Long:              long,
		Example:           "  parley agent " + verb + " builder",
		Args:              exactly("AGENT"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			return perform(c.Context(), env, api.HoldAgent, api.HoldAgentRequest{Acting: env.acting(), AgentID: args[0], Hold: hold}, agentID)
		},
	}
}

func agentID(r api.AgentResponse) string { return r.AgentID.String() }

// agentCommand returns a command that changes one agent.
func agentCommand(env *environment, verb string, o api.Op[api.AgentRequest, api.AgentResponse], short, long string) *cobra.Command {
	return &cobra.Command{
		Use:               verb + " AGENT",
		Short:             short,
		Long:              long,
		Example:           "  parley " + verb + " fae",
		Args:              exactly("AGENT"),
		ValidArgsFunction: completeArguments(env, api.CompleteNames),
		RunE: func(c *cobra.Command, args []string) error {
			return perform(c.Context(), env, o, api.AgentRequest{Acting: env.acting(), AgentID: args[0]}, agentID)
		},
	}
}

func policyCommand(env *environment) *cobra.Command {
	var review reviewFlags
	c := &cobra.Command{
		Use:   "policy AGENT always|on-miss|never|deny|review",
		Short: "Set whether an agent's calls are asked about, reviewed, allowed or denied",
		Long: `Says what becomes of an agent's calls that need permission: every one is asked about (always), those that no
standing rule decides (on-miss, as it is where nothing is said), none, they are allowed (never), or none, they are denied
(deny). A rule that denies goes before all of these; nothing that expires is allowed.

With review, the calls that no rule decides go to another agent first (--by). It may allow those that are not of high risk, deny
with a reason, or leave a call to you with its opinion. What it does not answer in time, what may have a secret in it, and a sample of
what it allows come to you.`,
		Example: "  parley agent policy builder never\n  parley agent policy builder review --by reviewer --sample 10%",
		Args:    exactly("AGENT", "POLICY"),
		ValidArgsFunction: func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return policies(), cobra.ShellCompDirectiveNoFileComp
			}
			return completeArguments(env, api.CompleteNames)(c, args, typed)
		},
		RunE: func(c *cobra.Command, args []string) error {
			req := api.SetPolicyRequest{Acting: env.acting(), AgentID: args[0], Policy: args[1]}
			var err error
			if req.Review, err = review.terms(c, args[1]); err != nil {
				return err
			}
			return perform(c.Context(), env, api.SetPolicy, req, func(api.AgentResponse) string {
				text := "policy of " + terminal.Quoted(args[0]) + ": " + args[1]
				if req.Review != nil {
					text += " by " + terminal.Quoted(req.Review.Reviewer)
				}
				return text
			})
		},
	}
	review.add(c)
	return c
}

// policies returns the policies for calls that need permission.
func policies() []string {
	return []string{mailbox.AskAlways, mailbox.AskOnMiss, mailbox.AskNever, mailbox.DenyAll, mailbox.Review}
}
