package transport

import (
	"bytes"
	"crypto/rand"
	"crypto/sha512"
	"errors"
	"sync"

	"filippo.io/edwards25519"
	"github.com/nats-io/nkeys"
	"golang.org/x/crypto/nacl/box"

	"parley/capabilities"
)

// Bodies are sealed as nkeys seals with curve keys (NaCl box), and each opens what the other has sealed. The secret that
// two nodes share is computed once and cached: that is the most expensive part of sealing.

// secrets are the secrets that a node shares with others.
type secrets struct {
	curve [32]byte // the node's X25519 key

	mu   sync.Mutex
	with map[capabilities.NodeID]*[32]byte
}

// maxSecrets bounds the cached secrets, since a stranger can be any number of nodes.
const maxSecrets = 1024

const (
	sealNonce = 24
	sealHead  = len(nkeys.XKeyVersionV1) + sealNonce
)

var errUnsealable = errors.New("it was not sealed by that node to this one")

// newSecrets derives the X25519 key of an Ed25519 seed, as libsodium and age do.
func newSecrets(seed []byte) *secrets {
	s := &secrets{with: map[capabilities.NodeID]*[32]byte{}}
	sum := sha512.Sum512(seed)
	copy(s.curve[:], sum[:32])
	s.curve[0] &= 248
	s.curve[31] = s.curve[31]&127 | 64
	return s
}

// shared returns the secret that the node shares with another.
func (s *secrets) shared(node capabilities.NodeID) (*[32]byte, error) {
	s.mu.Lock()
	known := s.with[node]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	public, err := curveKey(node)
	if err != nil {
		return nil, err
	}
	var secret [32]byte
	box.Precompute(&secret, public, &s.curve)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.with) >= maxSecrets {
		clear(s.with)
	}
	s.with[node] = &secret
	return &secret, nil
}

// knows reports whether the secret with a node is cached, which implies that the node's ID is a usable key.
func (s *secrets) knows(node capabilities.NodeID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.with[node] != nil
}

// seal appends the sealed body to dst. Only the other node can open it, and only as coming from this one.
func (s *secrets) seal(dst, body []byte, to capabilities.NodeID) ([]byte, error) {
	secret, err := s.shared(to)
	if err != nil {
		return nil, err
	}
	var nonce [sealNonce]byte
	rand.Read(nonce[:]) // never fails
	dst = append(append(dst, nkeys.XKeyVersionV1...), nonce[:]...)
	return box.SealAfterPrecomputation(dst, body, &nonce, secret), nil
}

// open opens a body that another node has sealed to this one.
func (s *secrets) open(sealed []byte, from capabilities.NodeID) ([]byte, error) {
	if len(sealed) < sealHead || string(sealed[:len(nkeys.XKeyVersionV1)]) != nkeys.XKeyVersionV1 {
		return nil, errUnsealable
	}
	secret, err := s.shared(from)
	if err != nil {
		return nil, err
	}
	nonce := [sealNonce]byte(sealed[len(nkeys.XKeyVersionV1):sealHead])
	body, ok := box.OpenAfterPrecomputation(nil, sealed[sealHead:], &nonce, secret)
	if !ok {
		return nil, errUnsealable
	}
	return body, nil
}

var errNoPoint = errors.New("the node's ID is no usable key")

// curveKey returns the public half of a node's curve pair. It refuses an ID that is not a point, or not its canonical
// encoding. It also refuses a point of low order, as which anybody could sign.
func curveKey(node capabilities.NodeID) (*[32]byte, error) {
	point, err := new(edwards25519.Point).SetBytes(node.Bytes())
	if err != nil || !bytes.Equal(point.Bytes(), node.Bytes()) {
		return nil, errNoPoint
	}
	if new(edwards25519.Point).MultByCofactor(point).Equal(edwards25519.NewIdentityPoint()) == 1 {
		return nil, errNoPoint
	}
	return (*[32]byte)(point.BytesMontgomery()), nil
}
