package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"parley"
	"parley/events"
	"parley/mailbox/passkey"
)

// Device signs as a person's device does that has a passkey, after it has asked for a finger.
type Device struct {
	Origin string
	ID     []byte

	key    *ecdsa.PrivateKey
	count  uint32
	synced bool // it says 0 for each count
}

// NewDevice returns a device with a passkey for the pages of an origin.
func NewDevice(tb testing.TB, origin string) *Device {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return &Device{Origin: origin, ID: []byte(rand.Text()), key: key}
}

// Added returns the passkey as it is registered.
func (d *Device) Added(tb testing.TB, name string) events.PasskeyAdded {
	tb.Helper()
	public, err := x509.MarshalPKIXPublicKey(d.key.Public())
	if err != nil {
		tb.Fatal(err)
	}
	return events.PasskeyAdded{Name: name, Key: public, Credential: d.ID, Origin: d.Origin}
}

// Sign signs the text of a statement.
func (d *Device) Sign(tb testing.TB, statement string) *parley.PasskeySignature {
	tb.Helper()
	if !d.synced {
		d.count++
	}
	host, err := passkey.HostOf(d.Origin)
	if err != nil {
		tb.Fatal(err)
	}
	client := fmt.Appendf(nil, `{"type":"webauthn.get","challenge":%q,"origin":%q,"crossOrigin":false}`, passkey.Challenge(statement), d.Origin)
	name, sum := sha256.Sum256([]byte(host)), sha256.Sum256(client)
	data := binary.BigEndian.AppendUint32(append(name[:], 0x05), d.count)
	digest := sha256.Sum256(append(data[:len(data):len(data)], sum[:]...))
	signature, err := d.key.Sign(rand.Reader, digest[:], nil)
	if err != nil {
		tb.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	return &parley.PasskeySignature{Credential: text(d.ID), Statement: statement, ClientData: text(client), Authenticator: text(data), Signature: text(signature)}
}

// Kept returns a device whose key stays in a folder, so that it outlives the process. It counts nothing, as passkeys do that are on several
// devices: a challenge alone tells what it signs now from what it signed before.
func Kept(tb testing.TB, folder, origin string) *Device {
	tb.Helper()
	d := NewDevice(tb, origin)
	d.ID, d.synced = []byte("kept"), true
	file := filepath.Join(folder, "device.key")
	der, err := os.ReadFile(file)
	if err != nil {
		if der, err = x509.MarshalECPrivateKey(d.key); err == nil {
			err = os.WriteFile(file, der, 0o600)
		}
	}
	if err == nil {
		d.key, err = x509.ParseECPrivateKey(der)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return d
}
