package mailbox

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox/origin"
	"parley/mailbox/table"
	"parley/mailbox/vote"
)

// snapshotFormat is the version of the layout of snapshot. The others are those of inboxSnapshot, amendedSnapshot and
// so on. From other versions the mailbox is replayed from its log.
const (
	snapshotFormat = 10
	inboxFormat    = 12
	amendedFormat  = 14
	headFormat     = 15
	routedFormat   = 16
	rightsFormat   = 18
	draftedFormat  = 19
	votedFormat    = 20
)

// snapshot is the encoded form of a State: the messages that are in memory, and the indexes of all. It leaves out
// everything that can be computed from the rest.
type snapshot struct {
	Format   int
	ID       capabilities.ID
	Version  uint64
	Profile  Profile
	Messages []messageSnapshot
	Index    indexSnapshot
	Names    []nameSnapshot
	Given    []capabilities.Grant
	Revoked  []revokedSnapshot
	Used     []usedSnapshot
	Outbox   []OutboxItem
	LastSeq  uint64
	Rules    []Rule
	Minted   []capabilities.Grant

	Invitations []Invitation
	Peers       []PeerRecord
	Tokens      []Token

	Program events.ProgramSet
	Policy  string
	Run     *Run
	Ended   uint64
	Attempt capabilities.ID
	Prompts []uint64
	Lost    int
	Cut     []uint64

	ReplyGrants []capabilities.Grant
	Quotas      []events.QuotaSet
	Dropped     []DroppedPeer

	Uses []usageSnapshot
	Made []capabilities.ID
}

// indexSnapshot has what Mail knows of messages that are not in memory.
type indexSnapshot struct {
	Entries []byte
	Other   []otherSnapshot
	Reached []reachedSnapshot
	Asked   []keySnapshot
	Posted  []keySnapshot
	Origins []origin.Entry
	Plain   []placeSnapshot
	Given   []heldRef
	Roots   []rootSnapshot
}

type otherSnapshot struct {
	Number   uint64
	Versions []uint32
}

type reachedSnapshot struct {
	Number uint64
	Ref    capabilities.Ref
}

type keySnapshot struct{ Digest, Number uint64 }

type placeSnapshot struct {
	Agent capabilities.ID
	Place uint64
}

type rootSnapshot struct{ Grant, Root capabilities.ID }

type messageSnapshot struct {
	Number uint64

	Changed   uint64
	Dismissed bool
	Posted    *events.MessagePosted
	Requested *events.FormRequested
	Holders   []capabilities.ID
	Forwarded []events.FormForwarded
	Answered  *events.FormAnswered
	Ended     *events.FormCancelled
	Settled   uint64

	QueuedAnswer   *events.AnswerQueued
	QueuedForwards []events.ForwardQueued
	Refused        string
}

type nameSnapshot struct {
	Name  string
	Value capabilities.Value
}

type revokedSnapshot struct {
	Grant capabilities.ID
	At    capabilities.Time
}

type usedSnapshot struct {
	Grant capabilities.ID
	Uses  uint32
}

// Snapshot encodes the whole state. Equal states have equal encodings. It fails with Absent if pages of the index are
// not in memory.
func (s *State) Snapshot() ([]byte, error) {
	if a := (&Absent{Pages: s.Mail.Index.entries.Absent(), Tables: s.Tables().Absent()}); len(a.Pages)+len(a.Tables) > 0 {
		return nil, a
	}
	x := indexSnapshotOf(s)
	x.Entries, x.Other = s.Mail.Index.entries.Encode(), s.Mail.Index.otherSnapshots(false)
	x.Asked, x.Posted = keySnapshots(&s.Mail.Keys.asked), keySnapshots(&s.Mail.Keys.posted)
	return encodeState(s, x, false)
}

// layers return the snapshots that wrap another, from the inside out; nil where the state has nothing for one. Each came
// with a later version of the program, and leaves the snapshots without it as they were.
var layers = []func(s *State, inner []byte) any{inboxLayer, amendedLayer, routedLayer, votedLayer, rightsLayer, draftedLayer}

// encodeState encodes a state with an index. If head, it leaves out the names in tables.
func encodeState(s *State, x indexSnapshot, head bool) ([]byte, error) {
	names, made, err := s.Names.values, []capabilities.ID(nil), error(nil)
	if !head {
		if names, err = s.Names.all(); err == nil {
			made, err = s.Names.Made()
		}
	}
	if err != nil {
		return nil, err
	}
	img := snapshot{
		Format: snapshotFormat, ID: s.ID, Version: s.Version, Profile: s.Profile,
		Given: s.Grants.given.All(), Minted: s.Grants.Minted(), ReplyGrants: s.Grants.replyGrants(),
		Outbox: s.Outbox.items, LastSeq: s.Outbox.lastSeq,
		Invitations: s.Peers.invitations, Peers: s.Peers.nodes, Quotas: s.Peers.quotas, Dropped: s.Peers.dropped,
		Tokens: s.Tokens.all, Policy: s.Rules.policy,
		Program: s.Runs.program, Run: s.Runs.run, Ended: s.Runs.ended, Attempt: s.Runs.attempt, Lost: s.Runs.retries,
		Prompts: numbersOf(s.Runs.prompts), Cut: numbersOf(s.Runs.interrupted),
		Uses: s.Account.snapshots(), Made: made,
	}
	img.Index = x
	for _, m := range s.heldMessages() {
		mi := messageSnapshot{Number: m.Number, Changed: m.Changed, Dismissed: m.Dismissed, Posted: m.Posted, Refused: m.Refused}
		if f := m.Form; f != nil {
			mi.Requested, mi.Holders, mi.Forwarded, mi.Answered, mi.Ended = f.FormRequested, f.Holders, f.Forwarded(), f.Answered, f.Ended
			queued := f.Queued()
			mi.QueuedAnswer, mi.QueuedForwards, mi.Refused, mi.Settled = queued.Answer, queued.Forwards, queued.Refused, f.Settled
		}
		img.Messages = append(img.Messages, mi)
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		img.Names = append(img.Names, nameSnapshot{Name: n, Value: names[n]})
	}
	for _, g := range sortedIDs(s.Grants.revoked) {
		img.Revoked = append(img.Revoked, revokedSnapshot{Grant: g, At: s.Grants.revoked[g]})
	}
	for _, g := range sortedIDs(s.Grants.uses) {
		img.Used = append(img.Used, usedSnapshot{Grant: g, Uses: s.Grants.uses[g]})
	}
	for _, r := range sortedIDs(s.Rules.byID) {
		img.Rules = append(img.Rules, *s.Rules.byID[r])
	}
	b, err := encode(&img)
	for _, layer := range layers {
		if outer := layer(s, b); outer != nil && err == nil {
			b, err = encode(outer)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", s.ID, err)
	}
	return b, nil
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	enc.UseArrayEncodedStructs(true)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

// indexSnapshotOf returns what Mail knows of messages, without what is in pages of the index and of tables.
func indexSnapshotOf(s *State) indexSnapshot {
	l := &s.Mail
	x := indexSnapshot{Other: l.Index.otherSnapshots(true), Origins: l.Origins.Entries(), Asked: []keySnapshot{}, Posted: []keySnapshot{}}
	for _, n := range slices.Sorted(maps.Keys(l.reached)) {
		x.Reached = append(x.Reached, reachedSnapshot{Number: n, Ref: l.reached[n]})
	}
	for _, id := range sortedIDs(l.refs.plain) {
		x.Plain = append(x.Plain, placeSnapshot{Agent: id, Place: l.refs.plain[id]})
	}
	for _, held := range l.refs.given {
		x.Given = append(x.Given, held...)
	}
	slices.SortFunc(x.Given, func(a, b heldRef) int { return cmp.Compare(a.Place, b.Place) })
	for _, g := range sortedIDs(s.Grants.roots) {
		x.Roots = append(x.Roots, rootSnapshot{Grant: g, Root: s.Grants.roots[g]})
	}
	return x
}

// keySnapshots returns the numbers by the digests of keys, in the order of the numbers. All pages have to be in memory.
func keySnapshots(keys *table.Digests) []keySnapshot {
	numbers, _ := keys.All()
	all := make([]keySnapshot, 0, len(numbers))
	for digest, n := range numbers {
		all = append(all, keySnapshot{Digest: digest, Number: n})
	}
	slices.SortFunc(all, func(a, b keySnapshot) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

func sortedIDs[V any](m map[capabilities.ID]V) []capabilities.ID {
	return slices.SortedFunc(maps.Keys(m), capabilities.ID.Compare)
}

// numbersOf returns the numbers of messages. It is nil only for nil messages, since the encoding tells them apart.
func numbersOf(messages []*Message) []uint64 {
	if messages == nil {
		return nil
	}
	numbers := make([]uint64, len(messages))
	for i, m := range messages {
		numbers[i] = m.Number
	}
	return numbers
}

// routedSnapshot is a snapshot of a mailbox with forms in memory that were reminded of or routed, or with stand-ins.
type routedSnapshot struct {
	Format int
	State  []byte // a snapshot
	Forms  []routeSnapshot

	Away    *events.AwaySet
	Members []capabilities.ID
}

type routeSnapshot struct {
	Number   uint64
	Reminded *events.FormReminded
	Routed   []events.FormRouted
}

// routedLayer returns the reminders and routes of forms, and the stand-ins.
func routedLayer(s *State, inner []byte) any {
	img := routedSnapshot{Format: routedFormat, State: inner, Away: s.StandIns.away, Members: s.StandIns.members}
	for _, m := range s.heldMessages() {
		if f := m.Form; f != nil && (f.Reminded() != nil || len(f.Routed()) > 0) {
			img.Forms = append(img.Forms, routeSnapshot{Number: m.Number, Reminded: f.Reminded(), Routed: f.Routed()})
		}
	}
	if len(img.Forms) == 0 && img.Away == nil && len(img.Members) == 0 {
		return nil
	}
	return &img
}

// restore adds the reminders and routes to a state that is restored otherwise.
func (img *routedSnapshot) restore(s *State) error {
	s.StandIns = StandIns{away: img.Away, members: img.Members}
	for _, r := range img.Forms {
		m := s.Mail.live[r.Number]
		if m == nil || m.Form == nil {
			return missing(r.Number)
		}
		passed := m.Form.passed.edit()
		passed.Reminded, passed.Routed = r.Reminded, r.Routed
	}
	return nil
}

// votedSnapshot is a snapshot of a mailbox with forms in memory that were voted on, or answered at another node.
type votedSnapshot struct {
	Format int
	State  []byte // a snapshot
	Forms  []voteSnapshot
}

type voteSnapshot struct {
	Number uint64
	Votes  vote.Tally
	Said   []events.AnswerQueued
}

// votedLayer returns the votes on forms, and what the agent has said to their homes.
func votedLayer(s *State, inner []byte) any {
	img := votedSnapshot{Format: votedFormat, State: inner}
	for _, m := range s.heldMessages() {
		if f := m.Form; f != nil && (!f.Votes().IsEmpty() || len(f.Queued().Said) > 0) {
			img.Forms = append(img.Forms, voteSnapshot{Number: m.Number, Votes: *f.Votes(), Said: f.Queued().Said})
		}
	}
	if len(img.Forms) == 0 {
		return nil
	}
	return &img
}

// restore adds the votes to a state that is restored otherwise.
func (img *votedSnapshot) restore(s *State) error {
	for _, v := range img.Forms {
		m := s.Mail.live[v.Number]
		if m == nil || m.Form == nil {
			return missing(v.Number)
		}
		if !v.Votes.IsEmpty() {
			*m.Form.votes.edit() = v.Votes
		}
		if len(v.Said) > 0 {
			m.Form.queued.edit().Said = v.Said
		}
	}
	return nil
}

// draftedSnapshot is a snapshot of a mailbox with unfinished messages.
type draftedSnapshot struct {
	Format int
	State  []byte // a snapshot
	Texts  []events.MessageDrafted
}

// draftedLayer returns the unfinished messages.
func draftedLayer(s *State, inner []byte) any {
	if len(s.Mail.Texts) == 0 {
		return nil
	}
	return &draftedSnapshot{Format: draftedFormat, State: inner, Texts: s.Mail.Texts}
}
