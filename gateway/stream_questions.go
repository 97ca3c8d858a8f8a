package gateway

import (
	"context"
	"slices"
	"sync"
	"time"

	"parley/actors"
)

const (
	recount  = 200 * time.Millisecond // between two looks at what waits, when much happens
	relisten = 10 * time.Second       // until an agent made meanwhile is listened to as well
)

// watchQuestions hands over the keys of the questions that wait, now and whenever they change, until ctx ends or
// something fails.
func (s *Server) watchQuestions(ctx context.Context, end func(), to chan<- []string) {
	defer end()
	var listening sync.WaitGroup
	defer listening.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ear := &ear{heard: make(chan struct{}, 1), at: map[string]bool{}}
	again := time.NewTicker(relisten)
	defer again.Stop()
	var last []string
	for first := true; ; first = false {
		if err := s.listen(ctx, cancel, ear, &listening); err != nil {
			return
		}
		waiting, err := s.allQuestions(ctx)
		if err != nil {
			return
		}
		if keys := questionKeys(waiting); first || !slices.Equal(last, keys) {
			select {
			case to <- keys:
			case <-ctx.Done():
				return
			}
			last = keys
		}
		if !ear.wait(ctx, again.C) {
			return
		}
	}
}

// ear is told when the mail of any of several agents changes.
type ear struct {
	heard chan struct{}
	at    map[string]bool // by agent
	last  time.Time
}

// listen has every agent's changes heard that are not yet.
func (s *Server) listen(ctx context.Context, fail func(), e *ear, work *sync.WaitGroup) error {
	who, err := s.locals(ctx)
	if err != nil {
		return err
	}
	for _, l := range who {
		id := l.agent.ID().String()
		if e.at[id] {
			continue
		}
		e.at[id] = true
		in, err := l.agent.Page(ctx, actors.View{All: true}, 0, 0)
		if err != nil {
			return err
		}
		work.Go(func() { e.hear(ctx, fail, l.agent, in.Cursor) })
	}
	return nil
}

// hear passes on that an agent's mail has changed, however often, until it is heeded.
func (e *ear) hear(ctx context.Context, fail func(), a *actors.Agent, cursor uint64) {
	for ctx.Err() == nil {
		in, err := a.Changes(ctx, actors.View{All: true}, cursor)
		if err != nil {
			fail()
			return
		}
		if cursor = in.Cursor; len(in.Messages) == 0 {
			continue
		}
		select {
		case e.heard <- struct{}{}:
		default: // it was told, and has not looked yet
		}
	}
}

// wait waits until something is heard, or until it is time to look for new agents. It reports false when ctx has
// ended. The first after a silence is heeded at once.
func (e *ear) wait(ctx context.Context, again <-chan time.Time) bool {
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
		keys[i] = elementKey(q.name, q.Number)
	}
	return keys
}
