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

	"parley/capabilities"
)

// certificate makes the certificate of the node's listener. The node's own key signs it and it is for ever the
// same: it says nothing that the node's ID does not.
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

// listening is how the node's listener speaks TLS.
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

// dialing is how a node's listener is spoken to: it has that node's key or it is not listened to. Names and
// authorities have no part in it.
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
			if !ok || !key.Equal(ed25519.PublicKey(node[:])) {
				return errOtherNode
			}
			if leaf.CheckSignature(leaf.SignatureAlgorithm, leaf.RawTBSCertificate, leaf.Signature) != nil {
				return errOtherNode
			}
			return nil
		},
	}
}
