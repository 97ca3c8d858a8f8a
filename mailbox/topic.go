package mailbox

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// A topic is an agent that a host has made for posts: messages that its subscribers read when they like. Who subscribes gets digests: a
// message of low priority with a line for each post of a time, or, in a stream, each post. A post costs its author as any message
// does, and nobody else gets less by it:
//
//	author            topic                         subscriber
//	send news …  ->   number 7; due in an hour
//	send news …  ->   number 8
//	                  an hour after number 7   ->   "news: 2 posts", low
//
// Of each author a digest has a bounded number of lines, and the topic keeps a bounded number of posts. Older ones are dismissed, so that
// an author who posts much loses its own posts alone.
const (
	maxSubscribers  = 256
	keptPosts       = 200                // of an author
	digestLines     = 40                 // of a digest
	digestOfAuthor  = 10                 // of them
	maxPostLine     = 120                // characters of a post's line
	digestsAtOnce   = 32                 // that one commit has
	shortestDigest  = time.Minute        // from a post to the digest with it
	longestDigest   = 7 * 24 * time.Hour // the same
	UsualDigest     = time.Hour          // the same, where nothing is said
	maxTopicName    = 64                 // bytes
	unknownAuthorID = 8                  // characters of the ID of an author without a name
)

// Topic is the state of a topic.
type Topic struct {
	Name        string
	Team        capabilities.ID // whose members may join; zero for all agents of the host
	Posted      uint64          // posts that there ever were
	Posts       []TopicPost     // the newest of each author, in their order
	Subscribers []Subscriber    // the first that subscribed first
}

// TopicPost is a post as a digest shows it.
type TopicPost struct {
	Nth    uint64 // of the topic, the first being 1
	Number uint64 // in the mailbox
	Author capabilities.ID
	Line   string // its subject or the beginning of its text, in one line
	At     capabilities.Time
}

// Subscriber is an agent that subscribes to a topic.
type Subscriber struct {
	Agent capabilities.ID
	Every events.Delay // 0 for a stream
	Seen  uint64       // the last post that a digest has had, or that was there when it subscribed
	Due   capabilities.Time
}

// Of returns the subscription of an agent; nil if there is none.
func (t *Topic) Of(agent capabilities.ID) *Subscriber {
	for i := range t.Subscribers {
		if t.Subscribers[i].Agent == agent {
			return &t.Subscribers[i]
		}
	}
	return nil
}

// due returns when the next digest is to be sent; 0 if none is.
func (t *Topic) due() (first capabilities.Time) {
	if t == nil {
		return 0
	}
	for _, s := range t.Subscribers {
		if s.Due != 0 && (first == 0 || s.Due < first) {
			first = s.Due
		}
	}
	return first
}

// IsDue reports whether a digest is to be sent.
func (t *Topic) IsDue(now capabilities.Time) bool { at := t.due(); return at != 0 && at <= now }

// waits has a subscriber be due a while after the first post that it has not got.
func (t *Topic) waits(s *Subscriber) {
	s.Due = 0
	if s.Every == 0 {
		return
	}
	for _, p := range t.Posts {
		if p.Nth > s.Seen && p.Author != s.Agent {
			s.Due = s.Every.After(p.At)
			return
		}
	}
}

// MakeTopic makes the agent a topic. The caller is its host, which has made it for that.
type MakeTopic struct {
	Name string
	Team capabilities.ID
}

// CheckTopicName refuses with INVALID_NAME a name that a topic cannot have.
func CheckTopicName(name string) error {
	if len(name) > maxTopicName {
		return parley.Refuse(parley.InvalidName, "the name of a topic has %d bytes at most", maxTopicName)
	}
	return checkAgentName(name)
}

func (c MakeTopic) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if err := CheckTopicName(c.Name); err != nil {
		return nil, err
	}
	if s.Topic != nil {
		return nil, nil
	}
	if s.Profile.Kind != events.Guest || s.Runs.HasProgram() || !s.Profile.Of.IsZero() {
		return nil, parley.Refuse(parley.InvalidArgument, "a topic is a guest of its own, without a program")
	}
	return []events.Event{&events.TopicMade{Name: capabilities.Normal(c.Name), Team: c.Team}}, nil
}

// MayJoin reports whether an agent of a host may read and write in a topic that is for a team, or for all agents of the host. Of is its
// address if it is a session.
func MayJoin(host *State, team, agent, of capabilities.ID) bool {
	if team.IsZero() || agent == host.ID {
		return true
	}
	t := host.Teams.Of(team)
	return t != nil && (t.Has(agent) || !of.IsZero() && t.Has(of))
}

// AdmitToTopic grants an agent of the host a topic of the host's, and the topic the agent: by that the one posts, and the other knows it
// by a name. What is granted already is no event.
type AdmitToTopic struct{ Topic, Agent, Of, Team capabilities.ID }

func (c AdmitToTopic) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if !MayJoin(s, c.Team, c.Agent, c.Of) {
		return nil, parley.Refuse(parley.NotPermitted, "the topic is for the members of a team").WithHint("the host adds one: parley team TEAM add AGENT")
	}
	var evs []events.Event
	for _, pair := range c.pairs() {
		if pair[0] == s.ID || pair[1] == s.ID || !GrantTo(s, pair[0], pair[1]).IsZero() {
			continue
		}
		grants, err := introduce(s, pair[0], pair[1], now, ids)
		if err != nil {
			return nil, err
		}
		evs = append(evs, grantEvents(grants)...)
	}
	return evs, nil
}

// pairs are who is granted whom.
func (c AdmitToTopic) pairs() [2][2]capabilities.ID {
	return [2][2]capabilities.ID{{c.Agent, c.Topic}, {c.Topic, c.Agent}}
}

// GrantTo returns the ID of a standing grant by which an agent reaches another of the host's, and that the host itself made; zero for none.
func GrantTo(s *State, to, target capabilities.ID) (id capabilities.ID) {
	s.Grants.given.Any(func(g capabilities.Grant) bool {
		if g.To == to && g.Target == target && g.Kind == capabilities.KindAgent && g.Facet == (capabilities.Facet{}) && !s.Grants.isRevoked(g.ID) {
			id = g.ID
		}
		return !id.IsZero()
	})
	return id
}

// introduce returns the grants by which one agent of the host's reaches another.
func introduce(s *State, to, target capabilities.ID, now capabilities.Time, ids IDs) ([]capabilities.Grant, error) {
	ref, err := s.holder(capabilities.UseGive, now).reach(target.String())
	if err != nil {
		return nil, err
	}
	name, err := s.Names.Of(target)
	if err != nil {
		return nil, err
	}
	d := delegation{s: s, to: to, now: now, ids: ids}
	_, err = d.give(name, capabilities.Reference(ref))
	return d.grants, err
}

// ExpelFromTopic revokes the grants by which an agent reaches a topic of the host's.
type ExpelFromTopic struct{ Topic, Agent capabilities.ID }

func (c ExpelFromTopic) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if id := GrantTo(s, c.Agent, c.Topic); !id.IsZero() {
		return []events.Event{&events.CapabilityRevoked{Grant: id, By: s.ID, Date: now}}, nil
	}
	return nil, nil
}

// Subscribe has an agent subscribe to the topic: to digests, or with Stream to each post. End ends that. It is the agent's own wish, which
// the caller knows, as it knows that it may join. What is so already is no event.
type Subscribe struct {
	Agent  capabilities.ID
	Every  time.Duration // 0 is UsualDigest
	Stream bool
	End    bool
}

func (c Subscribe) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	t := s.Topic
	if t == nil {
		return nil, parley.Refuse(parley.InvalidArgument, "it is no topic")
	}
	e := &events.TopicSubscribed{Agent: c.Agent, In: !c.End}
	if !c.End && !c.Stream {
		if c.Every == 0 {
			c.Every = UsualDigest
		}
		if c.Every < shortestDigest || c.Every > longestDigest {
			return nil, parley.Refuse(parley.InvalidArgument, "a digest comes from %s to %s after the first post that it has", capabilities.Span(shortestDigest), capabilities.Span(longestDigest))
		}
		e.Every = events.Delay(c.Every / time.Millisecond)
	}
	if c.End || c.Stream {
		if c.Every != 0 {
			return nil, parley.Refuse(parley.InvalidArgument, "only a digest comes after a time")
		}
	}
	known := t.Of(c.Agent)
	switch {
	case c.End && known == nil, !c.End && known != nil && known.Every == e.Every:
		return nil, nil
	case c.End:
		return append(endStream(s, c.Agent, now), e), nil
	case c.Agent.Node != s.ID.Node || c.Agent == s.ID:
		return nil, parley.Refuse(parley.InvalidArgument, "only another agent of the topic's host subscribes to it")
	case known == nil && len(t.Subscribers) >= maxSubscribers:
		return nil, parley.Refuse(parley.QuotaExceeded, "%d agents subscribe to the topic, which is as many as may", maxSubscribers)
	}
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if !c.Stream {
		return append(endStream(s, c.Agent, now), e), nil
	}
	evs, err := SetMember{Agent: c.Agent.String(), In: true}.decide(s, now, ids)
	return append(evs, e), err
}

// endStream returns the event by which nothing is passed on to an agent any more, if it was.
func endStream(s *State, agent capabilities.ID, now capabilities.Time) []events.Event {
	if !slices.Contains(s.StandIns.members, agent) {
		return nil
	}
	return []events.Event{&events.MemberSet{Agent: agent, Date: now}}
}

// PostDigests sends the digests whose time has come. Gone reports whether an agent is archived, whose subscription ends. With Unread no post is
// read for what its author calls itself: one in an archive holds up no digest.
type PostDigests struct {
	Gone   func(capabilities.ID) bool
	Unread bool
}

func (c PostDigests) decide(s *State, now capabilities.Time, ids IDs) (evs []events.Event, err error) {
	if s.Topic == nil || s.Profile.Archived {
		return nil, nil
	}
	number, count := s.Mail.Index.Len(), 0
	for _, one := range s.Topic.Subscribers {
		if one.Due == 0 || one.Due > now {
			continue
		}
		if count++; count > digestsAtOnce {
			break // the next message to the mailbox sends the rest: it is due still
		}
		if c.Gone(one.Agent) {
			evs = append(append(evs, endStream(s, one.Agent, now)...), &events.TopicSubscribed{Agent: one.Agent})
			continue
		}
		subject, text, err := digest(s, one, c.Unread)
		if err != nil {
			return nil, err
		}
		m := &events.MessagePosted{
			Number: number, Message: ids(), From: s.ID, To: one.Agent, Header: events.Header{Subject: subject, Priority: events.Low},
			Text: []events.Span{{Words: text}}, Date: now, Sender: s.Profile.called(),
		}
		number++
		evs = append(evs, m, &events.DigestPosted{Agent: one.Agent, Through: s.Topic.Posted, Message: m.Message})
	}
	return evs, nil
}

// digest returns the subject and the text of a digest. What others wrote stands in quotes, a line each. It fails with PagedOut.
func digest(s *State, of Subscriber, unread bool) (subject, text string, err error) {
	t := s.Topic
	var b strings.Builder
	var posts []TopicPost
	shown := 0
	byAuthor := map[capabilities.ID]int{}
	authors := 0
	for _, p := range t.Posts {
		if p.Nth <= of.Seen || p.Author == of.Agent {
			continue
		}
		shown++
		account := s.Account.of(p.Author)
		if byAuthor[account]++; byAuthor[account] == 1 {
			authors++
		}
		if len(posts) < digestLines && byAuthor[account] <= digestOfAuthor {
			posts = append(posts, p)
		}
	}
	names, err := authorNames(s, posts, unread)
	if err != nil {
		return "", "", err
	}
	for i, p := range posts {
		fmt.Fprintf(&b, "#%d %s: %s\n", p.Number, names[i], parley.Quoted(p.Line, maxPostLine))
	}
	if more := shown - len(posts); more > 0 {
		fmt.Fprintf(&b, "%d more, of %d authors in all\n", more, authors)
	}
	fmt.Fprintf(&b, "Read them with read_topic, or parley topic read %s.", t.Name)
	what := "1 post"
	if shown != 1 {
		what = fmt.Sprintf("%d posts", shown)
	}
	return t.Name + ": " + what, b.String(), nil
}

// authorNames returns the topic's names for the authors of posts. Those whom it has none for are shown as what they call themselves, which
// their posts say. It fails with PagedOut, once for all posts.
func authorNames(s *State, posts []TopicPost, unread bool) ([]string, error) {
	names := make([]string, len(posts))
	var strangers []int
	var numbers []uint64
	for i, p := range posts {
		name, err := s.Names.Of(p.Author)
		if _, absent := errors.AsType[*PagedOut](err); absent {
			return nil, err
		}
		switch ulid := p.Author.ULID.String(); {
		case p.Author == s.Profile.Host:
			names[i] = "host"
		case name != "":
			names[i] = parley.Shown(name, maxTopicName)
		default:
			names[i] = "agent-" + ulid[len(ulid)-unknownAuthorID:]
			strangers, numbers = append(strangers, i), append(numbers, p.Number)
		}
	}
	if unread {
		return names, nil
	}
	said, err := s.Mail.Messages(numbers)
	if err != nil {
		return nil, err
	}
	for k, i := range strangers {
		if e := said[k].Posted; e != nil {
			names[i] = cmp.Or(parley.Called(authorSaid(e)), names[i])
		}
	}
	return names, nil
}

// authorSaid returns what the author of a message calls itself.
func authorSaid(e *events.MessagePosted) string {
	if e.Author.IsZero() || e.Author == e.From {
		return e.Sender
	}
	return e.AuthorSaid
}

// surplusPost returns the event by which a topic dismisses the oldest post of an author that has as many as are kept. All agents of
// another node count as one: it says itself how many it has.
func surplusPost(s *State, author capabilities.ID) []events.Event {
	if s.Topic == nil {
		return nil
	}
	oldest, count := uint64(0), 0
	for _, p := range s.Topic.Posts {
		if s.Account.of(p.Author) == s.Account.of(author) {
			if count++; count == 1 {
				oldest = p.Number
			}
		}
	}
	if count < keptPosts {
		return nil
	}
	return []events.Event{&events.MessageDismissed{Number: oldest}}
}

func topicMade(f fold, e *events.TopicMade) error {
	if f.Topic != nil {
		return fmt.Errorf("%w: a topic made twice", ErrNonsense)
	}
	f.Topic = &Topic{Name: e.Name, Team: e.Team}
	return nil
}

// notePost notes a message that a topic was sent.
func notePost(f fold, e *events.MessagePosted) {
	t := f.Topic
	if t == nil || e.From == f.ID {
		return
	}
	first, _, _ := strings.Cut(strings.TrimSpace(ShowText(e.Text)), "\n")
	t.Posted++
	author := payerOf(e)
	at := f.at
	if author.Node == f.ID.Node { // the clock's time; another node may have said any that has passed
		at = e.Date
	}
	t.Posts = append(t.Posts, TopicPost{Nth: t.Posted, Number: e.Number, Author: author, Line: parley.Cut(cmp.Or(e.Subject, first), maxPostLine), At: at})
	for i := range t.Subscribers {
		if s := &t.Subscribers[i]; s.Due == 0 && s.Every != 0 && s.Agent != author {
			s.Due = s.Every.After(at)
		}
	}
}

// dropPost takes a post that is dismissed from those that digests show.
func (t *Topic) dropPost(number uint64) {
	if t != nil {
		t.Posts = slices.DeleteFunc(t.Posts, func(p TopicPost) bool { return p.Number == number })
	}
}

func topicSubscribed(f fold, e *events.TopicSubscribed) error {
	t := f.Topic
	if t == nil {
		return fmt.Errorf("%w: no topic", ErrNonsense)
	}
	one := t.Of(e.Agent)
	switch {
	case !e.In && one == nil:
		return fmt.Errorf("%w: no subscriber %s", ErrNonsense, e.Agent)
	case !e.In:
		t.Subscribers = slices.DeleteFunc(t.Subscribers, func(s Subscriber) bool { return s.Agent == e.Agent })
		return nil
	case one == nil:
		t.Subscribers = append(t.Subscribers, Subscriber{Agent: e.Agent, Every: e.Every, Seen: t.Posted})
		return nil
	}
	if one.Every == 0 { // it has had all of the stream
		one.Seen = t.Posted
	}
	one.Every = e.Every
	t.waits(one)
	return nil
}

func digestPosted(f fold, e *events.DigestPosted) error {
	if f.Topic == nil || f.Topic.Of(e.Agent) == nil {
		return fmt.Errorf("%w: no subscriber %s", ErrNonsense, e.Agent)
	}
	one := f.Topic.Of(e.Agent)
	one.Seen = e.Through
	f.Topic.waits(one)
	return nil
}
