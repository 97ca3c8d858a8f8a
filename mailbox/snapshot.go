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
	"parley/mailbox/index"
)

// snapshotFormat is the version of the layout of snapshot, inboxFormat of that of inboxSnapshot, amendedFormat of that of
// amendedSnapshot, and headFormat of that of headSnapshot. A snapshot of another version, but for wholeNames, is not read: the mailbox is replayed from its log.
const (
	snapshotFormat = 10
	inboxFormat    = 12
	headFormat     = 13
	amendedFormat  = 14
	wholeNames     = 11 // the last format of a head with all names
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
	Origins []originSnapshot
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

type originSnapshot struct {
	Dialect, Session, Run, Agent, ID string
	Numbers                          []uint64
}

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

	Offered *events.RulesOffered
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
	if a := (&Absent{Pages: s.Mail.index.Absent(), Names: s.Names.Absent()}); len(a.Pages)+len(a.Names) > 0 {
		return nil, a
	}
	x := s.indexSnapshot(false)
	x.Entries = s.Mail.index.Encode()
	return s.encode(x, false)
}

// encode encodes the state with an index. If head, it leaves out the names in tables.
func (s *State) encode(x indexSnapshot, head bool) ([]byte, error) {
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
			mi.Requested, mi.Holders, mi.Forwarded, mi.Answered, mi.Ended = f.FormRequested, f.Holders, f.Forwarded, f.Answered, f.Ended
			mi.QueuedAnswer, mi.QueuedForwards, mi.Refused, mi.Settled = f.QueuedAnswer, f.QueuedForwards, f.Refused, f.Settled
			mi.Offered = f.Offered
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
	if err == nil {
		b, err = s.withInbox(b)
	}
	if err == nil {
		b, err = s.withAmendments(b)
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

// indexSnapshot returns what Mail knows of messages, without the index's entries. If head, it leaves out what the sealed
// pages have.
func (s *State) indexSnapshot(head bool) indexSnapshot {
	l := &s.Mail
	x := indexSnapshot{Asked: keySnapshots(l.asked), Posted: keySnapshots(l.posted)}
	for n, versions := range l.index.Noted(head) {
		x.Other = append(x.Other, otherSnapshot{Number: n, Versions: versions})
	}
	for _, n := range slices.Sorted(maps.Keys(l.reached)) {
		x.Reached = append(x.Reached, reachedSnapshot{Number: n, Ref: l.reached[n]})
	}
	for k, numbers := range l.origins {
		x.Origins = append(x.Origins, originSnapshot{k.dialect, k.session, k.run, k.agent, k.id, numbers})
	}
	slices.SortFunc(x.Origins, func(a, b originSnapshot) int { return slices.Compare(a.Numbers, b.Numbers) })
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

// keySnapshots returns the numbers by the digests of keys, in the order of the numbers.
func keySnapshots(keys map[uint64]uint64) []keySnapshot {
	all := make([]keySnapshot, 0, len(keys))
	for digest, n := range keys {
		all = append(all, keySnapshot{Digest: digest, Number: n})
	}
	slices.SortFunc(all, func(a, b keySnapshot) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

func sortedIDs[V any](m map[capabilities.ID]V) []capabilities.ID {
	return slices.SortedFunc(maps.Keys(m), capabilities.ID.Compare)
}

// Restore decodes a state from a whole snapshot or a head. It fails for another format and for malformed data. The
// mailbox has to be replayed from its first event then.
func Restore(id capabilities.ID, encoded []byte) (*State, error) {
	head, err := decodeHead(encoded)
	if head != nil {
		encoded = head.State
	}
	var layers snapshotLayers
	if err == nil {
		encoded, err = layers.peel(encoded)
	}
	var img snapshot
	if err == nil {
		err = decode(encoded, &img)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", id, err)
	}
	if img.Format != snapshotFormat || img.ID != id {
		return nil, fmt.Errorf("snapshot of %s: format %d of %s", id, img.Format, img.ID)
	}
	s := New(id)
	if head != nil {
		err = cmp.Or(s.Mail.index.RestoreHead(head.Index), s.Names.agents.RestoreHead(head.Agents), s.Names.byULID.RestoreHead(head.ByULID))
	} else {
		err = s.Mail.index.Decode(img.Index.Entries)
	}
	if err == nil {
		err = img.restore(s)
	}
	s.Mail.tally = nil
	if err == nil {
		err = layers.restore(s)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", id, err)
	}
	s.Mail.countAll()
	return s, nil
}

// formatOf returns the first member of a snapshot, which is its format.
func formatOf(encoded []byte) (int, error) {
	d := msgpack.NewDecoder(bytes.NewReader(encoded))
	if _, err := d.DecodeArrayLen(); err != nil {
		return 0, err
	}
	return d.DecodeInt()
}

func decode(encoded []byte, v any) error {
	err := msgpack.NewDecoder(bytes.NewReader(encoded)).Skip() // the library allocates the claimed length of a list
	if err == nil {
		err = msgpack.Unmarshal(encoded, v)
	}
	return err
}

// restore fills a new state that has its index.
func (img *snapshot) restore(s *State) error {
	s.Version, s.Profile, s.profileVersion = img.Version, img.Profile, img.Version
	if err := img.Index.restore(s); err != nil {
		return err
	}
	for _, mi := range img.Messages {
		if err := mi.restore(s); err != nil {
			return err
		}
	}
	for _, n := range img.Names {
		s.Names.bind(n.Name, n.Value)
	}
	for _, r := range img.Rules {
		s.Rules.byID[r.Rule] = &r
	}
	s.Rules.policy = img.Policy
	s.Tokens.all = img.Tokens
	s.Outbox.restore(img.Outbox, img.LastSeq)
	img.restoreGrants(&s.Grants)
	s.Peers.invitations, s.Peers.nodes, s.Peers.quotas, s.Peers.dropped = img.Invitations, img.Peers, img.Quotas, img.Dropped
	s.Peers.index()
	s.Runs = Runs{program: img.Program, run: img.Run, ended: img.Ended, attempt: img.Attempt, retries: img.Lost}
	var err error
	if s.Runs.prompts, err = s.Mail.restored(img.Prompts); err != nil {
		return err
	}
	if s.Runs.interrupted, err = s.Mail.restored(img.Cut); err != nil {
		return err
	}
	if r := s.Runs.run; r != nil && !r.Prompt.IsZero() {
		if n, ok := s.Mail.index.FindOpen(r.Prompt); ok {
			s.Runs.prompt = s.Mail.live[n]
		}
	}
	for _, id := range img.Made {
		s.Names.addMade(id)
	}
	s.Account.restore(img.Uses)
	return nil
}

func (x *indexSnapshot) restore(s *State) error {
	l := &s.Mail
	for _, o := range x.Other {
		if o.Number >= l.Len() || !l.index.Has(o.Number) {
			return fmt.Errorf("%w: no message %d", ErrNonsense, o.Number)
		}
		for _, v := range o.Versions {
			l.index.Note(o.Number, uint64(v))
		}
	}
	for _, r := range x.Reached {
		l.setReachedBy(r.Number, r.Ref)
	}
	for _, k := range x.Asked {
		l.asked[k.Digest] = k.Number
	}
	for _, k := range x.Posted {
		l.posted[k.Digest] = k.Number
	}
	for _, o := range x.Origins {
		if l.origins == nil {
			l.origins = originIndex{}
		}
		l.origins[originKey{o.Dialect, o.Session, o.Run, o.Agent, o.ID}] = o.Numbers
	}
	for _, p := range x.Plain {
		l.refs.plain[p.Agent] = p.Place
		l.refs.count = max(l.refs.count, p.Place+1)
	}
	for _, g := range x.Given {
		l.refs.put(g)
		l.refs.count = max(l.refs.count, g.Place+1)
	}
	for _, r := range x.Roots {
		s.Grants.setRoot(r.Grant, r.Root)
	}
	l.recent.Restart(s.Version)
	return x.check(l)
}

// check refuses numbers of messages that are not there.
func (x *indexSnapshot) check(l *Mail) error {
	missing := func(n uint64) bool { return n >= l.Len() }
	ofKey := func(k keySnapshot) bool { return missing(k.Number) }
	ofOrigin := func(o originSnapshot) bool { return slices.ContainsFunc(o.Numbers, missing) }
	if slices.ContainsFunc(x.Asked, ofKey) || slices.ContainsFunc(x.Posted, ofKey) || slices.ContainsFunc(x.Origins, ofOrigin) {
		return fmt.Errorf("%w: the index has messages that are not there", ErrNonsense)
	}
	return nil
}

func (img *snapshot) restoreGrants(l *Grants) {
	for _, g := range img.Given {
		l.given.Add(g)
	}
	for _, g := range img.Minted {
		l.minted.Add(g)
	}
	for _, r := range img.Revoked {
		l.revoked[r.Grant] = r.At
	}
	for _, u := range img.Used {
		l.uses[u.Grant] = u.Uses
	}
	for _, g := range img.ReplyGrants {
		g.Revoked = 0 // it is among the revoked
		l.putReply(g)
	}
}

// restore holds the message in a state that has its index entry.
func (mi *messageSnapshot) restore(s *State) error {
	n := mi.Number
	if n >= s.Mail.Len() || !s.Mail.index.Has(n) || (mi.Posted == nil) == (mi.Requested == nil) {
		return fmt.Errorf("%w: message %d is both or neither, or not there", ErrNonsense, n)
	}
	m := &Message{
		Number: n, Changed: mi.Changed, Dismissed: mi.Dismissed, Posted: mi.Posted, Refused: mi.Refused, reached: s.Mail.reachedOf(n),
	}
	if e := mi.Requested; e != nil {
		m.Refused = ""
		m.Form = &Form{
			FormRequested: e, Holders: mi.Holders, Forwarded: mi.Forwarded, Answered: mi.Answered, Ended: mi.Ended, Settled: mi.Settled,
			comment: originInComment(e), QueuedAnswer: mi.QueuedAnswer, QueuedForwards: mi.QueuedForwards, Refused: mi.Refused, Offered: mi.Offered,
		}
	}
	if e := s.Mail.index.At(n); e.ID != s.Mail.index.Digest(m.ID()) || e.Is(index.Form) != (m.Form != nil) || m.Form != nil && e.IsOpen() != m.Form.IsOpen() {
		return fmt.Errorf("%w: message %d is not that of the index", ErrNonsense, n)
	}
	s.Mail.live[n] = m
	if m.Form == nil || !m.Form.IsOpen() {
		return nil
	}
	if s.Mail.Received(m) {
		s.Mail.waiting.Add(n)
	}
	if s.Mail.Sent(m) {
		s.Mail.indexOpen(m)
	}
	return nil
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

// restored returns the messages for the result of numbersOf.
func (l *Mail) restored(numbers []uint64) ([]*Message, error) {
	if numbers == nil {
		return nil, nil
	}
	messages := make([]*Message, len(numbers))
	for i, n := range numbers {
		if messages[i] = l.live[n]; messages[i] == nil || messages[i].Posted == nil {
			return nil, fmt.Errorf("%w: no message %d", ErrNonsense, n)
		}
	}
	return messages, nil
}

// restore fills an outbox from a snapshot.
func (o *Outbox) restore(items []OutboxItem, lastSeq uint64) {
	o.items, o.lastSeq = items, lastSeq
	for _, p := range items {
		o.count(p, 1)
	}
}
