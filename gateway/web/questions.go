package web

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/queue"
)

// maxQuestions bounds the questions of one agent that a page looks at: the oldest. Where there are more, what it counts has a plus behind it.
const maxQuestions = 500

// atLeast returns a number as it is shown, with a plus where there are more; "" for none.
func atLeast(n int, more bool) string {
	switch {
	case more:
		return strconv.Itoa(n) + "+"
	case n == 0:
		return ""
	}
	return strconv.Itoa(n)
}

// question is a form that waits for the reader, or for an agent that the reader holds.
type question struct {
	view.Message
	local
}

// questionsOf caches the questions that wait for each of several agents, by ID. Most of many agents have not changed
// since the last look. A look would wake an agent that is at rest.
type questionsOf map[string]waitingOf

// waitingOf are the questions that wait for one agent, of which there may be more.
type waitingOf struct {
	questions []question
	more      bool
}

// look returns the questions that wait for agents, oldest first. It looks again only at agents in changed. A form that
// waits for several agents counts once. A form that the first agent, the reader, asked is no question to the reader.
func (q questionsOf) look(ctx context.Context, who []local, changed []string) (all waitingOf, err error) {
	for _, id := range changed {
		delete(q, id)
	}
	seen := map[capabilities.ID]bool{}
	for _, l := range who {
		id := l.agent.ID().String()
		waiting, known := q[id]
		if !known {
			if waiting, err = waitingFor(ctx, l, who[0]); err != nil {
				return all, err
			}
			q[id] = waiting
		}
		all.more = all.more || waiting.more
		for _, w := range waiting.questions {
			if !seen[w.MessageID] {
				seen[w.MessageID] = true
				w.local = l // its name may have changed
				all.questions = append(all.questions, w)
			}
		}
	}
	slices.SortStableFunc(all.questions, func(a, b question) int { return cmp.Or(cmp.Compare(a.Date, b.Date), a.MessageID.Compare(b.MessageID)) })
	return all, nil
}

// questionsFor returns the questions that wait for the reader. The page looks once.
func questionsFor(p *page) ([]question, error) {
	if p.asked == nil {
		who, err := p.site.locals(p.ctx(), p.principal)
		if err != nil {
			return nil, err
		}
		all, err := questionsOf{}.look(p.ctx(), who, nil)
		if err != nil {
			return nil, err
		}
		p.waiting, p.asked, p.askedMore = waitingBy(who, all.questions), append([]question{}, all.questions...), all.more
	}
	return slices.Clone(p.asked), nil
}

// waitingFor returns the forms that wait for one agent's answer and are a question to the reader, who may vote as one of
// their agents and is asked no more then.
func waitingFor(ctx context.Context, l, reader local) (waiting waitingOf, err error) {
	seen := 0
	for e, err := range l.agent.Mail().All(ctx, view.MessageFilter{Pending: true}) {
		if err != nil {
			return waiting, err
		}
		if seen++; seen > maxQuestions {
			waiting.more = true
			break
		}
		if !e.IsSecondVote() && (l.agent.ID() == reader.agent.ID() || e.From != reader.agent.ID()) {
			waiting.questions = append(waiting.questions, question{e, l})
		}
	}
	return waiting, nil
}

// rowsOf returns the number of the rows that questions have in a list.
func rowsOf(waiting []question, r *queue.Readings) (n int) {
	messages := messagesOf(waiting)
	for _, of := range queue.Rank(messages, r, capabilities.At(time.Now())) {
		n += len(partsOf(messages, of))
	}
	return n
}

func messagesOf(all []question) []view.Message {
	messages := make([]view.Message, len(all))
	for i, q := range all {
		messages[i] = q.Message
	}
	return messages
}

// claimMark returns a text that is another for each claim on a form; "" for none.
func claimMark(m *view.Message) string {
	if m.Claim == nil {
		return ""
	}
	return fmt.Sprintf("%s %d", m.Claim.By.ULID, m.Claim.Until)
}

// countedOf returns the event that tells of questions, which are so many rows. It names maxKeys of them.
func countedOf(of waitingOf, rows int) *counted {
	waiting := of.questions
	c := &counted{Count: rows, More: of.more, Part: len(waiting) > maxKeys, Keys: make([]string, 0, min(len(waiting), maxKeys))}
	for _, q := range waiting[:min(len(waiting), maxKeys)] {
		key := ElementKey(q.name, q.Number)
		c.Keys = append(c.Keys, key)
		if mark := claimMark(&q.Message); mark != "" {
			if c.Claimed == nil {
				c.Claimed = map[string]string{}
			}
			c.Claimed[key] = mark
		}
		if q.Revision > 0 {
			if c.Amended == nil {
				c.Amended = map[string]uint64{}
			}
			c.Amended[key] = q.Revision
		}
	}
	return c
}
