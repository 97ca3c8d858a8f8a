package actors

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"

	"github.com/nats-io/nkeys"

	"parley"
	"parley/capabilities"
	"parley/mailbox"
)

// vault seals the values of secret fields, so that the log, its snapshots and its backups without the
// node's key do not show them. AES-256-GCM under a key derived from the node's seed (HKDF, RFC 5869).
type vault struct{ aead cipher.AEAD }

func newVault(key nkeys.KeyPair) (*vault, error) {
	secret, err := deriveKey(key, "parley secret values 1")
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return &vault{aead: aead}, nil
}

// deriveKey gives 32 bytes that only the node can know, others for each purpose.
func deriveKey(key nkeys.KeyPair, purpose string) ([]byte, error) {
	seed, err := key.Seed()
	if err != nil {
		return nil, err
	}
	return hkdf.Key(sha256.New, seed, nil, purpose, 32)
}

// DeriveKey gives 32 bytes for a purpose: the same at every start of the node, known to nobody else, and of no use for
// any other purpose. It is for what leaves the node and has to be recognised when it comes back.
func (n *Node) DeriveKey(purpose string) ([]byte, error) {
	key, err := LoadKey(n.o.Folder)
	if err != nil {
		return nil, err
	}
	return deriveKey(key, purpose)
}

func (v *vault) seal(value capabilities.Value) (capabilities.Value, error) {
	plain, err := capabilities.EncodeValue(value)
	if err != nil {
		return capabilities.Value{}, err
	}
	return capabilities.Sealed(v.aead.Seal(nil, nil, plain, nil)), nil
}

// sealFields seals the named ones of some values.
func (v *vault) sealFields(names []string, values map[string]capabilities.Value) (map[string]capabilities.Value, error) {
	var sealed map[string]capabilities.Value
	for _, n := range names {
		value, ok := values[n]
		if !ok {
			continue
		}
		s, err := v.seal(value)
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

// openSettle gives a settlement that was kept as it is to be sent: to its home alone, under seal.
func (v *vault) openSettle(c mailbox.SettleForm) (mailbox.SettleForm, error) {
	opened, err := v.open(capabilities.Record(c.Values))
	if err != nil {
		return c, err
	}
	c.Values, _ = opened.AsRecord()
	return c, nil
}

// open gives a value with all that is sealed in it opened.
func (v *vault) open(value capabilities.Value) (capabilities.Value, error) {
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
		plain, err := v.aead.Open(nil, nil, ciphertext, nil)
		if err != nil {
			return leaf, parley.Refuse(parley.NotPermitted, "the value was sealed with another key")
		}
		return capabilities.DecodeValue(plain)
	})
}
