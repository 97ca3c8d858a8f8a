package transport

import (
	"crypto/ed25519"
	"errors"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/capabilities"
)

// MaxBody bounds a packet's body, so that its envelope fits a NATS message of the default size of 1 MiB.
const MaxBody = 900 << 10

// Kind is the kind of a packet, for its sender and receiver. It is signed, but not sealed.
type Kind uint8

// Packet is a message from one node to another.
type Packet struct {
	ID     ulid.ULID
	From   capabilities.NodeID
	Kind   Kind
	Answer bool // in response to the packet of the same ID
	Body   []byte
}

// Why an envelope does not open.
var (
	ErrOversize  = errors.New("the envelope is too long")
	ErrMalformed = errors.New("it is no envelope")
	ErrVersion   = errors.New("the envelope is of a version that this program does not know")
	ErrForeign   = errors.New("the envelope is addressed to another node")
	ErrForged    = errors.New("the envelope was not signed by its sender")
	ErrSealed    = errors.New("the envelope was not sealed by its sender to this node")
)

// An envelope is a header, the sealed body (nkeys' "xkv1") and the sender's signature over both:
//
//	"PLT" version:1 from:32 to:32 id:16 kind:1 role:1  sealed:44+n  signature:64
const (
	magic   = "PLT"
	version = 1

	fromAt   = len(magic) + 1
	toAt     = fromAt + 32
	idAt     = toAt + 32
	kindAt   = idAt + 16
	roleAt   = kindAt + 1
	sealedAt = roleAt + 1

	sealing     = 4 + 24 + 16 // what sealing adds: version, nonce, tag
	minEnvelope = sealedAt + sealing + ed25519.SignatureSize
	maxEnvelope = minEnvelope + MaxBody
)

const (
	roleRequest = 0
	roleAnswer  = 1
)

// Seal returns the envelope of a packet, which only the receiving node can open.
func (i *Identity) Seal(to capabilities.NodeID, id ulid.ULID, kind Kind, body []byte) ([]byte, error) {
	return i.seal(to, id, kind, roleRequest, body)
}

// sealAnswer is Seal for the response to a packet.
func (i *Identity) sealAnswer(to capabilities.NodeID, id ulid.ULID, kind Kind, body []byte) ([]byte, error) {
	return i.seal(to, id, kind, roleAnswer, body)
}

func (i *Identity) seal(to capabilities.NodeID, id ulid.ULID, kind Kind, role byte, body []byte) ([]byte, error) {
	if len(body) > MaxBody {
		return nil, parley.Refuse(parley.TooLarge, "a packet of %d bytes: at most %d", len(body), MaxBody)
	}
	e := make([]byte, 0, minEnvelope+len(body))
	e = append(append(e, magic...), version)
	e = append(append(e, i.node.Bytes()...), to.Bytes()...)
	e = append(append(e, id[:]...), byte(kind), role)
	e, err := i.secrets.seal(e, body, to)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "no packet can be sealed to %s: %v", to, err)
	}
	return append(e, i.sign(forPacket, e)...), nil
}

// Open opens an envelope and returns its packet. The error is one of the above.
func (i *Identity) Open(envelope []byte) (Packet, error) {
	if err := wellFormed(envelope); err != nil {
		return Packet{}, err
	}
	from := capabilities.NodeOf([capabilities.NodeKeySize]byte(envelope[fromAt:toAt]))
	if capabilities.NodeOf([capabilities.NodeKeySize]byte(envelope[toAt:idAt])) != i.node {
		return Packet{}, ErrForeign
	}
	if !i.secrets.knows(from) {
		if _, err := curveKey(from); err != nil {
			return Packet{}, ErrForged
		}
	}
	end := len(envelope) - ed25519.SignatureSize
	if !signed(from, envelope[end:], forPacket, envelope[:end]) {
		return Packet{}, ErrForged
	}
	body, err := i.secrets.open(envelope[sealedAt:end], from)
	if err != nil {
		return Packet{}, ErrSealed
	}
	return Packet{
		ID:     ulid.ULID(envelope[idAt:kindAt]),
		From:   from,
		Kind:   Kind(envelope[kindAt]),
		Answer: envelope[roleAt] == roleAnswer,
		Body:   body,
	}, nil
}

func wellFormed(envelope []byte) error {
	switch {
	case len(envelope) > maxEnvelope:
		return ErrOversize
	case len(envelope) < len(magic)+1 || string(envelope[:len(magic)]) != magic || envelope[len(magic)] == 0:
		return ErrMalformed
	case envelope[len(magic)] != version:
		return ErrVersion
	case len(envelope) < minEnvelope || envelope[roleAt] > roleAnswer:
		return ErrMalformed
	}
	return nil
}
