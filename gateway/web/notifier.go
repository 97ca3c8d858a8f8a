package web

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/internal/fair"
)

const (
	recount          = 200 * time.Millisecond // between two looks at the questions, when much happens
	relisten         = 10 * time.Second       // between two looks for new agents
	maxChangedAgents = 50                     // agents that one event names
	maxKeys          = 1000                   // questions that one event names
	maxOutputs       = 20                     // agents whose output one stream follows
)

// update is a change besides messages: of the questions that wait, of agents, of both, or of output.
type update struct {
	questions *counted
	agents    *agentsChanged
	output    *moreOutput
}

// moreOutput is the event "output": an agent whose program has put out more.
type moreOutput struct {
	Agent string `json:"agent"`
}

// counted is the event "questions": the number of rows that wait, and the keys of the questions in them, oldest first.
type counted struct {
	Count   int               `json:"count"`
	Keys    []string          `json:"keys"`
	More    bool              `json:"more,omitempty"`    // there are more rows than were counted
	Part    bool              `json:"part,omitempty"`    // there are more questions than keys
	Claimed map[string]string `json:"claimed,omitempty"` // the marks of the claims on them, by their keys
	Amended map[string]uint64 `json:"amended,omitempty"` // the revisions of those that were amended, by their keys
}

// agentsChanged is the event "agents": the agents that have changed.
type agentsChanged struct {
	Agents []string `json:"agents"`
	Many   bool     `json:"many,omitempty"` // more have changed than are named
}

func (u update) send(out *sse) error {
	if u.questions != nil {
		if err := out.send("questions", 0, u.questions); err != nil {
			return err
		}
	}
	if u.agents != nil {
		if err := out.send("agents", 0, u.agents); err != nil {
			return err
		}
	}
	if u.output != nil {
		return out.send("output", 0, u.output)
	}
	return nil
}

// watchOutput sends the stream an update at first, and whenever more output of an agent's program is on disk. It ends
// with ctx or an error. It tells at most once in recount, however much there is. The stream ends with it, unless the
// reader may not act as the agent.
func (s *stream) watchOutput(ctx context.Context, name string) {
	agent, err := s.site.Backend.Agent(ctx, s.principal, name)
	if err != nil {
		return
	}
	defer s.end()
	_, cursor, err := agent.Output().Latest(ctx, 0)
	for err == nil {
		select {
		case s.updates <- update{output: &moreOutput{Agent: agent.ID().String()}}:
		case <-ctx.Done():
			return
		}
		pause := time.NewTimer(recount)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
		if cursor, err = agent.Output().Beyond(ctx, cursor); ctx.Err() != nil {
			return
		}
	}
}

// watchQuestions passes the keys of the questions that wait to the stream, first and whenever they change. It ends with
// ctx or an error. With agentsToo it also passes the agents that change. The stream ends with it.
func (s *stream) watchQuestions(ctx context.Context, agentsToo bool) {
	defer s.end()
	var listening sync.WaitGroup
	defer listening.Wait()
	ctx, cancel := context.WithCancel(fair.Later(ctx))
	defer cancel()
	changes := newChangeNotifier()
	again := time.NewTicker(relisten)
	defer again.Stop()
	var last *counted
	asked := questionsOf{}
	for {
		who, err := s.site.locals(ctx, s.principal)
		if err == nil {
			err = changes.listen(ctx, cancel, who, &listening)
		}
		if err != nil {
			return
		}
		agents := changes.take()
		waiting, err := asked.look(ctx, who, agents)
		if err != nil {
			return
		}
		var u update
		if now := countedOf(waiting, rowsOf(waiting.questions, &s.site.readings)); last == nil || now.Count != last.Count || now.More != last.More || !slices.Equal(last.Keys, now.Keys) || !maps.Equal(last.Amended, now.Amended) || !maps.Equal(last.Claimed, now.Claimed) {
			u.questions, last = now, now
		}
		if agentsToo && len(agents) > 0 {
			u.agents = &agentsChanged{Agents: agents[:min(len(agents), maxChangedAgents)], Many: len(agents) > maxChangedAgents}
		}
		if u != (update{}) {
			select {
			case s.updates <- u:
			case <-ctx.Done():
				return
			}
		}
		if !changes.wait(ctx, again.C) {
			return
		}
	}
}

// changeNotifier collects the agents that change.
type changeNotifier struct {
	signal   chan struct{}
	listened map[capabilities.ID]bool
	last     time.Time // of the last return of wait

	mu      sync.Mutex
	changed map[string]bool // by the agent's ID
}

func newChangeNotifier() *changeNotifier {
	return &changeNotifier{signal: make(chan struct{}, 1), listened: map[capabilities.ID]bool{}, changed: map[string]bool{}}
}

// listen begins to listen to those of some agents to which it does not listen yet. If that breaks off, it calls fail.
func (n *changeNotifier) listen(ctx context.Context, fail func(), who []local, work *sync.WaitGroup) error {
	for _, l := range who {
		if n.listened[l.agent.ID()] {
			continue
		}
		n.listened[l.agent.ID()] = true
		version, err := l.agent.Version(ctx)
		if err != nil {
			return err
		}
		work.Go(func() {
			if parley.Survive(func() error { return n.collect(ctx, l.agent, version) }) != nil {
				fail()
			}
		})
	}
	return nil
}

// collect records each change of an agent after a version, and signals it. It returns nil once ctx has ended.
func (n *changeNotifier) collect(ctx context.Context, a api.Agent, version uint64) error {
	id := a.ID().String()
	for {
		now, err := a.Beyond(ctx, version)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		version = now
		n.mu.Lock()
		n.changed[id] = true
		n.mu.Unlock()
		select {
		case n.signal <- struct{}{}:
		default: // a signal waits already
		}
	}
}

// take returns the agents that changed since the last call, sorted.
func (n *changeNotifier) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids := slices.Sorted(maps.Keys(n.changed))
	clear(n.changed)
	return ids
}

// wait blocks until an agent changes, or until it is time to look for new agents. It reports false when ctx has ended. It
// returns at once for the first change after a pause, and then at most once in recount.
func (n *changeNotifier) wait(ctx context.Context, again <-chan time.Time) bool {
	select {
	case <-n.signal:
	case <-again:
	case <-ctx.Done():
		return false
	}
	pause := time.NewTimer(recount - min(recount, time.Since(n.last)))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return false
	}
	n.last = time.Now()
	return true
}
