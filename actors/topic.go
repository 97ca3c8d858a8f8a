package actors

import (
	"cmp"
	"context"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Topics are the topics of a host, as one of its agents sees them.
type Topics struct{ agent *Agent }

// TopicsOf returns the topics of an agent's host, as the agent sees them.
func TopicsOf(a *Agent) Topics { return Topics{a} }

// LabelTopic is the label of the agents that are topics.
const (
	LabelTopic = "topic"
	isTopic    = "yes"
)

// topicAt is a topic with its name, and what it is for whom.
type topicAt struct {
	*Agent

	name string
	team capabilities.ID
}

// Make makes a topic of the host's, which is the agent: for all agents of the host, or for the members of a team. What an earlier call has
// made without getting further is taken.
func (t Topics) Make(ctx context.Context, name, team string) (none view.Topic, err error) {
	who, err := LeasesOf(t.agent).holder(ctx)
	if err != nil {
		return none, err
	}
	if who.home.id != who.id {
		return none, parley.Refuse(parley.NotPermitted, "only a host makes topics")
	}
	if err := mailbox.CheckTopicName(name); err != nil {
		return none, err
	}
	c := mailbox.MakeTopic{Name: name}
	if team != "" {
		found, err := TeamsOf(t.agent).named(ctx, team)
		if err != nil {
			return none, err
		}
		if found == nil {
			return none, parley.Refuse(parley.UnknownName, "no team %s", parley.Quoted(team, 80)).WithHint("parley team ls lists the teams")
		}
		c.Team = found.ID
	}
	made, err := t.agent.Make(ctx, NewAgent{Kind: events.Guest, Name: name, Title: name, Labels: map[string]string{LabelTopic: isTopic}})
	if parley.CodeOf(err) == parley.NameTaken {
		there, failed := t.agent.Agents().Find(ctx, name)
		if failed != nil {
			return none, err
		}
		status, failed := there.Status(ctx)
		if failed != nil || status.Labels[LabelTopic] != isTopic || status.Maker != t.agent.id || t.agent.node.isArchived(there.id) {
			return none, err
		}
		made, err = there, nil
	}
	if err == nil {
		err = made.do(ctx, c)
	}
	if err != nil {
		return none, err
	}
	one, err := t.find(ctx, name)
	if err == nil && one.team != c.Team {
		err = parley.Refuse(parley.NameTaken, "there is a topic %s already", parley.Quoted(name, 80))
	}
	if err != nil {
		return none, err
	}
	return t.shown(ctx, one)
}

// find returns a topic of the agent's host that the agent may join, by the host's name for it. It refuses with UNKNOWN_NAME.
func (t Topics) find(ctx context.Context, name string) (found topicAt, err error) {
	unknown := parley.Refuse(parley.UnknownName, "no topic %s", parley.Quoted(name, 80)).WithHint("parley topic ls lists the topics")
	who, err := LeasesOf(t.agent).holder(ctx)
	if err != nil {
		return found, err
	}
	one, err := who.home.Agents().Find(ctx, name)
	switch code := parley.CodeOf(err); {
	case code == parley.AgentNotFound || code == parley.UnknownName || code == parley.Ambiguous || code == parley.NotPermitted:
		err = unknown
	case err == nil:
		found, err = t.mine(ctx, who, one, unknown)
	}
	if err != nil {
		err = elsewhere(ctx, t.agent, name, "topic", "a message to it is a post: parley send "+name+" TEXT", err)
	}
	return found, err
}

// mine returns a topic if it is one of the host's that the agent may join; else an error.
func (t Topics) mine(ctx context.Context, who leaseholder, one *Agent, unknown error) (found topicAt, err error) {
	if one.id.Node != who.home.id.Node {
		return found, unknown
	}
	found, err = query(ctx, one, func(s *mailbox.State, _ capabilities.Time) (topicAt, error) {
		if s.Topic == nil || s.Profile.Archived || s.Profile.Host != who.home.id {
			return topicAt{}, unknown
		}
		return topicAt{one, s.Topic.Name, s.Topic.Team}, nil
	})
	if err != nil {
		return found, err
	}
	may, err := query(ctx, who.home, func(s *mailbox.State, _ capabilities.Time) (bool, error) {
		return mailbox.MayJoin(s, found.team, who.id, who.of), nil
	})
	if err == nil && !may {
		err = unknown
	}
	return found, err
}

// List returns the topics that the agent may join, by their names.
func (t Topics) List(ctx context.Context) (view.Topics, error) {
	all := view.Topics{Topics: []view.Topic{}}
	who, err := LeasesOf(t.agent).holder(ctx)
	if err != nil {
		return all, err
	}
	agents, err := who.home.Agents().List(ctx, view.AgentFilter{Labels: map[string]string{LabelTopic: isTopic}})
	if err != nil {
		return all, err
	}
	unknown := parley.Refuse(parley.UnknownName, "it is none")
	for _, s := range agents {
		one, err := t.mine(ctx, who, AgentOf(t.agent.node, s.ID), unknown)
		if err == error(unknown) {
			continue
		}
		if err != nil {
			return all, err
		}
		shown, err := t.shown(ctx, one)
		if err != nil {
			return all, err
		}
		all.Topics = append(all.Topics, shown)
	}
	slices.SortFunc(all.Topics, func(a, b view.Topic) int { return cmp.Compare(a.Topic, b.Topic) })
	return all, nil
}

// shown returns a topic as the agent sees it.
func (t Topics) shown(ctx context.Context, one topicAt) (view.Topic, error) {
	got, err := query(ctx, one.Agent, func(s *mailbox.State, _ capabilities.Time) (view.Topic, error) {
		shown := view.Topic{Topic: s.Topic.Name, Agent: s.ID, Posts: s.Topic.Posted, Subscribers: len(s.Topic.Subscribers)}
		if n := len(s.Topic.Posts); n > 0 {
			shown.Last = s.Topic.Posts[n-1].At
		}
		if sub := s.Topic.Of(t.agent.id); sub != nil {
			shown.Subscribed, shown.Stream, shown.EveryMs, shown.Next = true, sub.Every == 0, int64(sub.Every), sub.Due
		}
		return shown, nil
	})
	if err != nil {
		return got, err
	}
	who, err := LeasesOf(t.agent).holder(ctx)
	if err != nil {
		return got, err
	}
	name, err := who.home.Names().Of(ctx, one.id)
	if err != nil {
		return got, err
	}
	got.Topic = cmp.Or(name, got.Topic)
	if !one.team.IsZero() {
		got.Team, err = query(ctx, who.home, func(s *mailbox.State, _ capabilities.Time) (string, error) {
			if team := s.Teams.Of(one.team); team != nil {
				return team.Name, nil
			}
			return "", nil
		})
	}
	return got, err
}

// Subscribe has the agent subscribe to a topic, which it may write to from then on, or ends that. The command's agent is the agent.
func (t Topics) Subscribe(ctx context.Context, name string, c mailbox.Subscribe) (view.Topic, error) {
	one, err := t.find(ctx, name)
	if err != nil {
		return view.Topic{}, err
	}
	if !c.End {
		if err := t.admit(ctx, one); err != nil {
			return view.Topic{}, err
		}
	}
	c.Agent = t.agent.id
	if err := one.do(ctx, c); err != nil {
		return view.Topic{}, err
	}
	return t.shown(ctx, one)
}

// Post sends a post to a topic. It is a message of the agent's, and costs it as any.
func (t Topics) Post(ctx context.Context, name string, p parley.Post) (view.Sent, error) {
	one, err := t.find(ctx, name)
	if err == nil {
		err = t.admit(ctx, one)
	}
	if err != nil {
		return view.Sent{}, err
	}
	return Post(ctx, t.agent, mailbox.PostMessage{To: one.id.String(), Post: p})
}

// admit has the agent hold a topic, and the topic know the agent, by grants of the host's.
func (t Topics) admit(ctx context.Context, one topicAt) error {
	who, err := LeasesOf(t.agent).holder(ctx)
	if err != nil || who.id == who.home.id {
		return err
	}
	if held, err := Holds(ctx, t.agent, one.id.String()); held || err != nil {
		return err
	}
	c := mailbox.AdmitToTopic{Topic: one.id, Agent: who.id, Of: who.of, Team: one.team}
	if err := who.home.do(ctx, c); err != nil {
		return err
	}
	for _, pair := range [][2]*Agent{{one.Agent, t.agent}, {t.agent, one.Agent}} { // the agent is admitted once it holds the topic
		hold, err := query(ctx, who.home, func(s *mailbox.State, _ capabilities.Time) (mailbox.HoldMember, error) {
			grant := mailbox.GrantTo(s, pair[0].id, pair[1].id)
			value, err := mailbox.TeamReference{Grant: grant}.Reference(s)
			if err != nil {
				return mailbox.HoldMember{}, err
			}
			called, err := s.Names.Of(pair[1].id)
			return mailbox.HoldMember{Name: called, Value: value}, err
		})
		if err != nil {
			return err
		}
		if err := pair[0].do(ctx, hold); err != nil {
			return err
		}
	}
	return nil
}

// maxPosts bounds the posts that are read at once.
const maxPosts = 100

// Posts returns the posts of a topic that came last before a number, the oldest first, or the one with a number. Before 0 means the newest.
func (t Topics) Posts(ctx context.Context, name string, number *uint64, before uint64, limit int) (view.TopicPosts, error) {
	all := view.TopicPosts{Posts: []view.TopicPost{}}
	one, err := t.find(ctx, name)
	if err != nil {
		return all, err
	}
	if number != nil {
		m, err := one.Message(ctx, capabilities.FormNumber(*number))
		if err == nil && m.From == one.id {
			err = parley.Refuse(parley.NoSuchMessage, "%d is no post", *number)
		}
		if err != nil {
			return all, err
		}
		all.Posts = append(all.Posts, postOf(m))
		return all, nil
	}
	if limit <= 0 || limit > maxPosts {
		limit = maxPosts
	}
	got, err := one.Mail().Last(ctx, view.MessageFilter{}, before, limit)
	if err != nil {
		return all, err
	}
	for _, m := range got.Messages {
		if m.From != one.id {
			all.Posts = append(all.Posts, postOf(m))
		}
	}
	if len(got.Messages) > 0 {
		older, err := one.Mail().Last(ctx, view.MessageFilter{}, got.Messages[0].Number, 1)
		if err != nil {
			return all, err
		}
		all.More = got.Messages[0].Number > 0 && len(older.Messages) > 0
	}
	return all, nil
}

func postOf(m view.Message) view.TopicPost {
	p := view.TopicPost{Number: m.Number, Message: m.MessageID, From: m.From, FromName: m.FromName, FromSaid: m.FromSaid, Subject: m.Subject, Text: m.Text, Date: m.Date, ReplyTo: m.ReplyNumber, Files: m.Files}
	if !m.Author.IsZero() {
		p.From, p.FromName, p.FromSaid = m.Author, m.AuthorName, m.AuthorSaid
	}
	return p
}

// End ends a topic of the host's, which is the agent. What was posted stays in the log.
func (t Topics) End(ctx context.Context, name string) error {
	one, err := t.find(ctx, name)
	if err != nil {
		return err
	}
	if err := t.agent.Agents().Archive(ctx, one.Agent); err != nil {
		return err
	}
	called, err := t.agent.Names().Of(ctx, one.id)
	if err == nil && called != "" {
		err = t.agent.Names().Remove(ctx, called)
	}
	return err
}

// leaveTopics has an agent that leaves a team, and its sessions, leave the topics of that team.
func leaveTopics(ctx context.Context, host *Agent, team, member capabilities.ID) error {
	agents, err := host.Agents().List(ctx, view.AgentFilter{Labels: map[string]string{LabelTopic: isTopic}})
	if err != nil {
		return err
	}
	leaving, err := familyOf(ctx, AgentOf(host.node, member))
	if err != nil {
		return err
	}
	for _, status := range agents {
		topic := AgentOf(host.node, status.ID)
		of, err := query(ctx, topic, func(s *mailbox.State, _ capabilities.Time) (bool, error) {
			return s.Topic != nil && s.Topic.Team == team, nil
		})
		if err != nil {
			return err
		}
		for _, id := range leaving {
			if !of {
				break
			}
			if err := expel(ctx, host, topic, AgentOf(host.node, id)); err != nil {
				return err
			}
		}
	}
	return nil
}

// expel ends the subscription of an agent to a topic, and the grant by which it writes there.
func expel(ctx context.Context, host, topic, agent *Agent) error {
	if err := topic.do(ctx, mailbox.Subscribe{Agent: agent.id, End: true}); err != nil {
		return err
	}
	grant, err := query(ctx, host, func(s *mailbox.State, _ capabilities.Time) (capabilities.ID, error) {
		return mailbox.GrantTo(s, agent.id, topic.id), nil
	})
	if err != nil || grant.IsZero() {
		return err
	}
	if err := host.do(ctx, mailbox.ExpelFromTopic{Topic: topic.id, Agent: agent.id}); err != nil {
		return err
	}
	return agent.do(ctx, mailbox.LoseMember{Grant: grant, Target: topic.id})
}
