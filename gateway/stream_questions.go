package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/gateway/api"
	"parley/gateway/web"
)

const (
	recount          = 200 * time.Millisecond // between two looks at what waits, when much happens
	relisten         = 10 * time.Second       // between two looks for new agents
	maxChangedAgents = 50                     // agents that one event names
	maxKeys          = 1000                   // questions that one event names
)

// news is a change besides messages: the questions that wait, the agents to which something happened, or both.
type news struct {
	questions *counted
	agents    *agentsChanged
}

// counted is the event "questions": how many wait, and the keys of them, oldest first.
type counted struct {
	Count int      `json:"count"`
	Keys  []string `json:"keys"`
}

// agentsChanged is the event "agents": agents to which something has happened.
type agentsChanged struct {
	Agents []string `json:"agents"`
	Many   bool     `json:"many,omitempty"` // and more of them than are named
}

func (n news) send(out *sse) error {
	if n.questions != nil {
		if err := out.send("questions", 0, n.questions); err != nil {
			return err
		}
	}
	if n.agents != nil {
		return out.send("agents", 0, n.agents)
	}
	return nil
}

// watchQuestions sends the keys of the questions that wait, now and whenever they change, until ctx ends or an error. With
// agentsToo it also sends the agents to which something happens.
func (s *Server) watchQuestions(ctx context.Context, end func(), agentsToo bool, to chan<- news) {
	defer end()
	var listening sync.WaitGroup
	defer listening.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes := newChangeNotifier()
	again := time.NewTicker(relisten)
	defer again.Stop()
	var last []string
	asked := questionsOf{}
	for first := true; ; first = false {
		who, err := s.listen(ctx, cancel, changes, &listening)
		if err != nil {
			return
		}
		agents := changes.take()
		waiting, err := asked.look(ctx, who, agents)
		if err != nil {
			return
		}
		var n news
		if keys := questionKeys(waiting); first || !slices.Equal(last, keys) {
			n.questions = &counted{Count: len(keys), Keys: keys[:min(len(keys), maxKeys)]}
			last = keys
		}
		if agentsToo && len(agents) > 0 {
			n.agents = &agentsChanged{Agents: agents[:min(len(agents), maxChangedAgents)], Many: len(agents) > maxChangedAgents}
		}
		if n != (news{}) {
			select {
			case to <- n:
			case <-ctx.Done():
				return
			}
		}
		if !changes.wait(ctx, again.C) {
			return
		}
	}
}

// changeNotifier collects the agents to which something happened.
type changeNotifier struct {
	heard chan struct{}
	at    map[string]bool // by agent
	last  time.Time

	mu    sync.Mutex
	whose map[string]bool // to whom it happened
}

func newChangeNotifier() *changeNotifier {
	return &changeNotifier{heard: make(chan struct{}, 1), at: map[string]bool{}, whose: map[string]bool{}}
}

// listen returns all agents that the reader may act as, and begins to listen to the new ones.
func (s *Server) listen(ctx context.Context, fail func(), e *changeNotifier, work *sync.WaitGroup) ([]local, error) {
	who, err := s.locals(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range who {
		id := l.agent.ID().String()
		if e.at[id] {
			continue
		}
		e.at[id] = true
		version, err := l.agent.Version(ctx)
		if err != nil {
			return nil, err
		}
		work.Go(func() { e.hear(ctx, fail, l.agent, version) })
	}
	return who, nil
}

// hear records each change of an agent, and signals e.heard.
func (e *changeNotifier) hear(ctx context.Context, fail func(), a api.Agent, version uint64) {
	id := a.ID().String()
	for {
		now, err := a.Beyond(ctx, version)
		if err != nil {
			fail()
			return
		}
		if ctx.Err() != nil {
			return
		}
		version = now
		e.mu.Lock()
		e.whose[id] = true
		e.mu.Unlock()
		select {
		case e.heard <- struct{}{}:
		default: // a signal waits already
		}
	}
}

// take returns the agents that changed since the last call, sorted.
func (e *changeNotifier) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := sortedKeys(e.whose)
	clear(e.whose)
	return ids
}

// wait blocks until an agent changes, or until it is time to look for new agents. It reports false when ctx has ended. It
// returns at once for the first change after a pause, and then at most once in recount.
func (e *changeNotifier) wait(ctx context.Context, again <-chan time.Time) bool {
	select {
	case <-e.heard:
	case <-again:
	case <-ctx.Done():
		return false
	}
	pause := time.NewTimer(recount - min(recount, time.Since(e.last)))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return false
	}
	e.last = time.Now()
	return true
}

func questionKeys(waiting []question) []string {
	keys := make([]string, len(waiting))
	for i, q := range waiting {
		keys[i] = web.ElementKey(q.name, q.Number)
	}
	return keys
}
