package peers

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley"
	"parley/actors/transport"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// The kinds of packets. A response has the kind after that of its packet. Numbers are not reused, and a change of a
// packet's fields is a new kind.
const (
	KindMail     transport.Kind = 1 // items
	KindAcks     transport.Kind = 2
	KindAccept   transport.Kind = 3 // an invitation is shown
	KindWelcome  transport.Kind = 4
	KindAnnounce transport.Kind = 5 // the sender's addresses
	KindNoted    transport.Kind = 6
	KindLeave    transport.Kind = 7 // the sender stops; the response is KindNoted too
	KindFile     transport.Kind = 8 // a piece of a file is wanted
	KindPiece    transport.Kind = 9
	KindUse      transport.Kind = 10 // a resource is used
	KindUsed     transport.Kind = 11
)

// Bounds of a packet of mail. One item may be larger than packetBytes, as mail may be.
const (
	MaxItems      = 256
	packetBytes   = 256 << 10
	MaxItemBytes  = 640 << 10
	maxPacket     = transport.MaxBody - 64<<10 // of the items alone
	MaxIntroduced = 64
)

// MailPacket is items in the order in which they are to arrive. It has the addresses of the nodes that they mention.
// Epoch and Number are its place among the sender's packets.
type MailPacket struct {
	Epoch      uint64
	Number     uint64
	Introduced []Introduction
	Items      []Item
}

// Introduction is the addresses of a node. Stamp is by that node's own clock.
type Introduction struct {
	Node  capabilities.NodeID
	Hints []string
	Stamp capabilities.Time
}

// Item is an outbox item as nodes send it, from a mailbox of the sender to one of the receiver. Body has Count events
// in the encoding of package events.
type Item struct {
	Kind  events.OutboxKind
	From  ulid.ULID
	To    ulid.ULID
	Count int
	Body  []byte
}

// AckStatus is the result of an item's delivery.
type AckStatus uint8

const (
	AckAccepted AckStatus = 1 // it is on disk, or was before
	AckRefused  AckStatus = 2 // it is not wanted, and never will be
	AckRetry    AckStatus = 3 // it could not be stored now
)

// final reports whether the sender is done with the item.
func (f AckStatus) final() bool { return f == AckAccepted || f == AckRefused }

// AckPacket has one ack for each item of a MailPacket, in the same order. Epoch is the newest that the receiver has seen.
type AckPacket struct {
	Acks  []Ack
	Epoch uint64
}

// Ack is the result of one item's delivery. Code and Text are the reason of a refusal.
type Ack struct {
	Status AckStatus
	Code   string
	Text   string
}

// AcceptPacket shows an invitation on behalf of the sender's host.
type AcceptPacket struct {
	Invitation ulid.ULID
	Secret     string
	Host       ulid.ULID
	Hints      []string
	Stamp      capabilities.Time
}

// WelcomePacket is the inviting node's host and the grant by which it can be reached. In a refusal it is the reason.
type WelcomePacket struct {
	Code  string
	Text  string
	Host  ulid.ULID
	Grant ulid.ULID
	Hints []string
	Stamp capabilities.Time
}

// AddressPacket is the addresses of its sender. It is both the announcement and its response.
type AddressPacket struct {
	Hints []string
	Stamp capabilities.Time
}

// FilePacket asks for a piece of a file that an agent of the receiver has sent to one of the sender, with a message.
type FilePacket struct {
	Message capabilities.ID
	From    ulid.ULID
	To      ulid.ULID
	Digest  string // in hexadecimal digits
	Offset  int64
}

// UsePacket uses a resource of the receiver. A packet that is sent Again begins no use.
type UsePacket struct {
	Use      ulid.ULID
	By       ulid.ULID
	Resource ulid.ULID
	Grant    capabilities.ID
	Facet    capabilities.Facet
	Verb     string
	Input    capabilities.Value
	Name     string // what the holder calls it
	Key      string
	Again    bool
	WaitMs   uint32 // so long at most, it waits for the end of the use
}

// UsedPacket is a use as it is, as JSON, or why there is none.
type UsedPacket struct {
	Code string
	Text string
	Hint string
	Data []byte
}

// error returns the refusal of a packet, as far as it is one that a node may give.
func (p *UsedPacket) error() error {
	switch code := parley.Code(p.Code); code {
	case "":
		return nil
	case parley.NotPermitted, parley.InvalidArgument, parley.TooLarge, parley.RateLimited, parley.QuotaExceeded, parley.UnknownName, parley.ReadOnly, parley.NoSuchFile:
		e := parley.Refuse(code, "its node says: %s", parley.Shown(p.Text, maxRefusal))
		if p.Hint != "" {
			e = e.WithHint("%s", parley.Shown(p.Hint, maxRefusal))
		}
		return e
	}
	return parley.Refuse(parley.NodeUnreachable, "its node does not serve the use")
}

// maxPiece bounds a piece, in bytes.
const maxPiece = 128 << 10

// PiecePacket is a piece of a file, or why there is none.
type PiecePacket struct {
	Code string
	Text string
	Data []byte
}

// error returns the refusal of a packet, as far as it is one that a node may give.
func (p *PiecePacket) error() error {
	switch code := parley.Code(p.Code); code {
	case "":
		return nil
	case parley.NoSuchFile, parley.FileDamaged, parley.RateLimited, parley.ReadOnly:
		return parley.Refuse(code, "its node says: %s", parley.Shown(p.Text, maxRefusal))
	}
	return parley.Refuse(parley.NodeUnreachable, "its node does not give the file")
}

// maxRefusal bounds the text of a refusal, in characters.
const maxRefusal = 300

var errMalformedPacket = errors.New("malformed packet")

// WritePacket encodes a packet.
func WritePacket(x any) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	enc.UseArrayEncodedStructs(true)
	if err := enc.Encode(x); err != nil {
		return nil, fmt.Errorf("write a packet: %w", err)
	}
	return buf.Bytes(), nil
}

// ReadPacket decodes a packet within the bounds.
func ReadPacket[T any](body []byte) (x T, err error) {
	if most := packetLimits; !most.allows(body) { // the library allocates what a list claims to be
		return x, errMalformedPacket
	}
	if err := msgpack.Unmarshal(body, &x); err != nil {
		return x, fmt.Errorf("%w: %w", errMalformedPacket, err)
	}
	return x, nil
}

// check refuses a packet of mail that exceeds its bounds.
func (l *MailPacket) check() error {
	if len(l.Items) > MaxItems || len(l.Introduced) > MaxIntroduced {
		return errMalformedPacket
	}
	for _, p := range l.Items {
		if p.Count < 1 || p.Count > MaxItems || len(p.Body) > MaxItemBytes {
			return errMalformedPacket
		}
	}
	return nil
}

// PackItem encodes an item from a mailbox of this node to one of another.
func PackItem(p mailbox.OutboxItem, from capabilities.ID, evs []events.Event) (Item, error) {
	recorded := make([]events.Recorded, len(evs))
	for i, e := range evs {
		recorded[i].Event = e
	}
	body, err := events.Append(nil, recorded...)
	if err != nil {
		return Item{}, err
	}
	if len(body) > MaxItemBytes {
		return Item{}, parley.Refuse(parley.TooLarge, "%d bytes are over the %d that go to another node", len(body), MaxItemBytes)
	}
	return Item{Kind: p.Kind, From: from.ULID, To: p.To.ULID, Count: len(evs), Body: body}, nil
}

// unpack decodes an item from a mailbox of a node.
func (p Item) unpack(node capabilities.NodeID) (mailbox.Command, []events.Event, error) {
	if most := itemLimits; !most.allowsEvents(p.Body, p.Count) {
		return nil, nil, parley.Refuse(parley.InvalidArgument, "malformed mail")
	}
	recorded, err := events.Decode(p.Body, p.Count)
	if err != nil {
		return nil, nil, parley.Refuse(parley.InvalidArgument, "malformed mail: %v", err)
	}
	evs := make([]events.Event, len(recorded))
	for i, r := range recorded {
		evs[i] = r.Event
	}
	c, err := mailbox.Unpack(p.Kind, capabilities.ID{ULID: p.From, Node: node}, evs)
	return c, evs, err
}

// Refusal returns the code and text of an error for another node.
func Refusal(err error) (code, text string) {
	e := parley.AsError(err)
	return string(e.Code), e.Message
}

// maxCode and maxText bound the reason that another node gives for a refusal.
const (
	maxCode = 40
	maxText = 400
)

// RemoteError returns the error of another node's refusal. Edges escape its text before they show it.
func RemoteError(code, text string) error {
	known := len(code) > 0 && len(code) <= maxCode
	for _, r := range code {
		known = known && (r == '_' || r >= 'A' && r <= 'Z')
	}
	if !known {
		code = string(parley.Internal)
	}
	if len(text) > maxText {
		text = text[:maxText]
	}
	return parley.Refuse(parley.Code(code), "%s", bytes.ToValidUTF8([]byte(text), []byte("?")))
}

// decodeLimits bounds data from another node before it is decoded. An element of a list takes one byte on the wire, but
// hundreds in memory.
type decodeLimits struct {
	deep  int // lists and records within each other
	wide  int // elements of a list, of those that are not within a value that one agent passes to another
	parts int // in all
}

// The limits of a packet, and of the events of an item. A value is up to 32 deep, and at most 52 Ki parts fit in one. A
// message has at most 13 Ki pieces.
var (
	packetLimits = decodeLimits{deep: 6, wide: 1 << 10, parts: 8 << 10}
	itemLimits   = decodeLimits{deep: 40, wide: 16 << 10, parts: 128 << 10}
)

// outerLists is the depth of the lists that belong to an event or packet. Those of a value in it come on top.
const outerLists = 2

// allows reports whether body is one msgpack value within the bounds.
func (s *decodeLimits) allows(body []byte) bool {
	rd := bytes.NewReader(body)
	return s.walk(msgpack.NewDecoder(rd)) == nil && rd.Len() == 0
}

// allowsEvents reports whether body is events in the encoding of package events, within the bounds.
func (s *decodeLimits) allowsEvents(body []byte, count int) bool {
	rd := bytes.NewReader(body)
	dec := msgpack.NewDecoder(rd)
	for range count {
		for range 3 { // kind, version, time
			if s.walk(dec) != nil {
				return false
			}
		}
		n, err := dec.DecodeBytesLen()
		if err != nil || n < 0 || n > rd.Len() {
			return false
		}
		at := len(body) - rd.Len()
		if !s.allows(body[at : at+n]) {
			return false
		}
		if _, err := rd.Seek(int64(n), 1); err != nil {
			return false
		}
	}
	return rd.Len() == 0
}

// walk skips one value without recursion. The parts that it has seen count for the next value too.
func (s *decodeLimits) walk(dec *msgpack.Decoder) error {
	for left := []int{1}; len(left) > 0; {
		top := len(left) - 1
		if left[top] == 0 {
			left = left[:top]
			continue
		}
		left[top]--
		if s.parts--; s.parts < 0 {
			return errMalformedPacket
		}
		n, err := elements(dec)
		switch {
		case err != nil:
			return err
		case n < 0: // it has none
			continue
		case top >= s.deep || top < outerLists && n > s.wide || n > s.parts:
			return errMalformedPacket
		}
		left = append(left, n)
	}
	return nil
}

// elements begins to read a list or record and returns the number of its values. It skips any other value and returns
// -1.
func elements(dec *msgpack.Decoder) (int, error) {
	code, err := dec.PeekCode()
	switch {
	case err != nil:
		return 0, err
	case msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32:
		return dec.DecodeArrayLen()
	case msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32:
		n, err := dec.DecodeMapLen()
		return 2 * n, err
	}
	return -1, dec.Skip()
}
