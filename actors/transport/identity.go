package transport

import (
	"crypto/ed25519"
	"fmt"

	"github.com/nats-io/nkeys"

	"parley"
	"parley/capabilities"
)

// Identity is a node's key at work: it signs and opens what the node sends and gets. It may be used by many
// goroutines.
type Identity struct {
	node    capabilities.NodeID
	key     ed25519.PrivateKey
	secrets *secrets
}

// NewIdentity makes the Identity of the node that has a key: an nkeys server key pair with its seed.
func NewIdentity(key nkeys.KeyPair) (*Identity, error) {
	text, err := key.Seed()
	if err != nil {
		return nil, fmt.Errorf("node's key: %w", err)
	}
	prefix, seed, err := nkeys.DecodeSeed(text)
	if err != nil {
		return nil, fmt.Errorf("node's key: %w", err)
	}
	if prefix != nkeys.PrefixByteServer || len(seed) != ed25519.SeedSize {
		return nil, parley.Refuse(parley.InvalidArgument, "the key is not a node's: want an nkeys server key")
	}
	i := &Identity{key: ed25519.NewKeyFromSeed(seed), secrets: newSecrets(seed)}
	copy(i.node[:], i.key[ed25519.SeedSize:])
	return i, nil
}

// Node returns the ID of the node.
func (i *Identity) Node() capabilities.NodeID { return i.node }

// The key signs for several purposes. What is signed begins with which, so that a signature got for one is
// worth nothing for another.
const (
	forPacket     = "parley letter 1"
	forConnection = "parley connection 1"
)

func (i *Identity) sign(purpose string, parts ...[]byte) []byte {
	return ed25519.Sign(i.key, statement(purpose, parts))
}

// signed reports whether a node made a signature. The caller knows that the node's ID is a usable key.
func signed(by capabilities.NodeID, signature []byte, purpose string, parts ...[]byte) bool {
	return len(signature) == ed25519.SignatureSize && ed25519.Verify(by[:], statement(purpose, parts), signature)
}

func statement(purpose string, parts [][]byte) []byte {
	size := len(purpose)
	for _, p := range parts {
		size += len(p)
	}
	text := append(make([]byte, 0, size), purpose...)
	for _, p := range parts {
		text = append(text, p...)
	}
	return text
}
