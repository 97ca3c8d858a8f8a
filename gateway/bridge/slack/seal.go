package slack

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"strings"

	"parley"
)

const keySize = 32

// NewKey returns the text of a new key, which seals rights in buttons.
func NewKey() string {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	return base64.StdEncoding.EncodeToString(key)
}

func newSeal(key string) (cipher.AEAD, error) {
	b, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(b) != keySize {
		return nil, parley.Refuse(parley.InvalidArgument, "the key of the bridge is none")
	}
	block, err := aes.NewCipher(b)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// passOf returns the value of a button: the form, and the sealed secret of a right to answer it.
func (s *Slack) passOf(form, secret string) string {
	return form + " " + base64.RawURLEncoding.EncodeToString(s.seal.Seal(nil, nil, []byte(secret), []byte(form)))
}

// open returns what the value of a button has. It refuses with UNAUTHENTICATED a value that this bridge has not made.
func (s *Slack) open(pass string) (form, secret string, err error) {
	form, sealed, _ := strings.Cut(pass, " ")
	b, err := base64.RawURLEncoding.DecodeString(sealed)
	if err == nil {
		b, err = s.seal.Open(nil, nil, b, []byte(form))
	}
	if err != nil {
		return "", "", parley.Refuse(parley.Unauthenticated, "the button is not good, or is too old")
	}
	return form, string(b), nil
}
