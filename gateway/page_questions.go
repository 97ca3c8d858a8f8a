package gateway

import (
	"cmp"
	"context"
	"slices"

	"parley/actors"
	"parley/capabilities"
)

// maxQuestions bounds what is looked at of one agent's questions.
const maxQuestions = 500

// question is a form that waits for whoever is signed in, as itself or for an agent that it holds.
type question struct {
	actors.Envelope
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
		waiting = slices.DeleteFunc(waiting, func(q question) bool { return !slices.Contains(keys, elementKey(q.name, q.Number)) })
	}
	var cards []card
	for _, q := range waiting[:min(len(waiting), firstPaint)] {
		cards = append(cards, v.s.card(ctx, q.local, q.Envelope, nil))
	}
	return v.show(200, "questions.html", layout{Title: "Questions", Count: count, Main: cards})
}

// allQuestions gives what waits, oldest first. A form that has come to several of the agents waits once, and what who
// is signed in asked of them is not a question to that person.
func (s *Server) allQuestions(ctx context.Context) ([]question, error) {
	who, err := s.locals(ctx)
	if err != nil {
		return nil, err
	}
	var all []question
	seen := map[capabilities.ID]bool{}
	for _, l := range who {
		waiting, err := waitingFor(ctx, l, who[0])
		if err != nil {
			return nil, err
		}
		for _, q := range waiting {
			if !seen[q.MessageID] {
				seen[q.MessageID] = true
				all = append(all, q)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b question) int { return cmp.Compare(a.Date, b.Date) })
	return all, nil
}

// waitingFor gives what waits for one agent's answer and is a question to another.
func waitingFor(ctx context.Context, l, reader local) ([]question, error) {
	in, err := l.agent.Page(ctx, actors.View{Pending: true}, 0, maxQuestions)
	if err != nil {
		return nil, err
	}
	var waiting []question
	for _, e := range in.Messages {
		if l.agent.ID() == reader.agent.ID() || e.From != reader.agent.ID() {
			waiting = append(waiting, question{e, l})
		}
	}
	return waiting, nil
}
