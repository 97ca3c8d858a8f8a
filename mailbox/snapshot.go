package mailbox

import (
	"bytes"
	"container/heap"
	"fmt"
	"maps"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"parley/capabilities"
	"parley/events"
)

// snapshotFormat is the version of the layout below. A snapshot of another version is not read: the log holds the
// same.
const snapshotFormat = 9

// snapshot is the image of a State. Anything that can be computed from the rest is left out.
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
		Given: s.given.All(), Outbox: s.outbox, LastSeq: s.lastSeq, Minted: s.minted.All(),
		Invitations: s.peers.invitations, Peers: s.peers.nodes, Tokens: s.tokens,
		Program: s.work.program, Policy: s.work.policy, Run: s.work.run, Ended: s.work.ended, Attempt: s.work.attempt, Prompts: s.work.prompts,
		ReplyGrants: s.replyGrantList(),
		Lost:        s.work.retries, Cut: s.work.interrupted,
		Quotas: s.peers.quotas, Dropped: s.peers.dropped, Uses: s.usageSnapshots(), Made: s.Made(),
	}
	for _, m := range s.messages {
		mi := messageSnapshot{Changed: m.Changed, Dismissed: m.Dismissed, Posted: m.Posted, Refused: m.Refused}
		if f := m.Form; f != nil {
			mi.Requested, mi.Holders, mi.Forwarded, mi.Answered, mi.Ended = f.FormRequested, f.Holders, f.Forwarded, f.Answered, f.Ended
			mi.QueuedAnswer, mi.QueuedForwards, mi.Refused, mi.Settled = f.QueuedAnswer, f.QueuedForwards, f.Refused, f.Settled
			mi.Offered = f.Offered
		}
		img.Messages = append(img.Messages, mi)
	}
	for _, n := range slices.Sorted(maps.Keys(s.names)) {
		img.Names = append(img.Names, nameSnapshot{Name: n, Value: s.names[n]})
	}
	for _, g := range sortedIDs(s.revoked) {
		img.Revoked = append(img.Revoked, revokedSnapshot{Grant: g, At: s.revoked[g]})
	}
	for _, g := range sortedIDs(s.used) {
		img.Used = append(img.Used, usedSnapshot{Grant: g, Uses: s.used[g]})
	}
	for _, r := range sortedIDs(s.rules) {
		img.Rules = append(img.Rules, *s.rules[r])
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

// Restore decodes a state. It fails for another format and for malformed data, and then the mailbox has to be replayed
// from its first event.
func Restore(id capabilities.ID, encoded []byte) (*State, error) {
	var img snapshot
	err := msgpack.NewDecoder(bytes.NewReader(encoded)).Skip() // the library allocates what a list claims to be
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
	s.Version, s.Profile, s.outbox, s.lastSeq, s.profileVersion = img.Version, img.Profile, img.Outbox, img.LastSeq, img.Version
	for n, mi := range img.Messages {
		if err := s.restoreMessage(uint64(n), mi); err != nil {
			return nil, fmt.Errorf("snapshot of %s: %w", id, err)
		}
	}
	for _, n := range img.Names {
		s.names[n.Name] = n.Value
		s.indexName(n.Name)
	}
	for _, g := range img.Given {
		s.given.Add(g)
	}
	for _, r := range img.Revoked {
		s.revoked[r.Grant] = r.At
	}
	for _, u := range img.Used {
		s.used[u.Grant] = u.Uses
	}
	for _, r := range img.Rules {
		s.rules[r.Rule] = &r
	}
	s.work = work{
		program: img.Program, policy: img.Policy, run: img.Run, ended: img.Ended, attempt: img.Attempt, prompts: img.Prompts, retries: img.Lost, interrupted: img.Cut,
	}
	s.restoreOutside(&img)
	s.restoreUse(img.Uses, img.Made)
	return s, nil
}

// restoreOutside restores what concerns other nodes.
func (s *State) restoreOutside(img *snapshot) {
	for _, g := range img.Minted {
		s.minted.Add(g)
	}
	for _, p := range s.outbox {
		if p.Kind == events.OutboxMint {
			s.pendingMints++
		}
	}
	for _, g := range img.ReplyGrants {
		g.Revoked = 0 // which stands with the others
		s.addReplyGrant(g)
	}
	s.tokens = img.Tokens
	s.peers.invitations, s.peers.nodes = img.Invitations, img.Peers
	s.peers.quotas, s.peers.dropped = img.Quotas, img.Dropped
	s.peers.index()
}

func (s *State) restoreMessage(n uint64, mi messageSnapshot) error {
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
		if e.From == s.ID {
			s.restoreAsked(m)
		}
		if a := mi.Answered; a != nil {
			s.recordRoots(a.Values)
		}
	}
	m.carrier = s.carrierOf(m)
	s.restoreMail(m)
	s.byID.put(n, m.ID())
	s.messages = append(s.messages, m)
	s.indexOrigin(m)
	return nil
}

// restoreMail records the roots and keys that a message brings.
func (s *State) restoreMail(m *Message) {
	if m.From() != s.ID {
		if m.Posted != nil {
			for _, sp := range m.Posted.Text {
				s.recordRoots(sp.Value)
			}
		}
		return
	}
	if m.Form == nil && m.Posted.Key != "" {
		s.posted[m.Posted.Key] = m.Number
	}
}

func (s *State) restoreAsked(m *Message) {
	f := m.Form
	if f.Key != "" {
		s.keys[f.Key] = m.Number
	}
	if !f.IsOpen() {
		return
	}
	s.open++
	if f.Kind == events.Approval {
		s.approvals = append(s.approvals, m.Number)
	}
	if f.Result != "" {
		s.results[f.Result] = m.Number
	}
	if f.Deadline != 0 {
		heap.Push(&s.due, deadline{at: f.Deadline, number: m.Number})
	}
}
