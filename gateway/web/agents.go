package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/people"
)

// agentList is a part of the list of agents.
type agentList struct {
	Agents []listedAgent
	After  string       // there are more after this name; "" if there are not
	Later  bool         // it is not the first part
	Leases []view.Lease // that concern the reader; of the host all
}

// More returns the address of the next part.
func (r agentList) More() string { return "/agents?" + url.Values{"after": {r.After}}.Encode() }

// listedAgent is an agent in the list.
type listedAgent struct {
	Name    string
	Shown   string // what people call it
	ID      capabilities.ID
	Away    bool   // it is on another node
	Here    bool   // the reader may act as it, and sees its status
	Waiting string // rows that wait for its answer, as atLeast has them

	First string // of what waits for the reader: in a line; "" if nothing does
	Standing
}

// More returns how many rows wait for the reader beside the first, and Answer their address.
func (l listedAgent) More() int { return l.Waits - 1 }

func (l listedAgent) Answer() string {
	return listQuery{View: needsReader, Agent: l.ID.String()}.Address()
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
}

// State returns the state of the agent.
func (s Standing) State() agentState { return agentState{s.AgentStatus.State} }

// tell fills in what of an agent's questions waits for the reader, and for others, and its state for the reader.
func (s *Standing) tell(all askers) {
	s.AgentStatus.State = all.stateOf(s.AgentStatus)
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
	after, later := p.r.URL.Query().Get("after"), p.r.URL.Query().Has("after")
	if later {
		all = slices.DeleteFunc(all, func(l listedAgent) bool { return l.Name <= after })
	}
	list := agentList{Agents: all[:min(len(all), shownAgents)], Later: later}
	if len(all) > shownAgents {
		list.After = list.Agents[shownAgents-1].Name
	}
	called := p.nameOf()
	for i := range list.Agents {
		list.Agents[i].Shown = called(list.Agents[i].ID, list.Agents[i].Name)
		if err := p.look(&list.Agents[i], reader); err != nil {
			return err
		}
	}
	reach(p, list.Agents)
	if err := waits(p, list.Agents); err != nil {
		return err
	}
	list.Agents = slices.DeleteFunc(list.Agents, func(l listedAgent) bool { return l.AgentStatus.Topic }) // Mail has the topics
	leases, err := api.ListLeases.Do(p.ctx(), p, api.ListLeasesRequest{})
	if err != nil {
		return err
	}
	list.Leases = leases.Leases
	return p.show(http.StatusOK, "agents.html", layout{Title: "Agents", Main: list})
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
			list[i].First = r.Line
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
	waiting, err := waitingFor(p.ctx(), local{l.Name, agent}, local{agent: reader})
	if err == nil {
		l.Standing, err = standingOf(p.ctx(), agent)
	}
	if err != nil {
		l.Standing = Standing{AgentStatus: view.AgentStatus{Status: "error", Error: api.Shown(err).Message}}
		return p.ctx().Err()
	}
	l.Here, l.Waiting = true, atLeast(rowsOf(waiting.questions, &p.site.readings), waiting.more)
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
