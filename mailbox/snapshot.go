package mailbox

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
	"parley/events"
)

// snapshotFormat is the version of the layout below. A snapshot of another version is not read: the mailbox is replayed
// from its log.
const snapshotFormat = 9

// snapshot is the encoded form of a State. It leaves out everything that can be computed from the rest.
type snapshot struct {
	Format   int
	ID       capabilities.ID
	Version  uint64
	Profile  Profile
	Messages []messageSnapshot
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

type messageSnapshot struct {
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

// Snapshot encodes the state. Equal states have equal encodings.
func (s *State) Snapshot() ([]byte, error) {
	img := snapshot{
		Format: snapshotFormat, ID: s.ID, Version: s.Version, Profile: s.Profile,
		Given: s.Grants.given.All(), Minted: s.Grants.Minted(), ReplyGrants: s.Grants.replyGrants(),
		Outbox: s.Outbox.items, LastSeq: s.Outbox.lastSeq,
		Invitations: s.Peers.invitations, Peers: s.Peers.nodes, Quotas: s.Peers.quotas, Dropped: s.Peers.dropped,
		Tokens: s.Tokens.all, Policy: s.Rules.policy,
		Program: s.Runs.program, Run: s.Runs.run, Ended: s.Runs.ended, Attempt: s.Runs.attempt, Lost: s.Runs.retries,
		Prompts: numbersOf(s.Runs.prompts), Cut: numbersOf(s.Runs.interrupted),
		Uses: s.Account.snapshots(), Made: s.Account.Made(),
	}
	for _, m := range s.Mail.all {
		mi := messageSnapshot{Changed: m.Changed, Dismissed: m.Dismissed, Posted: m.Posted, Refused: m.Refused}
		if f := m.Form; f != nil {
			mi.Requested, mi.Holders, mi.Forwarded, mi.Answered, mi.Ended = f.FormRequested, f.Holders, f.Forwarded, f.Answered, f.Ended
			mi.QueuedAnswer, mi.QueuedForwards, mi.Refused, mi.Settled = f.QueuedAnswer, f.QueuedForwards, f.Refused, f.Settled
			mi.Offered = f.Offered
		}
		img.Messages = append(img.Messages, mi)
	}
	for _, n := range slices.Sorted(maps.Keys(s.Names.values)) {
		img.Names = append(img.Names, nameSnapshot{Name: n, Value: s.Names.values[n]})
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
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	enc.SetSortMapKeys(true)
	enc.UseArrayEncodedStructs(true)
	if err := enc.Encode(&img); err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", s.ID, err)
	}
	return buf.Bytes(), nil
}

func sortedIDs[V any](m map[capabilities.ID]V) []capabilities.ID {
	return slices.SortedFunc(maps.Keys(m), capabilities.ID.Compare)
}

// Restore decodes a state. It fails for another format and for malformed data. The mailbox has to be replayed from its
// first event then.
func Restore(id capabilities.ID, encoded []byte) (*State, error) {
	var img snapshot
	err := msgpack.NewDecoder(bytes.NewReader(encoded)).Skip() // the library allocates the claimed length of a list
	if err == nil {
		err = msgpack.Unmarshal(encoded, &img)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", id, err)
	}
	if img.Format != snapshotFormat || img.ID != id {
		return nil, fmt.Errorf("snapshot of %s: format %d of %s", id, img.Format, img.ID)
	}
	s := New(id)
	if err := img.restore(s); err != nil {
		return nil, fmt.Errorf("snapshot of %s: %w", id, err)
	}
	return s, nil
}

// restore fills a new state.
func (img *snapshot) restore(s *State) error {
	s.Version, s.Profile, s.profileVersion = img.Version, img.Profile, img.Version
	for n, mi := range img.Messages {
		if err := mi.restore(s, uint64(n)); err != nil {
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
	s.Account.restore(s, img.Uses, img.Made)
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

// restore adds the nth message to a state.
func (mi *messageSnapshot) restore(s *State, n uint64) error {
	m := &Message{Number: n, Changed: mi.Changed, Dismissed: mi.Dismissed, Posted: mi.Posted, Refused: mi.Refused}
	if (mi.Posted == nil) == (mi.Requested == nil) {
		return fmt.Errorf("%w: message %d is both or neither", ErrNonsense, n)
	}
	if e := mi.Requested; e != nil {
		m.Refused = ""
		m.Form = &Form{
			FormRequested: e, Holders: mi.Holders, Forwarded: mi.Forwarded, Answered: mi.Answered, Ended: mi.Ended, Settled: mi.Settled,
			comment: originInComment(e), QueuedAnswer: mi.QueuedAnswer, QueuedForwards: mi.QueuedForwards, Refused: mi.Refused, Offered: mi.Offered,
		}
		if a := mi.Answered; a != nil {
			s.Grants.recordRoots(a.Values)
		}
	}
	s.Mail.index(m)
	switch {
	case !s.Mail.Sent(m) && m.Posted != nil:
		for _, sp := range m.Posted.Text {
			s.Grants.recordRoots(sp.Value)
		}
	case s.Mail.Sent(m) && m.Posted != nil:
		s.Mail.indexPosted(m)
	case s.Mail.Sent(m):
		s.Mail.indexAsked(m)
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
		if n >= uint64(len(l.all)) {
			return nil, fmt.Errorf("%w: no message %d", ErrNonsense, n)
		}
		messages[i] = l.all[n]
	}
	return messages, nil
}

// restore fills an outbox from a snapshot.
func (o *Outbox) restore(items []OutboxItem, lastSeq uint64) {
	o.items, o.lastSeq = items, lastSeq
	for _, p := range items {
		if p.Kind == events.OutboxMint {
			o.mints++
		}
	}
}
