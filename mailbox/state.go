package mailbox

import (
	"iter"
	"slices"
	"unicode/utf8"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/quota"
	"parley/mailbox/table"
)

// State is a mailbox as its events have made it. New makes one, and Apply alone changes it. Each part keeps one noun
// and has the methods that need no other part.
type State struct {
	ID      capabilities.ID
	Version uint64 // events folded so far
	Profile Profile

	Mail    Mail
	Names   Names
	Grants  Grants
	Outbox  Outbox
	Rules   Rules
	Runs    Runs
	Tokens  Tokens
	Account Account
	Peers   PeerDirectory

	StandIns StandIns
	Sessions Sessions
	Files    Files
	Leases   Leases
	Teams    Teams
	Resource Resource
	Passkeys Passkeys

	Attention parley.Attention
	Topic     *Topic // nil if it is none

	profileVersion uint64

	latest, behind capabilities.Time // the node's time, and how far the clock is behind it: see clock.go
}

// New returns the state of a mailbox without events.
func New(id capabilities.ID) *State {
	s := &State{
		ID:      id,
		Mail:    newMail(id),
		Grants:  newGrants(id),
		Outbox:  Outbox{self: id},
		Rules:   Rules{self: id, byID: map[capabilities.ID]*Rule{}},
		Account: Account{self: id},
		Leases:  Leases{self: id},
	}
	s.Names = newNames(id, &s.Profile)
	s.Tokens.profile = &s.Profile
	return s
}

// Summary returns what the journal notes of the mailbox beside its events.
func (s *State) Summary() events.Summary {
	deadline := s.Mail.timers.next(s.Mail.isStanding)
	for _, at := range []capabilities.Time{s.Leases.next, s.Topic.due()} {
		if at != 0 && (deadline == 0 || at < deadline) {
			deadline = at
		}
	}
	return events.Summary{
		Open: uint32(s.Mail.asks.numbers.Len()), Waiting: uint32(s.Mail.Unanswered()), Outbox: uint32(len(s.Outbox.items) + s.Runs.pending() + dueQueued(&s.Mail)),
		Deadline: deadline,
	}
}

// ProfileVersion returns the version after the last event that changed how the agent is shown: its profile, its runs,
// and the calls that it needs permission for.
func (s *State) ProfileVersion() uint64 { return s.profileVersion }

// paged is a table, in pages that may be out of memory.
type paged interface {
	Lacks(page table.Sum) bool
	PagedOut() []table.Sum
	PageIn(page table.Sum, encoded []byte) error
	Stored(page table.Sum)
	PageOut(most int)
	Seal() []table.Part
	Gone() []table.Sum
	Sums() iter.Seq[table.Sum]
	Head() []byte
	RestoreHead(encoded []byte) error
}

// Tables are the tables of a mailbox: those of names, and behind them those of idempotency keys.
type Tables [4]paged

// Tables returns the tables of the mailbox. They belong to the state.
func (s *State) Tables() Tables {
	return Tables{&s.Names.agents, &s.Names.byULID, &s.Mail.Keys.asked, &s.Mail.Keys.posted}
}

// Lacks reports whether a page is not in memory.
func (t Tables) Lacks(page table.Sum) bool {
	return slices.ContainsFunc(t[:], func(p paged) bool { return p.Lacks(page) })
}

// PagedOut returns the pages that are not in memory.
func (t Tables) PagedOut() (pages []table.Sum) {
	for _, p := range t {
		pages = append(pages, p.PagedOut()...)
	}
	return pages
}

// PageIn brings a page into memory. It fails for bytes that are not those of the page.
func (t Tables) PageIn(page table.Sum, encoded []byte) error {
	for _, p := range t {
		if err := p.PageIn(page, encoded); err != nil {
			return err
		}
	}
	return nil
}

// Stored notes that pages are stored. PageOut may let them go out of memory.
func (t Tables) Stored(parts []table.Part) {
	for _, part := range parts {
		for _, p := range t {
			p.Stored(part.Sum)
		}
	}
}

// PageOut lets stored pages go out of memory until at most some of each table are left.
func (t Tables) PageOut(most int) {
	for _, p := range t {
		p.PageOut(most)
	}
}

// RemakeTables takes the tables with absent pages from a state with the same events. All pages of that state are in
// memory. The other state must not be used any more.
func (s *State) RemakeTables(whole *State) {
	if len(s.Names.agents.PagedOut())+len(s.Names.byULID.PagedOut()) > 0 {
		s.Names.agents.Replace(&whole.Names.agents)
		s.Names.byULID.Replace(&whole.Names.byULID)
	}
	if len(s.Mail.Keys.asked.PagedOut())+len(s.Mail.Keys.posted.PagedOut()) > 0 {
		s.Mail.Keys.asked.Replace(&whole.Mail.Keys.asked)
		s.Mail.Keys.posted.Replace(&whole.Mail.Keys.posted)
	}
}

// IDs returns a new ID at each call.
type IDs func() capabilities.ID

// Command is a request to a mailbox, by its agent, by another mailbox or by the node. The commands are the structs of
// this package with a decide method. Those whose names begin with Remote come from another node, and are checked
// accordingly; all others come from this node.
type Command interface {
	decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error)
}

// Decide returns the events that should follow a command at a time. No events and no error mean that the command has
// no effect. It changes nothing in the state. It fails with PagedOut if the command or its events need messages that are
// not in memory: the caller lends them and decides again.
func (s *State) Decide(c Command, now capabilities.Time, ids IDs) ([]events.Event, error) {
	if isByClock(c) {
		now -= s.behind
	}
	evs, err := c.decide(s, now, ids)
	if err != nil {
		return nil, err
	}
	for _, e := range evs {
		normalize(e)
		if err := s.needs(e); err != nil {
			return nil, err
		}
	}
	return evs, nil
}

// normalize has the names that an event binds in the form in which they are compared.
func normalize(e events.Event) {
	switch e := e.(type) {
	case *events.NameBound:
		e.Name = capabilities.Normal(e.Name)
	case *events.NameUnbound:
		e.Name = capabilities.Normal(e.Name)
	case *events.FormRequested:
		e.Result = capabilities.Normal(e.Result)
	case *events.InvitationMade:
		e.Name = capabilities.Normal(e.Name)
	}
}

// DecideWithin is Decide for the agent's own commands, held to quotas. Nil limits are none.
func (s *State) DecideWithin(l *quota.Limits, c Command, now capabilities.Time, ids IDs) ([]events.Event, error) {
	evs, err := s.Decide(c, now, ids)
	if err != nil || l == nil || !Spends(c) {
		return evs, err
	}
	growth := ownGrowth(s, evs)
	if _, makes := c.(CreateAgent); makes {
		growth[quota.Agents] = 1
	}
	if err := l.Check(s.Account.Own(now), growth); err != nil {
		return nil, err
	}
	return evs, nil
}

// ownGrowth returns what events add to the agent's own use.
func ownGrowth(s *State, evs []events.Event) (growth quota.Amounts) {
	for _, e := range evs {
		for q, n := range ownChange(s, e) {
			growth[q] += n
		}
	}
	return growth
}

// Spends reports whether quotas apply to a command. They do not apply to commands that free something, nor to those
// that bring a decision of another mailbox.
func Spends(c Command) bool {
	switch c.(type) {
	case RequestForm, RequestApproval, PostMessage, ScheduleMessage, QueueUse, BindName, CopyName, MoveName, AdoptName, CreateAgent, MakeResource, MakeToken, UpdateAgent, ReportStatus, QueueAnswer, QueueForward,
		SnoozeMessage, MarkMessages, SaveDraft, DraftMessage, AmendForm, SetAway, SetAttention, SetMember, GrantAnswer, Inherit:
		return true
	}
	return false
}

// maxSegments is the number of segments that an archiving makes at most.
const maxSegments = 4096

// RecordArchive records at the node's host that the beginning of the journal is in an archive.
type RecordArchive events.JournalArchived

func (c RecordArchive) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if !s.Profile.isNodeHost() {
		return nil, parley.Refuse(parley.NotPermitted, "only the node's own host archives the journal")
	}
	if len(c.Segments) == 0 || len(c.Segments) > maxSegments {
		return nil, parley.Refuse(parley.InvalidArgument, "an archive with %d new segments: it has from 1 to %d", len(c.Segments), maxSegments)
	}
	last := c.After
	for _, g := range c.Segments {
		if g.Last.Number <= last.Number || g.From > g.To || g.Bytes <= 0 {
			return nil, parley.Refuse(parley.InvalidArgument, "the segment up to commit %d does not follow commit %d", g.Last.Number, last.Number)
		}
		last = g.Last
	}
	if last != c.Last {
		return nil, parley.Refuse(parley.InvalidArgument, "the segments end at commit %d, the archive at commit %d", last.Number, c.Last.Number)
	}
	e := events.JournalArchived(c)
	e.Segments = slices.Clone(c.Segments)
	return []events.Event{&e}, nil
}

// Bounds of the texts of an agent, in bytes.
const (
	maxDescription = 16 << 10
	maxTitle       = 1 << 10
	maxReason      = 4 << 10
	maxText        = 128 << 10
	maxKey         = 255
	maxGrantName   = 1 << 10
	maxMessage     = 256 << 10 // with all values in it
)

// checkText refuses with TOO_LARGE a text over a limit, and with INVALID_ARGUMENT one that is not UTF-8.
func checkText(what, text string, limit int) error {
	if len(text) > limit {
		return parley.Refuse(parley.TooLarge, "%s of %d bytes is over the limit of %d", what, len(text), limit)
	}
	if !utf8.ValidString(text) {
		return parley.Refuse(parley.InvalidArgument, "%s is not valid UTF-8", what)
	}
	return nil
}

// isRemote reports whether an ID was made on another node than a given one. The zero ID was not.
func isRemote(id capabilities.ID, here capabilities.NodeID) bool {
	return !id.IsZero() && id.Node != here
}

// isRemote reports whether an ID was made on another node than the mailbox's.
func (s *State) isRemote(id capabilities.ID) bool { return isRemote(id, s.ID.Node) }
