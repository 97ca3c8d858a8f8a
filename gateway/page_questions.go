package gateway

import (
	"cmp"
	"context"
	"slices"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/web"
)

// maxQuestions bounds what is looked at of one agent's questions.
const maxQuestions = 500

// question is a form that waits for whoever is signed in, as itself or for an agent that it holds.
type question struct {
	view.Message
	local
}

// questions shows what waits for this person, oldest first, or those of which the keys are asked for.
func (v *viewing) questions() error {
	if err := v.readsOnly(); err != nil {
		return err
	}
	ctx := v.r.Context()
	waiting, err := v.s.allQuestions(ctx)
	if err != nil {
		return err
	}
	count := len(waiting)
	if keys := v.r.URL.Query()["key"]; len(keys) > 0 {
		waiting = slices.DeleteFunc(waiting, func(q question) bool { return !slices.Contains(keys, web.ElementKey(q.name, q.Number)) })
	}
	var cards []web.Card
	waiting, err = api.OldestFitting(waiting[:min(len(waiting), firstPaint)])
	if err != nil {
		return err
	}
	for _, q := range waiting {
		cards = append(cards, v.s.card(ctx, q.local, q.Message, nil))
	}
	return v.show(200, "questions.html", web.Layout{Title: "Questions", Count: count, Main: cards})
}

// allQuestions gives what waits, oldest first.
func (s *Server) allQuestions(ctx context.Context) ([]question, error) {
	who, err := s.locals(ctx)
	if err != nil {
		return nil, err
	}
	return questionsOf{}.look(ctx, who, nil)
}

// questionsOf is what waits for each of several agents, by ID, as it was when that was looked at. Most of many agents
// have not changed since, and to look at one that is at rest is to wake it.
type questionsOf map[string][]question

// look gives what waits for agents, oldest first, and looks again only at those in changed. A form that has come
// to several of them waits once, and what the first of them, who is signed in, asked is not a question to that person.
func (q questionsOf) look(ctx context.Context, who []local, changed []string) ([]question, error) {
	for _, id := range changed {
		delete(q, id)
	}
	var all []question
	seen := map[capabilities.ID]bool{}
	for _, l := range who {
		id := l.agent.ID().String()
		waiting, known := q[id]
		if !known {
			var err error
			if waiting, err = waitingFor(ctx, l, who[0]); err != nil {
				return nil, err
			}
			q[id] = waiting
		}
		for _, w := range waiting {
			if !seen[w.MessageID] {
				seen[w.MessageID] = true
				w.local = l // it may be called otherwise by now
				all = append(all, w)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b question) int { return cmp.Compare(a.Date, b.Date) })
	return all, nil
}

// waitingFor gives what waits for one agent's answer and is a question to another.
func waitingFor(ctx context.Context, l, reader local) ([]question, error) {
	var waiting []question
	seen := 0
	for e, err := range l.agent.Mail().All(ctx, view.MessageFilter{Pending: true}) {
		if err != nil {
			return nil, err
		}
		if seen++; seen > maxQuestions {
			break
		}
		if l.agent.ID() == reader.agent.ID() || e.From != reader.agent.ID() {
			waiting = append(waiting, question{e, l})
		}
	}
	return waiting, nil
}
