package mailbox

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/index"
	"parley/mailbox/origin"
	"parley/mailbox/right"
	"parley/mailbox/table"
	"parley/mailbox/vote"
)

// snapshotFormat is the version of the layout of snapshots. From another version the mailbox is replayed from its log.
const snapshotFormat = 1

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
	Held    bool
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

	Rights  []right.Right
	Away    *events.AwaySet
	Members []capabilities.ID

	Sessions []Session

	Marked  bool // messages were ever snoozed or read, or answers begun
	Snoozed []snoozeSnapshot
	Tally   *tally // nil if it is not known
	Texts   []events.MessageDrafted

	Scheduled []Schedule
	Schedules uint64 // that were ever made
	Queued    []QueuedUse
	Offers    []Offer
	Unoffered *unofferedSnapshot // nil if it is not kept
	Acks      []ackSnapshot

	Questioned []questionedCall

	Files  *filesSnapshot  // nil without any
	Leases *leasesSnapshot // nil if there never was one
	Teams  []Team

	Attention parley.Attention
	Topic     *Topic            // nil if it is none
	Resource  *resourceSnapshot // nil for an agent
	Mandates  []Mandate
	Callers   []callerSnapshot
	Reviewer  *events.ReviewerSet // nil for none
	Passkeys  []Passkey
	Needs     []events.PasskeyRequired

	Head *headSnapshot // nil for a whole snapshot
}

// headSnapshot has, in place of the index's entries and of what is in tables, where their sealed pages are. These are
// stored each for itself.
type headSnapshot struct {
	Index  index.Head
	Agents []byte
	ByULID []byte
	Asked  []byte
	Posted []byte
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

// messageSnapshot is what is stored of a message. One whose members nobody counts is stored as in the first layout: the library reads a list of
// one length alone.
type messageSnapshot struct {
	messageLayout
	Counts []events.MembersCounted
}

// countedSnapshot begins the encoding of a message that has counts: a list of two. The first layout is a longer list.
const countedSnapshot = 0x92

// EncodeMsgpack writes the first layout or, with counts, a list of that and them.
func (m *messageSnapshot) EncodeMsgpack(enc *msgpack.Encoder) error {
	if m.Counts == nil {
		return enc.Encode(&m.messageLayout)
	}
	if err := enc.EncodeArrayLen(2); err != nil {
		return err
	}
	return enc.EncodeMulti(&m.messageLayout, m.Counts)
}

// DecodeMsgpack reads what EncodeMsgpack writes.
func (m *messageSnapshot) DecodeMsgpack(dec *msgpack.Decoder) error {
	code, err := dec.PeekCode()
	if err != nil {
		return err
	}
	if code != countedSnapshot {
		return dec.Decode(&m.messageLayout)
	}
	if _, err := dec.DecodeArrayLen(); err != nil {
		return err
	}
	return dec.DecodeMulti(&m.messageLayout, &m.Counts)
}

type messageLayout struct {
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
	Said           []events.AnswerQueued

	Amended  *amendmentSnapshot
	Reminded *events.FormReminded
	Routed   []events.FormRouted
	Votes    *vote.Tally
	Draft    *events.DraftSaved

	Questions []uint64
	Receipts  []Receipt
	Unreached []events.MessageUnreached
	Members   []events.MemberReported
	Repeats   []capabilities.ID
	Review    *Reviewing // nil for none
	Behind    *events.MailQueued
	Claims    *Claims

	QueuedClaim *events.ClaimQueued
	Signed      *events.DecisionSigned
}

// amendmentSnapshot is the way to the present question of a form, which the message has.
type amendmentSnapshot struct {
	Last          *events.FormAmended
	Asked, Before *events.FormRequested
}

type ackSnapshot struct {
	Number uint64
	wantedAck
}

type unofferedSnapshot struct {
	Shared []uint64
	Each   []readerSnapshot
}

// readerSnapshot has the messages that a reader is still to be offered, which is offered all mail.
type readerSnapshot struct {
	Reader  capabilities.ID
	Numbers []uint64
}

func (u *unoffered) snapshot() *unofferedSnapshot {
	if u == nil {
		return nil
	}
	img := &unofferedSnapshot{Shared: slices.Sorted(maps.Keys(u.shared))}
	for _, reader := range sortedIDs(u.each) {
		img.Each = append(img.Each, readerSnapshot{reader, slices.Sorted(maps.Keys(u.each[reader]))})
	}
	return img
}

type callerSnapshot struct{ Form, Session capabilities.ID }

type snoozeSnapshot struct {
	Number uint64
	Until  capabilities.Time
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

// Snapshot encodes the whole state. Equal states have equal encodings. It fails with PagedOut if pages of the index are
// not in memory.
func (s *State) Snapshot() ([]byte, error) {
	if a := (&PagedOut{Pages: s.Mail.Index.entries.PagedOut(), Tables: s.Tables().PagedOut()}); len(a.Pages)+len(a.Tables) > 0 {
		return nil, a
	}
	x := indexSnapshotOf(s)
	x.Entries, x.Other = s.Mail.Index.entries.Encode(), s.Mail.Index.otherSnapshots(false)
	x.Asked, x.Posted = keySnapshots(&s.Mail.Keys.asked), keySnapshots(&s.Mail.Keys.posted)
	return encodeState(s, x, nil)
}

// encodeState encodes a state with an index. With a head it leaves out the names in tables.
func encodeState(s *State, x indexSnapshot, head *headSnapshot) ([]byte, error) {
	names, made, err := s.Names.values, []capabilities.ID(nil), error(nil)
	if head == nil {
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
		Tokens: s.Tokens.all, Policy: s.Rules.policy, Held: s.Runs.held,
		Program: s.Runs.program, Run: s.Runs.run, Ended: s.Runs.ended, Attempt: s.Runs.attempt, Lost: s.Runs.retries,
		Prompts: numbersOf(s.Runs.prompts), Cut: numbersOf(s.Runs.interrupted),
		Uses: s.Account.snapshots(), Made: made,
		Rights: s.Grants.Answers.All(), Away: s.StandIns.away, Members: s.StandIns.members, Sessions: s.Sessions.all, Texts: s.Mail.Texts,
		Scheduled: s.Mail.Schedules.all, Schedules: s.Mail.Schedules.made, Queued: s.Mail.queue.uses, Files: s.Files.snapshot(), Head: head,
	}
	if s.Mail.marked {
		img.Marked, img.Tally = true, s.Mail.Index.tally
	}
	for _, n := range s.Mail.Snoozed.From(0) {
		img.Snoozed = append(img.Snoozed, snoozeSnapshot{n, s.Mail.Snoozed.Until(n)})
	}
	img.Offers, img.Unoffered = s.Mail.Offers.all, s.Mail.Index.unoffered.snapshot()
	for _, n := range slices.Sorted(maps.Keys(s.Mail.acks)) {
		img.Acks = append(img.Acks, ackSnapshot{n, s.Mail.acks[n]})
	}
	img.Leases, img.Teams, img.Attention, img.Topic, img.Resource = s.Leases.snapshot(), s.Teams.all, s.Attention, s.Topic, s.Resource.snapshot()
	img.Index = x
	for _, m := range s.heldMessages() {
		img.Messages = append(img.Messages, snapshotOf(s, m))
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
	img.Reviewer, img.Questioned = s.Rules.reviewer, s.Mail.questioned
	for _, m := range s.Rules.mandates {
		img.Mandates = append(img.Mandates, *m)
	}
	img.Passkeys, img.Needs = s.Passkeys.all, s.Passkeys.needs
	for _, form := range sortedIDs(s.Rules.callers) {
		img.Callers = append(img.Callers, callerSnapshot{form, s.Rules.callers[form]})
	}
	b, err := encode(&img)
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", s.ID, err)
	}
	return b, nil
}

// snapshotOf returns what is stored of a message that is in memory.
func snapshotOf(s *State, m *Message) messageSnapshot {
	img := messageSnapshot{Counts: m.Counts, messageLayout: messageLayout{Number: m.Number, Changed: m.Changed, Dismissed: m.Dismissed, Posted: m.Posted, Refused: m.Refused, Receipts: m.Receipts, Unreached: m.Unreached, Members: m.Members, Repeats: m.Repeats, Behind: m.Behind}}
	f := m.Form
	if f == nil {
		return img
	}
	img.Requested, img.Holders, img.Forwarded, img.Answered, img.Ended = f.FormRequested, f.Holders, f.Forwarded(), f.Answered, f.Ended
	queued := f.Queued()
	img.QueuedAnswer, img.QueuedForwards, img.Refused, img.Settled, img.Said = queued.Answer, queued.Forwards, queued.Refused, f.Settled, queued.Said
	if f.Amended() != nil {
		way := f.amended.get()
		img.Amended = &amendmentSnapshot{Last: way.last, Asked: way.asked, Before: way.before}
	}
	img.Reminded, img.Routed, img.Questions = f.Reminded(), f.Routed(), f.Questions()
	img.Review, img.QueuedClaim, img.Signed = f.review.part, queued.Claim, Signed(f)
	if c := f.passed.get().Claims; c.Last != nil || c.By != nil {
		img.Claims = &c
	}
	if !f.Votes().IsEmpty() {
		img.Votes = f.Votes()
	}
	if f.IsOpen() && s.Mail.Received(m) {
		img.Draft = f.Draft
	}
	return img
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
