package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/people"
)

// agentList is a part of the list of agents.
type agentList struct {
	Agents []listedAgent
	After  string // there are more after this name; "" if there are not
	Later  bool   // it is not the first part
	State  view.AgentState
	States []stateFilter
	Leases []view.Lease      // that concern the reader; of the host all
	Today  capabilities.Time // the beginning of the day whose decisions it counts
	Behind bool              // of some agents they are not counted yet
	IsHost bool              // the reader may make agents
}

// More returns the address of the next part.
func (r agentList) More() string { return agentsAddress(r.State, url.Values{"after": {r.After}}) }

// First returns the address of the first part.
func (r agentList) First() string { return agentsAddress(r.State, url.Values{}) }

// stateFilter is a link to the agents in a state.
type stateFilter struct {
	State   agentState // "" has all agents
	Count   string     // "" if it is not known
	Current bool
}

// Address returns the address of the list of these agents.
func (f stateFilter) Address() string { return agentsAddress(f.State.AgentState, url.Values{}) }

// agentsAddress returns the address of the agents in a state; "" has all.
func agentsAddress(s view.AgentState, more url.Values) string {
	if s != "" {
		more.Set("state", string(s))
	}
	if len(more) == 0 {
		return "/agents"
	}
	return "/agents?" + more.Encode()
}

// filteredStates are the states by which the list is filtered, in the order of its links.
var filteredStates = []view.AgentState{view.AgentWaiting, view.AgentRunning, view.AgentFailed, view.AgentIdle, view.AgentStopped, view.AgentUnreachable, view.AgentEnded}

// listedAgent is an agent in the list.
type listedAgent struct {
	Name    string
	Shown   string // what people call it
	ID      capabilities.ID
	Away    bool          // it is on another node
	Here    bool          // the reader may act as it, and sees its status
	Waiting string        // rows that wait for its answer, as atLeast has them
	Unread  int           // of its mail
	Rules   int           // that stand for its calls
	Today   *view.Decided // its calls that were decided today; nil if that is not known

	First string // of what waits for the reader: in a line; "" if nothing does
	Votes bool   // that is a vote
	base  string // the beginning of the addresses of pages
	asks  bool   // the reader may stop and start agents
	Standing
}

// Answer returns the address of what waits for the reader of the agent.
func (l listedAgent) Answer() string {
	return listQuery{View: needsReader, Agent: l.ID.String()}.Address()
}

// rowAct is a link of a row, or the button that stops its agent or has it go on.
type rowAct struct {
	Words   string
	Address string
	Hold    string // of a button: stop or start
	Agent   capabilities.ID
}

// Act returns what a reader does first about the agent; nil if there is nothing.
func (l listedAgent) Act() *rowAct {
	switch {
	case l.Waits == 1 && l.Votes:
		return &rowAct{Words: "Vote", Address: l.base + l.Answer()}
	case l.Waits > 0:
		return &rowAct{Words: "Answer " + atLeast(l.Waits, l.WaitsMore), Address: l.base + l.Answer()}
	case l.Name == "":
		return nil
	case l.AgentStatus.State == view.AgentFailed:
		return &rowAct{Words: "Read", Address: l.base + l.Page()}
	}
	return l.hold()
}

// Menu returns what else the reader can do about the agent.
func (l listedAgent) Menu() []rowAct {
	mail := "/mail"
	if l.Name != "" {
		mail += "?" + url.Values{"as": {l.Name}}.Encode()
	}
	page := l.base + l.Page()
	all := []rowAct{
		{Words: "Mail", Address: l.base + mail}, {Words: "Activity", Address: page},
		{Words: "Rules", Address: page + "?tab=" + rulesTab}, {Words: "Access", Address: page + "?tab=" + accessTab},
	}
	if l.Name == "" {
		return all
	}
	all = append(all, rowAct{Words: "Decisions", Address: l.base + "/history?agent=" + l.ID.String()})
	if hold := l.hold(); hold != nil && *l.Act() != *hold {
		all = append(all, *hold)
	}
	return all
}

// hold returns the button that stops the agent, or has it go on; nil if there is nothing to stop, or the reader may not.
func (l listedAgent) hold() *rowAct {
	switch {
	case !l.asks:
	case l.Starts():
		return &rowAct{"Start", l.base + l.Page(), "start", l.ID}
	case l.Stops():
		return &rowAct{"Stop", l.base + l.Page(), "stop", l.ID}
	}
	return nil
}

// notKnown stands in the columns of an agent of which the reader may not know.
const notKnown = "–"

// MailText returns in words how much of the agent's mail is unread.
func (l listedAgent) MailText() string {
	switch {
	case !l.Here:
		return notKnown
	case l.Unread == 0:
		return "None"
	}
	return strconv.Itoa(l.Unread) + " unread"
}

// RulesText returns in words what decides the agent's calls without asking. The reader makes none.
func (l listedAgent) RulesText() string {
	words := "No rules"
	switch {
	case !l.Here || l.Name == "":
		return notKnown
	case l.Policy == "always":
		return "Always asks" // whatever rules there are
	case l.Policy == "never":
		return "Never asks"
	case l.Rules == 1:
		words = "1 rule"
	case l.Rules > 1:
		words = strconv.Itoa(l.Rules) + " rules"
	}
	if l.Policy == "deny" {
		words += ", else denies"
	}
	return words
}

// TodayText returns how many of the agent's calls were allowed and denied today.
func (l listedAgent) TodayText() string {
	if l.Today == nil {
		return notKnown
	}
	return fmt.Sprintf("%d / %d", l.Today.Allowed, l.Today.Denied)
}

// Doing returns the state of the agent; nil if it is not known. Of an agent that cannot be read that is an error.
func (l listedAgent) Doing() *agentState {
	s := l.State()
	switch {
	case s.AgentState == "" && l.Status == "error":
		s.AgentState = view.AgentFailed
	case s.AgentState == "":
		return nil
	}
	return &s
}

// openCount is a number as it is shown, and what there are so many of.
type openCount struct{ Count, Words string }

// Open returns how much waits for an answer of the agent, of others to it, and for its program.
func (l listedAgent) Open() (all []openCount) {
	questions := func(n int) string {
		if n == 1 {
			return "question"
		}
		return "questions"
	}
	if l.Waiting != "" {
		all = append(all, openCount{l.Waiting, "waiting for an answer"})
	}
	if l.Waits > 0 {
		all = append(all, openCount{atLeast(l.Waits, l.WaitsMore), questions(l.Waits) + " open"})
	}
	switch {
	case l.Others > 0 && l.Waits > 0:
		all = append(all, openCount{strconv.Itoa(l.Others), "for others"})
	case l.Others > 0:
		all = append(all, openCount{strconv.Itoa(l.Others), questions(l.Others) + " for others"})
	}
	if l.Queued > 0 {
		all = append(all, openCount{strconv.Itoa(l.Queued), "queued"})
	}
	return all
}

// Party returns the agent as a page names it.
func (l listedAgent) Party() party {
	if l.Name == "" {
		return party{Name: people.You, Own: true}
	}
	return party{Name: l.Shown, ID: l.ID.String()}
}

// Under returns what stands under what people call the agent: its name, by which commands know it, or its title; "" if that says no more.
func (l listedAgent) Under() string {
	if l.Shown != l.Name && l.Name != "" {
		return l.Name
	}
	return l.Title
}

// Page returns the address of the agent's page.
func (l listedAgent) Page() string { return AgentPath(l.Name) }

// Standing is the status of an agent of this node.
type Standing struct {
	view.AgentStatus
	LabelTexts []string // its labels as key=value, sorted

	Waits     int  // rows of what it asked that wait for the reader, as each count has them
	WaitsMore bool // there may be more of them, which were not looked at
	Others    int  // questions of it that wait for others

	Since capabilities.Time // it is in its state since then, or since a change of its policy or title after that; 0 if that is not known
}

// IsSpan reports whether the list says how long the agent is in its state, and not since when: what lasts, or will.
func (s Standing) IsSpan() bool {
	return s.AgentStatus.State.Rank() <= view.AgentIdle.Rank() && s.AgentStatus.State != view.AgentFailed
}

// State returns the state of the agent.
func (s Standing) State() agentState { return agentState{s.AgentStatus.State} }

// Stops reports whether the agent has a program that can be stopped: its run ends, and what waits for it stays queued.
func (s Standing) Stops() bool {
	return s.Runtime != "" && !s.Stopped && !s.Held && s.Status != "closed"
}

// Starts reports whether the agent has a program that was stopped, and can go on.
func (s Standing) Starts() bool {
	return s.Runtime != "" && (s.Stopped || s.Held) && s.Status != "closed"
}

// tell fills in what of an agent's questions waits for the reader, and for others, and its state for the reader.
func (s *Standing) tell(all askers) {
	s.AgentStatus.State = all.stateOf(s.AgentStatus)
	if s.Since = s.Updated; s.AgentStatus.State == view.AgentWaiting {
		s.Since = all.all[s.ID].Since
	}
	if !all.unknown {
		s.Waits, s.Others = all.rows[s.ID].Rows, max(0, s.Asks-all.rows[s.ID].Messages)
		if s.WaitsMore = all.hasMore(&s.AgentStatus); s.WaitsMore {
			s.Others = 0 // who is asked the others is not known
		}
	}
}

// standingOf returns the status of an agent.
func standingOf(ctx context.Context, a api.Agent) (Standing, error) {
	s := Standing{}
	var err error
	if s.AgentStatus, err = a.Status(ctx); err != nil {
		return s, err
	}
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		s.LabelTexts = append(s.LabelTexts, key+"="+s.Labels[key])
	}
	return s, nil
}

// shownAgents is the number of agents that the list shows at once.
const shownAgents = 100

// agents lists the reader and the agents that it holds, by name.
func (p *page) agents() error {
	if err := p.readsOnly(); err != nil {
		return err
	}
	if p.pane() == "left" {
		return p.show(http.StatusOK, "pane.html", layout{Title: "Agents"})
	}
	reader, err := p.agentOf("")
	if err != nil {
		return err
	}
	all, err := heldAgents(p.ctx(), reader)
	if err != nil {
		return err
	}
	all = append([]listedAgent{{ID: reader.ID()}}, all...)
	q := p.r.URL.Query()
	list := agentList{Later: q.Has("after"), State: view.AgentState(q.Get("state")), IsHost: p.principal.IsHost()}
	if list.Today, err = beginOfDay(q.Get("today")); err != nil {
		return err
	}
	if list.State != "" && !slices.Contains(filteredStates, list.State) {
		return parley.Refuse(parley.InvalidArgument, "agents are in no state %.40q", list.State).WithHint("choose one above the list of agents")
	}
	if list.Later {
		all = slices.DeleteFunc(all, func(l listedAgent) bool { return l.Name <= q.Get("after") })
	}
	count := list.countDecisions(p, all)
	if err := list.fill(p, all, reader); err != nil {
		return err
	}
	count()
	leases, err := api.ListLeases.Do(p.ctx(), p, api.ListLeasesRequest{})
	if err != nil {
		return err
	}
	list.Leases = leases.Leases
	return p.show(http.StatusOK, "agents.html", layout{Title: "Agents", Main: list})
}

// fill looks at agents, in parts, until there are as many in the state as the list shows, or so many were looked at that another request goes on.
func (r *agentList) fill(p *page, all []listedAgent, reader api.Agent) error {
	count := map[view.AgentState]int{}
	called, mayAsk := p.nameOf(), p.principal.May(pageOperation(api.ScopeAsk)) == nil
	looked := 0
	for looked < len(all) && looked < maxLocals && len(r.Agents) < shownAgents {
		part := all[looked:min(len(all), looked+shownAgents-len(r.Agents))]
		looked += len(part)
		for i := range part {
			part[i].base, part[i].asks = p.base, mayAsk
			part[i].Shown = called(part[i].ID, part[i].Name)
			if err := p.look(&part[i], reader); err != nil {
				return err
			}
		}
		reach(p, part)
		if err := waits(p, part); err != nil {
			return err
		}
		for _, l := range part {
			if l.AgentStatus.Topic { // Mail has the topics
				continue
			}
			if state := l.AgentStatus.State; l.Name != "" {
				count[""]++
				count[state]++
			}
			if l.Name == "" {
				l.Since = 0 // who reads does something now
			}
			if r.State == "" || l.Name != "" && l.AgentStatus.State == r.State {
				r.Agents = append(r.Agents, l)
			}
		}
		if r.State == "" {
			break // a part without its topics is a part
		}
	}
	if looked < len(all) {
		r.After = slices.MaxFunc(all[:looked], func(a, b listedAgent) int { return cmp.Compare(a.Name, b.Name) }).Name
	}
	isPart := r.Later || r.After != ""
	for _, state := range append([]view.AgentState{""}, filteredStates...) {
		f := stateFilter{State: agentState{state}, Current: state == r.State}
		if !isPart {
			f.Count = strconv.Itoa(count[state])
		}
		if state == "" || f.Current || count[state] > 0 || isPart && state.Rank() < view.AgentUnreachable.Rank() {
			r.States = append(r.States, f)
		}
	}
	return nil
}

// countDecisions counts how many calls of each agent were decided today, while the list looks at them. The function that it returns fills that
// in as far as it is known: a later look knows more.
func (r *agentList) countDecisions(p *page, all []listedAgent) func() {
	if !p.principal.IsHost() {
		return func() {} // another agent may not look into those that it holds
	}
	var ids []capabilities.ID
	for _, l := range all[:min(len(all), maxLocals)] {
		if l.Name != "" && l.ID.Node == p.agent.ID().Node {
			ids = append(ids, l.ID)
		}
	}
	known := p.agent.Rules().CountDecided(p.ctx(), r.Today, ids)
	return func() {
		decided := known()
		for i := range r.Agents {
			n, ok := decided[r.Agents[i].ID]
			switch l := &r.Agents[i]; {
			case ok && l.Here:
				l.Today = &n
			case l.Here && l.Name != "":
				r.Behind = true
			}
		}
	}
}

// longestDay bounds how long ago a day has begun that has not ended yet, wherever the reader is and as far as its clock may be wrong.
const longestDay = 48 * time.Hour

// beginOfDay reads when the reader's day has begun, which its browser knows. Without that, and where it cannot be, it is the day of the node's
// zone. It refuses with INVALID_ARGUMENT.
func beginOfDay(text string) (capabilities.Time, error) {
	now := time.Now()
	if text != "" {
		begin, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return 0, parley.Refuse(parley.InvalidArgument, "%.40q is no time", text)
		}
		if ago := now.Sub(begin); ago >= 0 && ago < longestDay {
			return capabilities.At(begin), nil
		}
	}
	year, month, day := now.Date()
	return capabilities.At(time.Date(year, month, day, 0, 0, 0, 0, now.Location())), nil
}

// waits fills in what waits for the reader of each agent, and sorts the part of the list: the reader, then by state, and as the queue has them.
func waits(p *page, list []listedAgent) error {
	waiting, err := questionsFor(p)
	if err != nil {
		return err
	}
	askers := askersOf(p)
	for i := range list {
		list[i].Standing.tell(askers)
	}
	for _, r := range ranked(p, waiting, "") {
		if i := slices.IndexFunc(list, func(l listedAgent) bool { return l.ID == r.From }); i >= 0 && list[i].First == "" {
			list[i].First, list[i].Votes = r.Line, r.Votes != nil
		}
	}
	rank := func(l listedAgent) int {
		if l.Name == "" {
			return -1
		}
		return l.AgentStatus.State.Rank()
	}
	slices.SortStableFunc(list, func(a, b listedAgent) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), askers.compare(a.ID, b.ID)) })
	return nil
}

// heldAgents returns the agents that the reader holds, each under the first of its names, by name.
func heldAgents(ctx context.Context, reader api.Agent) ([]listedAgent, error) {
	names, err := reader.Names().List(ctx, "", "", 0)
	if err != nil {
		return nil, err
	}
	var all []listedAgent
	seen := map[capabilities.ID]bool{reader.ID(): true}
	for _, name := range names {
		if strings.HasPrefix(name, "@") {
			continue
		}
		value, err := reader.Names().Show(ctx, name, false)
		if err != nil {
			continue // it was removed meanwhile
		}
		r, isRef := value.AsRef()
		if !isRef || r.Kind != capabilities.KindAgent || seen[r.Target] {
			continue
		}
		seen[r.Target] = true
		all = append(all, listedAgent{Name: name, ID: r.Target})
	}
	slices.SortFunc(all, func(a, b listedAgent) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// look fills in the status of an agent, as far as the reader may see it. It shows the error of an agent that cannot be
// read, so that the others are still listed.
func (p *page) look(l *listedAgent, reader api.Agent) error {
	l.Away = l.ID.Node != reader.ID().Node
	if l.Away {
		return nil
	}
	agent, err := p.agentOf(l.Name)
	if err != nil || agent.ID() != l.ID {
		return nil // the reader may not act as it
	}
	var mail view.MessageCounts
	var waiting waitingOf
	l.Standing, err = standingOf(p.ctx(), agent)
	if err == nil {
		mail, err = agent.Mail().Counts(p.ctx())
	}
	if err == nil && mail.Pending > 0 {
		waiting, err = waitingFor(p.ctx(), local{l.Name, agent}, local{agent: reader})
	}
	if err == nil {
		l.Rules, err = agent.Rules().Number(p.ctx())
	}
	if err != nil {
		l.Standing = Standing{AgentStatus: view.AgentStatus{Status: "error", Error: api.Shown(err).Message}}
		return p.ctx().Err()
	}
	l.Here, l.Unread, l.Waiting = true, mail.Unread, atLeast(rowsOf(waiting.questions, &p.site.readings), waiting.more)
	return nil
}

// reach sets the state of the agents whose nodes are not reached. Of a reached one nothing is known.
func reach(p *page, list []listedAgent) {
	if !slices.ContainsFunc(list, func(l listedAgent) bool { return l.Away }) {
		return
	}
	got, err := api.ListNodes.Do(p.ctx(), p, api.ListNodesRequest{})
	if err != nil {
		return // the session may not see the nodes
	}
	for _, peer := range got.Nodes {
		for i := range list {
			if list[i].Away && list[i].ID.Node == peer.Node && !peer.Reachable {
				list[i].AgentStatus.State = view.AgentUnreachable
			}
		}
	}
}

// local is an agent of this node that the reader may act as.
type local struct {
	name  string // "" is the reader
	agent api.Agent
}

// maxLocals bounds the agents whose questions a page looks at.
const maxLocals = 500

// locals returns the reader and, for the node's host, agents of this node that it holds, maxLocals at most.
func (s *Site) locals(ctx context.Context, reader api.Principal) ([]local, error) {
	return s.localsUpTo(ctx, reader, maxLocals)
}

// localsUpTo is locals with another bound.
func (s *Site) localsUpTo(ctx context.Context, reader api.Principal, most int) ([]local, error) {
	self, err := s.Backend.Agent(ctx, reader, "")
	if err != nil {
		return nil, err
	}
	found := []local{{agent: self}}
	if !self.IsHost() {
		return found, nil
	}
	names, err := self.Names().List(ctx, "", "", 0)
	if err != nil {
		return nil, err
	}
	seen := map[capabilities.ID]bool{self.ID(): true}
	for _, name := range names {
		if strings.HasPrefix(name, "@") || len(found) > most {
			continue
		}
		agent, err := s.Backend.Agent(ctx, reader, name)
		if err != nil || seen[agent.ID()] { // no agent, one of another node, or a second name for one
			continue
		}
		seen[agent.ID()] = true
		found = append(found, local{name: name, agent: agent})
	}
	return found, nil
}

// NameOf returns the name under which a reader holds an agent of this node, "" for the reader itself. It reports whether
// the reader may act as the agent.
func (s *Site) NameOf(ctx context.Context, reader api.Principal, agent capabilities.ID) (name string, ok bool) {
	who, err := s.locals(ctx, reader)
	if err != nil {
		return "", false
	}
	for _, l := range who {
		if l.agent.ID() == agent {
			return l.name, true
		}
	}
	return "", false
}
