package transport

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/nats-io/nkeys"

	"parley"
	"parley/capabilities"
)

// Identity signs and opens packets with a node's key. It may be used by many goroutines.
type Identity struct {
	node    capabilities.NodeID
	key     ed25519.PrivateKey
	secrets *secrets
}

// NewIdentity returns the identity of a node. The key is an nkeys server key with its seed.
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
	pair := ed25519.NewKeyFromSeed(seed)
	node := capabilities.NodeOf([capabilities.NodeKeySize]byte(pair[ed25519.SeedSize:]))
	return &Identity{key: pair, secrets: newSecrets(seed), node: node}, nil
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

// signed reports whether a node made a signature. The caller has checked that the node's ID is a usable key.
func signed(by capabilities.NodeID, signature []byte, purpose string, parts ...[]byte) bool {
	return len(signature) == ed25519.SignatureSize && ed25519.Verify(by.Bytes(), statement(purpose, parts), signature)
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

// certificate returns the certificate of the node's listener. The node's key signs it. It never changes, and tells no
// more than the node's ID.
func (i *Identity) certificate() (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: i.node.String()},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: no end
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	// An Ed25519 signature needs no randomness, and so nothing here does.
	der, err := x509.CreateCertificate(nil, template, template, i.key.Public(), i.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the listener's certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: i.key}, nil
}

// listening returns the TLS configuration of the node's listener.
func (i *Identity) listening() (*tls.Config, error) {
	certificate, err := i.certificate()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		Certificates:           []tls.Certificate{certificate},
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true,
	}, nil
}

var errOtherNode = errors.New("what answers there is not that node")

// dialing returns the TLS configuration for the listener of a node. It accepts that node's key only, and ignores names
// and authorities.
func dialing(node capabilities.NodeID) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // in favour of:
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return errOtherNode
			}
			leaf := state.PeerCertificates[0]
			key, ok := leaf.PublicKey.(ed25519.PublicKey)
			if !ok || !key.Equal(ed25519.PublicKey(node.Bytes())) {
				return errOtherNode
			}
			if leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature) != nil {
				return errOtherNode
			}
			return nil
		},
	}
}
