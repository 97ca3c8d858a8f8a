package push

import (
	"crypto/ecdh"
	"crypto/sha256"
	"encoding/hex"
	"net/url"

	"parley"
)

// maxEndpoint bounds the bytes of the address of a subscription.
const maxEndpoint = 1024

// Subscription is what a browser gives to whom it wants to be told by.
type Subscription struct {
	Endpoint string // address at the browser's push service
	Public   string // of the browser's key pair, in base64url
	Auth     string // secret for the encryption, in base64url
}

// Check refuses with INVALID_ARGUMENT a subscription that no browser gives. The address is checked against the network
// when it is dialled.
func (s Subscription) Check() error {
	u, err := url.Parse(s.Endpoint)
	if err != nil || len(s.Endpoint) > maxEndpoint || u.Host == "" || u.User != nil || u.Fragment != "" {
		return parley.Refuse(parley.InvalidArgument, "the address of the subscription is none")
	}
	point, err := encoding.DecodeString(s.Public)
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "the key of the subscription is none")
	}
	if auth, err := encoding.DecodeString(s.Auth); err != nil || len(auth) != 16 {
		return parley.Refuse(parley.InvalidArgument, "the secret of the subscription is none")
	}
	return nil
}

// Mark returns a text by which a browser knows its subscription, and that tells nobody its address.
func Mark(endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return hex.EncodeToString(sum[:])
}
