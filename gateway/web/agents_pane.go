package web

import (
	"cmp"
	"slices"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/people"
	"parley/gateway/queue"
)

// leftPane is the pane of all pages that leads to the lists and the agents.
type leftPane struct {
	Agents []leftAgent
	More   bool   // there are agents that it does not name
	Count  string // agents of this node that have not ended, as atLeast has them
	Text   string // that the list is searched for
	Counts view.MessageCounts
	Away   capabilities.Time // the end of the reader's absence; 0 if it is not away
	Owner  bool              // the reader may see the devices that are told

	Unknown bool // what waits for the reader cannot be read
}

// leftAgent is an agent as the left pane shows it.
type leftAgent struct {
	party
	Path    string // the address of its page
	State   agentState
	Heading *agentState       // of the first agent in a state; nil for others
	Count   string            // rows that wait for the reader, as atLeast has them
	Current bool              // the page is about it
	Away    capabilities.Time // the end of its absence; 0 if it is not away
}

// agentState is what an agent does, in a word and an icon.
type agentState struct{ view.AgentState }

// Icon returns the name of the icon of the state.
func (s agentState) Icon() string {
	switch s.AgentState {
	case view.AgentWaiting:
		return "wait"
	case view.AgentFailed:
		return "err"
	case view.AgentRunning:
		return "run"
	case view.AgentStopped, view.AgentEnded:
		return "stop"
	case view.AgentUnreachable:
		return "off"
	}
	return "idle"
}

// Bounds of the left pane.
const (
	maxLeft       = 30  // agents that it shows
	maxLeftLooked = 200 // agents of which it shows the most relevant, and that the page can name
)

// left returns the left pane. First are the agents that wait for the reader, in the order of the queue, then those that run, then the latest.
func (p *page) left() (*leftPane, error) {
	pane := &leftPane{Owner: p.ownsDevices()}
	if p.r.URL.Path == string(allMail) {
		pane.Text = p.r.URL.Query().Get("q")
	}
	var err error
	if pane.Counts, err = api.CountMessages.Do(p.ctx(), p, api.CountMessagesRequest{}); err != nil {
		return nil, err
	}
	switch away, err := absenceNow(p, api.Acting{}); {
	case err != nil:
		return nil, err
	case away != nil && time.Now().After(away.From.Std()):
		pane.Away = away.Until
	}
	if !p.principal.IsHost() {
		return pane, nil // another agent may not see the pages of those it holds
	}
	got, err := p.statuses()
	if err != nil {
		return nil, err
	}
	names := people.NamesOf(p.principal.ID(), got)
	got = slices.Clone(got)
	askers := askersOf(p)
	pane.Unknown = askers.unknown
	for i := range got {
		got[i].State = askers.stateOf(got[i])
	}
	slices.SortStableFunc(got, func(a, b view.AgentStatus) int {
		return cmp.Or(cmp.Compare(a.State.Rank(), b.State.Rank()), askers.compare(a.ID, b.ID), -cmp.Compare(a.Updated, b.Updated))
	})
	of := 0
	for _, s := range got {
		if s.Name == "" || s.ID == p.principal.ID() || s.Topic {
			continue
		}
		of++
		if len(pane.Agents) == maxLeft {
			pane.More = true
			continue
		}
		a := leftAgent{party: partyOf(s.ID, names.Of(s.ID, s.Name)), Path: AgentPath(s.Name), State: agentState{s.State}, Count: atLeast(askers.rows[s.ID].Rows, askers.hasMore(&s)), Away: s.AwayUntil}
		if n := len(pane.Agents); n == 0 || pane.Agents[n-1].State != a.State {
			a.Heading = &a.State
		}
		a.Current = p.r.URL.Path == AgentsPath+s.Name
		pane.Agents = append(pane.Agents, a)
	}
	pane.Count = atLeast(of, len(got) == maxLeftLooked)
	return pane, nil
}

// askers is what waits for the reader of each agent that asks, unless that is unknown.
type askers struct {
	all     map[capabilities.ID]queue.Asker // in the reader's own mail: what it stops by not deciding
	rows    map[capabilities.ID]queue.Asker // in all mail that the reader has, as Needs you shows it
	more    bool                            // there is more that was not looked at
	unknown bool
}

// askersOf returns what waits for the reader of each agent that asks.
func askersOf(p *page) askers {
	self, err := p.agentOf("")
	if err != nil {
		return askers{unknown: true}
	}
	every, err := questionsFor(p)
	if err != nil {
		return askers{unknown: true} // a part of it would count too few
	}
	waiting, err := allWaitingIn(p, p.ctx(), local{agent: self})
	if err != nil {
		return askers{unknown: true}
	}
	now := capabilities.At(time.Now())
	return askers{all: queue.Askers(waiting, &p.site.readings, now), rows: queue.Askers(messagesOf(every), &p.site.readings, now), more: p.askedMore}
}

// hasMore reports whether more may wait of an agent than was looked at.
func (a askers) hasMore(s *view.AgentStatus) bool { return a.more && s.Asks > a.rows[s.ID].Messages }

// compare orders two agents as the queue has their first rows. Those without one are last.
func (a askers) compare(x, y capabilities.ID) int {
	px, py := a.all[x].Place, a.all[y].Place
	if px == 0 || py == 0 {
		return cmp.Compare(py, px)
	}
	return cmp.Compare(px, py)
}

// stateOf returns the state of an agent for the reader. What is unknown is not taken for nothing: an agent that waits does so still.
func (a askers) stateOf(s view.AgentStatus) view.AgentState {
	if a.unknown {
		return s.State
	}
	return a.all[s.ID].State(s)
}

// pathOf returns the address of the page of an agent that the reader holds; "" for any other, and for the reader.
func pathOf(p *page, id capabilities.ID) string {
	if !p.principal.IsHost() || id == p.principal.ID() {
		return ""
	}
	all, err := p.statuses()
	if err != nil {
		return ""
	}
	for i := range all {
		if all[i].ID == id && all[i].Name != "" && id.Node == p.principal.ID().Node {
			return AgentPath(all[i].Name)
		}
	}
	return ""
}

// namesLast is how long a stream uses the names that it has read.
const namesLast = 10 * time.Second

// statuses returns the states of the agents that the page can name. The page looks once, and a stream from time to time.
func (p *page) statuses() ([]view.AgentStatus, error) {
	if p.statusOf != nil && time.Since(p.looked) < namesLast {
		return p.statusOf, nil
	}
	got, err := api.FetchAgents.Do(p.ctx(), p, api.FetchAgentsRequest{Paging: api.Paging{Limit: maxLeftLooked}})
	if err != nil {
		return nil, err
	}
	p.statusOf, p.looked, p.named = append([]view.AgentStatus{}, got.Agents...), time.Now(), nil
	return p.statusOf, nil
}

// name sets the names of a message's parties, and of who has decided, as people read them. Without names of other agents, a reader who
// is no host sees those that it gave. The outcome and the votes of the message are its own, so it sets them in copies.
func (p *page) name(m *view.Message) {
	of := p.nameOf()
	if o := m.Outcome; o != nil {
		named := *o
		named.ByName = of(o.By, o.ByName)
		m.Outcome = &named
	}
	if v := m.Votes; v != nil {
		named := *v
		named.Cast = slices.Clone(v.Cast)
		for i := range named.Cast {
			named.Cast[i].ByName = of(v.Cast[i].By, v.Cast[i].ByName)
		}
		named.Waiting = namedParties(v.Waiting, of)
		if v.VotedAs != nil {
			named.VotedAs = &namedParties([]view.Party{*v.VotedAs}, of)[0]
		}
		m.Votes = &named
	}
	if c := m.Claim; c != nil {
		named := *c
		named.ByName = of(c.By, c.ByName)
		if c.Was != nil {
			named.Was = &namedParties([]view.Party{*c.Was}, of)[0]
		}
		m.Claim = &named
	}
	m.Chain, m.Steps, m.ForwardedTo = namedParties(m.Chain, of), slices.Clone(m.Steps), slices.Clone(m.ForwardedTo)
	for i := range m.Steps {
		s := &m.Steps[i]
		s.ByName, s.ToName = of(s.By, s.ByName), of(s.To, s.ToName)
	}
	for i := range m.ForwardedTo {
		f := &m.ForwardedTo[i]
		f.Name, f.ByName = of(f.ID, f.Name), of(f.By, f.ByName)
	}
	if !m.Author.IsZero() {
		m.AuthorName = of(m.Author, m.Writer())
	}
	if m.From != p.principal.ID() {
		m.FromName = of(m.From, m.Sender())
	}
	if m.To != p.principal.ID() {
		m.ToName = of(m.To, m.ToName)
	}
}

// namedParties returns parties with the names that a function has for them.
func namedParties(all []view.Party, of func(capabilities.ID, string) string) []view.Party {
	all = slices.Clone(all)
	for i := range all {
		all[i].Name = of(all[i].ID, all[i].Name)
	}
	return all
}

// nameOf returns what has the names of agents as people read them. Who reads is SELF. One for which the
// agent whose mail it is has no name is called as the reader calls it, or stays without one.
func (p *page) nameOf() func(id capabilities.ID, name string) string {
	if p.principal.IsHost() {
		if all, err := p.statuses(); err == nil && p.named == nil {
			p.named = people.NamesOf(p.principal.ID(), all)
		}
	}
	names := p.named // else the reader's own names are shown
	return func(id capabilities.ID, name string) string {
		switch {
		case id == p.principal.ID() && !id.IsZero():
			return self
		case names == nil:
			return name
		case name == "":
			return names.Known(id)
		}
		return names.Of(id, name)
	}
}
