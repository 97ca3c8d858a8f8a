package actors

import (
	"context"
	"strconv"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/mailbox"
)

// A host stands for other agents of its node, and each of them may have a vote of its own. Who has voted as one is told so where
// another is asked, before they vote. The names are their own.

// whoActs returns who acts as an agent: another agent, or the agent itself.
func whoActs(a *Agent) capabilities.ID {
	if a.person.IsZero() {
		return a.id
	}
	return a.person
}

// tellVoted has forms that wait for an agent's answer say as whom the person has voted already.
func tellVoted(ctx context.Context, a *Agent, messages []view.Message) error {
	for i := range messages {
		e := &messages[i]
		if e.Votes == nil || !e.AnswerNeeded {
			continue
		}
		for _, v := range e.Votes.Cast {
			if v.Beside && !v.Void && (v.By == whoActs(a) || v.Person == whoActs(a)) {
				names, err := personNames(ctx, a, v.By)
				if err != nil {
					return err
				}
				e.Votes.VotedAs = &view.Party{ID: v.By, Name: names[v.By]}
				break
			}
		}
	}
	return nil
}

// personNames returns the names that the person who acts as an agent has for others.
func personNames(ctx context.Context, a *Agent, ids ...capabilities.ID) (map[capabilities.ID]string, error) {
	return query(ctx, &Agent{node: a.node, id: whoActs(a)}, func(s *mailbox.State, now capabilities.Time) (map[capabilities.ID]string, error) {
		names := map[capabilities.ID]string{}
		for _, id := range ids {
			name, err := s.Names.Of(id)
			if err != nil {
				return nil, err
			}
			if name == "" {
				if name, err = s.Namespace().NameOf(id, now); err != nil {
					return nil, err
				}
			}
			names[id] = name
		}
		return names, nil
	})
}

// nameInVotes sets the names in the outcome of a vote of an agent: those that the person who acts as it has for others. It does nothing
// for any other outcome.
func nameInVotes(ctx context.Context, a *Agent, v *view.Votes) error {
	if v == nil {
		return nil
	}
	var all []*view.Party
	for i := range v.Waiting {
		all = append(all, &v.Waiting[i])
	}
	if v.Replaced != nil {
		all = append(all, v.Replaced)
	}
	if len(all) == 0 {
		return nil
	}
	ids := make([]capabilities.ID, len(all))
	for i, p := range all {
		ids[i] = p.ID
	}
	names, err := personNames(ctx, a, ids...)
	for _, p := range all {
		if p.Name = names[p.ID]; p.ID == a.id {
			p.Name = "SELF"
		}
	}
	return err
}

// tellWaiting has a form of this node that an agent has voted on say whose votes are still to come, as the outcome of its vote did: to the
// asker's host.
func tellWaiting(ctx context.Context, a *Agent, e *view.Message) error {
	if e.Votes == nil || e.Votes.Own != view.VoteStands || e.From.Node != a.node.id || e.From == a.id {
		return nil
	}
	waiting, err := query(ctx, &Agent{node: a.node, id: e.From}, func(s *mailbox.State, _ capabilities.Time) (all []view.Party, err error) {
		m, err := s.Mail.FindFormID(e.MessageID)
		if err != nil || !m.Form.IsOpen() || s.Profile.Host != a.id {
			return nil, err
		}
		for _, id := range m.Form.Waiting() {
			all = append(all, view.Party{ID: id})
		}
		return all, nil
	})
	if err != nil {
		return err
	}
	e.Votes.Waiting = waiting
	return nameInVotes(ctx, a, e.Votes)
}

// isSecondVote reports whether an error refuses a second vote of one person.
func isSecondVote(err error) bool {
	return err != nil && parley.AsError(err).Fields[mailbox.SecondVote] != ""
}

// nameVoters returns the error that refuses a second vote with the person's names for the agents in it. Any other error it
// returns as it is.
func nameVoters(ctx context.Context, a *Agent, err error) error {
	if !isSecondVote(err) {
		return err
	}
	refused := parley.AsError(err)
	ids := mailbox.Voters(refused)
	if len(ids) != 2 {
		return err // it has them already
	}
	names, failed := personNames(ctx, a, ids...)
	if failed != nil {
		return failed
	}
	of := func(id capabilities.ID) string {
		if name := names[id]; name != "" {
			return strconv.Quote(name)
		}
		return "another agent"
	}
	return mailbox.NameVoters(refused, of(ids[0]), of(ids[1]))
}
