package index

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"math"
	"slices"

	"parley/capabilities"
)

// Entry is the index entry of one message, in 32 bytes. It locates the message in the log and says how it is listed. So
// the message itself need not be in memory.
type Entry struct {
	ID                uint64 // digest of the message's ID
	Promise, Resolver uint32 // short digests of a form's other IDs; of a message that is no form: see Receipts
	First             uint32 // version of the event that brought the message
	Settled           uint32 // version of the event that ended the form; 0 if there is none; of another message: see Receipts
	Changed           uint32 // version of the last event about the message
	Flags             Flags
}

// Flags are the properties of a message by which it is listed.
type Flags uint16

// The flags of a message.
const (
	Form Flags = 1 << iota
	Sent
	Received
	Dismissed
	ByGrant   // sent by a reference with a grant or facet
	HasOrigin // entered in the mailbox's index of origins
	Timed     // the times in its IDs are about the time at which it came
	Snoozed   // it comes back at a time
	Read      // marked as read
	stageLow  // the stage of the message: see Stage
	stageHigh
	Urgent // as its sender says
	Low
	Acknowledged // or replied to
	Several      // sent to several recipients: the message says to whom, and its receipts are further events
	Repeated     // passed on by several groups: the message says by which
)

// Stage returns the rank of the message's state.
func (e *Entry) Stage() uint8 { return uint8(e.Flags/stageLow) & 3 }

// SetStage sets the rank of the message's state.
func (e *Entry) SetStage(rank uint8) {
	e.Flags = e.Flags&^(stageLow|stageHigh) | Flags(rank&3)*stageLow
}

// Receipts returns, of a message that is no form, the versions of the newest events by which it was offered, shown and
// handled; 0 for one that there is not. Of a message that the agent sent to another only the last is there: the newest
// report. In place of the others it has a digest of the recipient.
func (e *Entry) Receipts() (offered, shown, handled uint32) {
	switch {
	case e.Is(Form):
		return 0, 0, 0
	case e.isSentAway():
		return 0, 0, e.Settled
	}
	return e.Promise, e.Resolver, e.Settled
}

// SetReceipt sets the version of the newest event by which the message came to a stage.
func (e *Entry) SetReceipt(rank uint8, version uint32) {
	switch {
	case e.Is(Form):
	case e.isSentAway() || rank == 3:
		e.Settled = version
	case rank == 2:
		e.Resolver = version
	case rank == 1:
		e.Promise = version
	}
}

// SetRecipient notes the digest of the recipient of a message that is no form, and that the agent sent to another.
func (e *Entry) SetRecipient(digest uint64) {
	e.Promise, e.Resolver = uint32(digest>>32), uint32(digest)
}

// IsTo reports whether a message that the agent sent, and that is no form, went to an agent with a digest.
func (e *Entry) IsTo(digest uint64) bool {
	return !e.Is(Form) && e.isSentAway() && e.Promise == uint32(digest>>32) && e.Resolver == uint32(digest)
}

// isSentAway reports whether the agent sent the message to another.
func (e *Entry) isSentAway() bool { return e.Is(Sent) && !e.Is(Received) }

// Is reports whether the Entry has a flag.
func (e *Entry) Is(f Flags) bool { return e.Flags&f != 0 }

// IsOpen reports whether the message is a form that has not ended.
func (e *Entry) IsOpen() bool { return e.Is(Form) && e.Settled == 0 }

// MaxVersion bounds the versions of a mailbox, and with them the numbers of its messages.
const MaxVersion = math.MaxUint32

// Index has the entries of all messages of a mailbox by number, and finds numbers by ID.
type Index struct {
	node   capabilities.NodeID
	length int // of a page
	pages  []page
	slots  slots               // of the IDs in open pages; some are of pages that are sealed now
	other  map[uint64][]uint32 // versions of further events, by number
	stray  []stray             // IDs in sealed pages that their times do not find, in order
	cached []int               // sealed pages that are stored and in memory, the oldest first
	gone   []Sum               // sums of stored pages that were opened again
}

// New returns an index without messages, of a mailbox on a node. Its pages have a number of entries.
func New(node capabilities.NodeID, length int) Index { return Index{node: node, length: length} }

// Digest returns the digest of an ID. Nobody can choose an ID of a message that has the digest of another one: the
// node's own IDs have 64 random bits, and those of other nodes are hashed.
func (x *Index) Digest(id capabilities.ID) uint64 {
	if id.Node == x.node {
		return binary.BigEndian.Uint64(id.ULID[8:])
	}
	var b [len(id.ULID) + capabilities.NodeKeySize]byte
	key := id.Node.Key()
	copy(b[:], id.ULID[:])
	copy(b[len(id.ULID):], key[:])
	sum := sha256.Sum256(b[:])
	return binary.BigEndian.Uint64(sum[:])
}

// DigestKey returns the digest of an idempotency key, which two spellings of one text have in common.
func DigestKey(key string) uint64 {
	sum := sha256.Sum256([]byte(capabilities.Normal(key)))
	return binary.BigEndian.Uint64(sum[:])
}

// Len returns the number of messages.
func (x *Index) Len() uint64 {
	if len(x.pages) == 0 {
		return 0
	}
	last := len(x.pages) - 1
	return uint64(last*x.length + x.lengthOf(last))
}

// Has reports whether the entry of a message is in memory.
func (x *Index) Has(n uint64) bool { return x.pages[x.PageOf(n)].entries != nil }

// At returns an entry, for reading only. It has to be in memory.
func (x *Index) At(n uint64) *Entry { return &x.pages[x.PageOf(n)].entries[n%uint64(x.length)] }

// Change returns an entry whose fields the caller may set, but for the digests and the flags Form and Timed. It opens
// the page. The entry has to be in memory.
func (x *Index) Change(n uint64) *Entry {
	x.open(x.PageOf(n))
	return x.At(n)
}

// Add appends an entry of a message with IDs that were made at times, in milliseconds. The message came at another
// time.
func (x *Index) Add(e Entry, came uint64, made ...uint64) {
	last := len(x.pages) - 1
	if last < 0 || x.lengthOf(last) == x.length {
		x.pages = append(x.pages, page{from: math.MaxUint64})
		if last++; last > 0 {
			x.pages[last].through = x.pages[last-1].through
		}
	}
	if e.Flags &^= Timed; inTime(came, made) {
		e.Flags |= Timed
		x.pages[last].spread(made)
	}
	n := uint32(x.Len())
	x.pages[last].entries = append(x.pages[last].entries, e)
	x.enter(n, &e)
}

// enter enters a number in the hash table under each digest of its entry, which the index has.
func (x *Index) enter(n uint32, e *Entry) {
	if !x.slots.hasRoom(3) {
		x.rebuild() // enters all
		return
	}
	x.slots.put(uint32(e.ID), n)
	if e.Is(Form) {
		x.slots.put(e.Promise, n)
		x.slots.put(e.Resolver, n)
	}
}

// rebuild makes the hash table anew, from the open pages.
func (x *Index) rebuild() {
	x.slots = newSlots(x.openIDs())
	for i := range x.pages {
		if x.pages[i].sealed {
			continue
		}
		for at := range x.pages[i].entries {
			x.enter(uint32(i*x.length+at), &x.pages[i].entries[at])
		}
	}
}

// openIDs returns the number of IDs that open pages may have.
func (x *Index) openIDs() int {
	ids := 0
	for i := range x.pages {
		if p := &x.pages[i]; !p.sealed {
			ids += 3 * len(p.entries)
		}
	}
	return ids
}

// candidates yields the numbers in open pages that the slots have where a digest can be.
func (x *Index) candidates(digest uint32) iter.Seq2[uint64, *Entry] {
	return func(yield func(uint64, *Entry) bool) {
		for n := range x.slots.find(digest) {
			if !x.pages[x.PageOf(n)].sealed && !yield(n, x.At(n)) {
				return
			}
		}
	}
}

// FindOpen returns the number of the message with an ID if its page is open.
func (x *Index) FindOpen(id capabilities.ID) (uint64, bool) {
	digest := x.Digest(id)
	for n, e := range x.candidates(uint32(digest)) {
		if e.ID == digest {
			return n, true
		}
	}
	return 0, false
}

// Find returns the number of the message with an ID. If that may be in pages that are not in memory, it returns those
// pages. The caller restocks them and tries again.
func (x *Index) Find(id capabilities.ID) (n uint64, ok bool, absent []int) {
	if n, ok := x.FindOpen(id); ok {
		return n, true, nil
	}
	digest := x.Digest(id)
	for i := range x.sealedWith(id, uint32(digest)) {
		p := &x.pages[i]
		if p.entries == nil {
			absent = append(absent, i)
			continue
		}
		for at := range p.entries {
			if p.entries[at].ID == digest {
				return uint64(i*x.length + at), true, nil
			}
		}
	}
	return 0, false, absent
}

// FindOther returns the numbers of the forms that may have an ID as their promise or resolver. It returns pages as Find
// does.
func (x *Index) FindOther(id capabilities.ID) (numbers []uint64, absent []int) {
	digest := uint32(x.Digest(id))
	fits := func(e *Entry) bool { return e.Is(Form) && (e.Promise == digest || e.Resolver == digest) }
	for n, e := range x.candidates(digest) {
		if fits(e) {
			numbers = append(numbers, n)
		}
	}
	for i := range x.sealedWith(id, digest) {
		p := &x.pages[i]
		if p.entries == nil {
			absent = append(absent, i)
		}
		for at := range p.entries {
			if fits(&p.entries[at]) {
				numbers = append(numbers, uint64(i*x.length+at))
			}
		}
	}
	return numbers, absent
}

// Note adds the version of a further event that a message is made of. It opens the page.
func (x *Index) Note(n, version uint64) {
	x.open(x.PageOf(n))
	x.note(n, uint32(version))
}

func (x *Index) note(n uint64, version uint32) {
	if x.other == nil {
		x.other = map[uint64][]uint32{}
	}
	x.other[n] = append(x.other[n], version)
}

// Versions returns the versions of the events that a message is made of, in order. Its entry has to be in memory.
func (x *Index) Versions(n uint64) []uint64 {
	e := x.At(n)
	all := []uint64{uint64(e.First)}
	further := [...]uint32{e.Settled, 0, 0}
	if !e.Is(Form) {
		further[0], further[1], further[2] = e.Receipts()
	}
	for _, v := range further {
		if v != 0 {
			all = append(all, uint64(v))
		}
	}
	for _, v := range x.other[n] {
		all = append(all, uint64(v))
	}
	slices.Sort(all)
	return slices.Compact(all)
}
