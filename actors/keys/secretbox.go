package keys

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"

	"github.com/nats-io/nkeys"

	"parley"
	"parley/capabilities"
)

// SecretBox seals the values of secret fields. The log, its snapshots and its backups show them only with the node's
// key. It uses AES-256-GCM under a key derived from the node's seed (HKDF, RFC 5869), and is safe for concurrent use.
type SecretBox struct{ aead cipher.AEAD }

// NewSecretBox returns the box of a node's key.
func NewSecretBox(key nkeys.KeyPair) (*SecretBox, error) {
	secret, err := Derive(key, "parley secret values 1")
	if err != nil {
		return nil, fmt.Errorf("secret box: %w", err)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("secret box: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("secret box: %w", err)
	}
	return &SecretBox{aead: aead}, nil
}

// Derive returns 32 bytes that depend on the key and the purpose. One purpose tells nothing of another.
func Derive(key nkeys.KeyPair, purpose string) ([]byte, error) {
	seed, err := key.Seed()
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, seed, nil, purpose, 32)
}

// Seal returns the sealed form of a value.
func (b *SecretBox) Seal(value capabilities.Value) (capabilities.Value, error) {
	plain, err := capabilities.EncodeValue(value)
	if err != nil {
		return capabilities.Value{}, err
	}
	return capabilities.Sealed(b.aead.Seal(nil, nil, plain, nil)), nil
}

// SealFields returns the named ones of values, sealed. It returns nil if none of them is there.
func (b *SecretBox) SealFields(names []string, values map[string]capabilities.Value) (map[string]capabilities.Value, error) {
	var sealed map[string]capabilities.Value
	for _, n := range names {
		value, ok := values[n]
		if !ok {
			continue
		}
		s, err := b.Seal(value)
		if err != nil {
			return nil, err
		}
		if sealed == nil {
			sealed = map[string]capabilities.Value{}
		}
		sealed[n] = s
	}
	return sealed, nil
}

// Open returns value with all sealed parts opened. NOT_PERMITTED says that a part was sealed with another key, or is
// masked.
func (b *SecretBox) Open(value capabilities.Value) (capabilities.Value, error) {
	if !value.Has(capabilities.Value.IsSealed) {
		return value, nil
	}
	return value.Map(func(leaf capabilities.Value) (capabilities.Value, error) {
		ciphertext, ok := leaf.AsSealed()
		if !ok {
			return leaf, nil
		}
		if len(ciphertext) == 0 {
			return leaf, parley.Refuse(parley.NotPermitted, "the value is secret: it is opened for who asked alone")
		}
		plain, err := b.aead.Open(nil, nil, ciphertext, nil)
		if err != nil {
			return leaf, parley.Refuse(parley.NotPermitted, "the value was sealed with another key")
		}
		return capabilities.DecodeValue(plain)
	})
}
