package actors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"
	"github.com/vmihailenco/msgpack/v5"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// A note is what lists show of an agent, beside the summary of its mailbox. A mailbox writes it with the events that
// change it. So a node knows all notes once it has read its log, and a list reads no mailbox. A note begins with its format,
// the number of the agent's status, and its flags. An agent at rest takes few bytes.
const noteFormat = 1

// The flags of a note.
const (
	noteIsHost   = 1 << iota // the agent's kind
	noteOwnHost              // the agent is its own host
	noteNodeHost             // its host is the node's
	noteByHost               // its maker is the node's host
	noteHasMore              // a noteMore follows
	noteAlone                // of the node's host: it has no peers, invitations and quotas
	noteEnded                // of a closed agent: it is a session that has ended, and not archived
	noteHasFiles             // its mailbox refers to files, or did
)

// noteStatuses are the statuses by their numbers. Any other is in noteMore.
var noteStatuses = []string{"", mailbox.Initializing, mailbox.Idle, mailbox.Running, mailbox.Failed, mailbox.Closed}

// noteMore is the part of a note that most agents do not have.
type noteMore struct {
	Kind, Status string // where they have no number
	Host, Maker  capabilities.ID
	Of           capabilities.ID
	Error        string
	Pending      []view.PendingPermission
	Calls        int // beside Pending
	Queued       int
	Cut          []view.CutMessage
	Runtime      string
	User         string
	Wrap         []string
	Policy       string
	AwayFrom     capabilities.Time
	AwayUntil    capabilities.Time
	Stopped      bool
	Topic        bool
}

// isAlone reports whether a host's mailbox has nothing that concerns other nodes or quotas.
func isAlone(s *mailbox.State) bool {
	p := &s.Peers
	return len(p.All()) == 0 && len(p.Dropped()) == 0 && len(p.Quotas()) == 0 && len(p.Invitations(0)) == 0
}

// aloneByNote reports whether a host's note says that it is alone.
func aloneByNote(note string) bool {
	r, err := openNote(note)
	return err == nil && r.has(noteAlone)
}

// isArchived reports whether an agent of this node is known to be archived.
func (n *Node) isArchived(id capabilities.ID) bool {
	m, there := n.journal.Mailbox(id)
	if !there {
		return false
	}
	r, err := openNote(m.Note)
	return err == nil && r.status() == mailbox.Closed && !r.has(noteEnded)
}

// noteOf encodes the status of an agent of a node with a host.
func noteOf(s view.AgentStatus, host capabilities.ID, alone, files bool) string {
	var flags byte
	if files {
		flags |= noteHasFiles
	}
	if alone && s.ID == host {
		flags |= noteAlone
	}
	if s.Ended {
		flags |= noteEnded
	}
	rest := s.Error != "" || len(s.Pending) > 0 || s.Queued > 0 || len(s.Cut) > 0 || s.Runtime != "" || s.User != "" || len(s.Wrap) > 0 || s.Policy != "" || s.AwayUntil != 0 || !s.Of.IsZero() || s.Stopped || s.Topic
	switch events.AgentKind(s.Kind) {
	case events.Host:
		flags |= noteIsHost
	case events.Guest:
	default:
		rest = true
	}
	switch s.Host {
	case s.ID:
		flags |= noteOwnHost
	case host:
		flags |= noteNodeHost
	default:
		rest = true
	}
	switch {
	case s.Maker == host:
		flags |= noteByHost
	case !s.Maker.IsZero():
		rest = true
	}
	status := slices.Index(noteStatuses, s.Status)
	if status < 0 {
		status, rest = 0, true
	}
	if rest {
		flags |= noteHasMore
	}
	b := make([]byte, 0, 64)
	b = append(b, noteFormat, byte(status), flags)
	b = binary.AppendUvarint(b, s.Version)
	b = binary.AppendVarint(b, int64(s.Created))
	b = binary.AppendVarint(b, int64(s.Updated-s.Created))
	b = appendText(b, s.Title)
	b = binary.AppendUvarint(b, uint64(len(s.Labels)))
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		b = appendText(appendText(b, k), s.Labels[k])
	}
	if !rest {
		return string(b)
	}
	return appendMore(b, s, flags)
}

// appendMore appends the part of a note that most agents do not have: what the flags and the status do not say. It returns ""
// if that cannot be encoded.
func appendMore(b []byte, s view.AgentStatus, flags byte) string {
	more := noteMore{
		Error: s.Error, Pending: s.Pending, Calls: s.More, Queued: s.Queued, Cut: s.Cut, Runtime: s.Runtime, User: s.User, Wrap: s.Wrap, Policy: s.Policy,
		AwayFrom: s.AwayFrom, AwayUntil: s.AwayUntil, Of: s.Of, Stopped: s.Stopped, Topic: s.Topic,
	}
	if k := events.AgentKind(s.Kind); k != events.Host && k != events.Guest {
		more.Kind = s.Kind
	}
	if flags&(noteOwnHost|noteNodeHost) == 0 {
		more.Host = s.Host
	}
	if flags&noteByHost == 0 {
		more.Maker = s.Maker
	}
	if !slices.Contains(noteStatuses, s.Status) {
		more.Status = s.Status
	}
	buf := bytes.NewBuffer(b)
	enc := msgpack.NewEncoder(buf)
	enc.UseArrayEncodedStructs(true)
	if err := enc.Encode(&more); err != nil {
		return "" // the note is unknown, and is made again by whoever wants it
	}
	return buf.String()
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

var errNote = errors.New("the note cannot be read")

// statusByNote decodes the note of an agent. It fails if the note is unknown or of another format.
func statusByNote(id, host capabilities.ID, m persistence.Mailbox) (view.AgentStatus, error) {
	r, err := openNote(m.Note)
	if err != nil {
		return view.AgentStatus{}, err
	}
	s := view.AgentStatus{
		ID: id, Node: id.Node, Kind: string(events.Guest), Status: r.status(), Host: id, Pending: []view.PendingPermission{},
		Asks: int(m.Summary.Open),
	}
	s.Version = r.uvarint()
	s.Created = capabilities.Time(r.varint())
	s.Updated = s.Created + capabilities.Time(r.varint())
	s.Title = r.text()
	labels := r.uvarint()
	if labels > uint64(len(r.rest)) {
		return s, errNote
	}
	s.Labels = make(map[string]string, labels)
	for range labels {
		key := r.text()
		s.Labels[key] = r.text()
	}
	if r.has(noteIsHost) {
		s.Kind = string(events.Host)
	}
	if r.has(noteNodeHost) {
		s.Host = host
	}
	if r.has(noteByHost) {
		s.Maker = host
	}
	s.Ended = r.has(noteEnded)
	if r.has(noteHasMore) {
		var more noteMore
		if err := msgpack.Unmarshal([]byte(r.rest), &more); err != nil {
			return s, err
		}
		more.fill(&s, r)
	}
	if r.bad {
		return s, errNote
	}
	return s, nil
}

// fill completes a status.
func (m *noteMore) fill(s *view.AgentStatus, r noteReader) {
	if m.Kind != "" {
		s.Kind = m.Kind
	}
	if m.Status != "" {
		s.Status = m.Status
	}
	if !r.has(noteOwnHost) && !r.has(noteNodeHost) {
		s.Host = m.Host
	}
	if !m.Maker.IsZero() {
		s.Maker = m.Maker
	}
	if len(m.Pending) > 0 {
		s.Pending = m.Pending
	}
	s.More, s.Error, s.Queued, s.Cut, s.Runtime, s.User, s.Wrap, s.Policy = m.Calls, m.Error, m.Queued, m.Cut, m.Runtime, m.User, m.Wrap, m.Policy
	s.AwayFrom, s.AwayUntil, s.Of, s.Stopped, s.Topic = m.AwayFrom, m.AwayUntil, m.Of, m.Stopped, m.Topic
}

// mayMatch reports whether a filter may pick the agent of a note. It is far cheaper than the decoding of the note.
func mayMatch(f view.AgentFilter, note string) bool {
	r, err := openNote(note)
	if err != nil {
		return true
	}
	switch status := r.status(); {
	case status == "", status == mailbox.Initializing, status == mailbox.Running: // it may not be so any more
		return true
	case len(f.Statuses) == 0:
		return status != mailbox.Closed
	default:
		return slices.Contains(f.Statuses, status)
	}
}

// noteReader decodes a note.
type noteReader struct {
	head string
	rest string
	bad  bool // something was missing
}

const noteHead = 3

func openNote(note string) (noteReader, error) {
	if len(note) < noteHead || note[0] != noteFormat || int(note[1]) >= len(noteStatuses) {
		return noteReader{}, errNote
	}
	return noteReader{head: note[:noteHead], rest: note[noteHead:]}, nil
}

func (r *noteReader) status() string     { return noteStatuses[r.head[1]] }
func (r *noteReader) has(flag byte) bool { return r.head[2]&flag != 0 }

func (r *noteReader) uvarint() (n uint64) {
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		n |= uint64(r.rest[i]&0x7f) << (7 * i)
		if r.rest[i] < 0x80 {
			r.rest = r.rest[i+1:]
			return n
		}
	}
	r.bad, r.rest = true, ""
	return 0
}

func (r *noteReader) varint() int64 {
	n := r.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *noteReader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, ""
		return ""
	}
	text := strings.Clone(r.rest[:n]) // the note may be part of a large index
	r.rest = r.rest[n:]
	return text
}

// afterKey returns the ULID behind which the IDs begin that follow a key in a list; zero if the key is no ID.
func afterKey(key string) ulid.ULID {
	id, err := capabilities.ParseID(key)
	if err != nil {
		return ulid.ULID{}
	}
	return id.ULID
}
