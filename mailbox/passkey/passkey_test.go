package passkey_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	. "parley/mailbox/passkey"
)

// device signs as a device does that has verified its user.
type device struct {
	key    crypto.Signer
	origin string
	count  uint32
	flags  byte
}

func (d *device) public(t testing.TB) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(d.key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (d *device) sign(t testing.TB, statement string) Signed {
	t.Helper()
	d.count++
	client, err := json.Marshal(map[string]any{"type": "webauthn.get", "challenge": Challenge(statement), "origin": d.origin, "crossOrigin": false})
	if err != nil {
		t.Fatal(err)
	}
	host, err := HostOf(d.origin)
	if err != nil {
		t.Fatal(err)
	}
	name, sum := sha256.Sum256([]byte(host)), sha256.Sum256(client)
	data := binary.BigEndian.AppendUint32(append(name[:], d.flags), d.count)
	signed := append(bytes.Clone(data), sum[:]...)
	digest, how := sha256.Sum256(signed), crypto.SignerOpts(crypto.SHA256)
	text := digest[:]
	if _, ed := d.key.(ed25519.PrivateKey); ed {
		text, how = signed, crypto.Hash(0)
	}
	signature, err := d.key.Sign(rand.Reader, text, how)
	if err != nil {
		t.Fatal(err)
	}
	return Signed{Key: d.public(t), Origin: d.origin, Statement: statement, ClientData: client, Authenticator: data, Signature: signature}
}

func newDevice(t testing.TB) *device {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &device{key: key, origin: "http://localhost:7420", flags: 0x05}
}

func TestEachKindOfKeySigns(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"EdDSA": ed, "RS256": long, "ES256": newDevice(t).key} {
		d := &device{key: key, origin: "https://node.example", count: 41, flags: 0x05}
		s := d.sign(t, Statement{Act: "add", Nonce: "n"}.Text())
		if count, err := s.Check(); err != nil || count != 42 {
			t.Errorf("%s: %d, %v", name, count, err)
		}
		s.Signature[len(s.Signature)-1] ^= 1
		if _, err := s.Check(); parley.CodeOf(err) != parley.PasskeyRefused {
			t.Errorf("%s with another signature: %v", name, err)
		}
	}
}

func TestOtherSignaturesAreRefused(t *testing.T) {
	d := newDevice(t)
	text := Statement{Act: "add", Nonce: "n"}.Text()
	client := func(change func(m map[string]any)) func(*Signed) {
		return func(s *Signed) {
			var m map[string]any
			if err := json.Unmarshal(s.ClientData, &m); err != nil {
				t.Fatal(err)
			}
			change(m)
			s.ClientData, _ = json.Marshal(m)
		}
	}
	for name, change := range map[string]func(*Signed){
		"another statement":     func(s *Signed) { s.Statement = Statement{Act: "remove", Nonce: "n"}.Text() },
		"another key":           func(s *Signed) { s.Key = newDevice(t).public(t) },
		"another origin":        func(s *Signed) { s.Origin = "http://localhost:7421" },
		"another host":          func(s *Signed) { s.Origin = "https://node.example" },
		"another data":          func(s *Signed) { s.Authenticator[40-4]++ },
		"no user":               func(s *Signed) { s.Authenticator[32] = 0 },
		"no user verified":      func(s *Signed) { s.Authenticator[32] = 1 },
		"data cut short":        func(s *Signed) { s.Authenticator = s.Authenticator[:36] },
		"data for another site": func(s *Signed) { s.Authenticator[0]++ },
		"a registration":        client(func(m map[string]any) { m["type"] = "webauthn.create" }),
		"another challenge":     client(func(m map[string]any) { m["challenge"] = "AAAA" }),
		"a frame":               client(func(m map[string]any) { m["crossOrigin"] = true }),
		"a page above":          client(func(m map[string]any) { m["topOrigin"] = "https://evil.example" }),
		"another page":          client(func(m map[string]any) { m["origin"] = "http://localhost:3000" }),
		"other browser's data":  client(func(m map[string]any) { m["more"] = true }),
		"no key":                func(s *Signed) { s.Key = nil },
		"too much":              func(s *Signed) { s.ClientData = append(s.ClientData, make([]byte, 5<<10)...) },
	} {
		s := d.sign(t, text)
		if _, err := s.Check(); err != nil {
			t.Fatal(err)
		}
		change(&s)
		if _, err := s.Check(); parley.CodeOf(err) != parley.PasskeyRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A device that did not ask for its user's PIN signs well, and is refused.
	d.flags = 0x01
	if _, err := d.sign(t, text).Check(); parley.CodeOf(err) != parley.PasskeyRefused {
		t.Errorf("without the user verified: %v", err)
	}
}

func TestShortKeysAreRefused(t *testing.T) {
	other, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, key := range map[string]crypto.Signer{"P-384": other} {
		if _, err := ParseKey((&device{key: key}).public(t)); parley.CodeOf(err) != parley.PasskeyRefused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPagesWithoutPasskeysAreNamed(t *testing.T) {
	for origin, host := range map[string]string{
		"http://localhost:7420": "localhost", "https://node.example": "node.example", "https://a.b:8443": "a.b", "http://x.localhost": "x.localhost",
		"http://127.0.0.1:7420": "", "http://[::1]:7420": "", "http://192.168.1.4:7420": "", "https://192.168.1.4": "", "http://laptop.lan:7420": "", "https://0x7f.1": "",
		"": "", "localhost": "", "null": "", "https://node.example/": "", "https://Node.example": "", "https://a@node.example": "", "ftp://node.example": "",
	} {
		got, err := HostOf(origin)
		if got != host || (host == "") != (parley.CodeOf(err) == parley.InvalidArgument) {
			t.Errorf("%q: %q, %v", origin, got, err)
		}
	}
	_, err := HostOf("http://192.168.1.4:7420")
	if e := parley.AsError(err); !strings.Contains(e.Hint, "http://localhost:7420") {
		t.Errorf("the hint is %q", e.Hint)
	}
}

// TestStatementIsItsText reads back what is written, and nothing else that means the same.
func TestStatementIsItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Statement{Decision: rapid.String().Draw(t, "decision"), Act: rapid.String().Draw(t, "act"), Nonce: rapid.String().Draw(t, "nonce")}
		copy(s.Digest[:], rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "digest"))
		copy(s.Answer[:], rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "answer"))
		text := s.Text()
		if !json.Valid([]byte(text[len("parley passkey 1 "):])) {
			t.Fatalf("%q", text)
		}
		read, err := Read(text)
		if err != nil && len(text) <= 4<<10 && json.Valid([]byte(`"`+s.Act+`"`)) {
			t.Fatalf("%q: %v", text, err)
		}
		if err == nil && read.Text() != text {
			t.Fatalf("%q is read as %+v", text, read)
		}
		for _, other := range []string{text + " ", " " + text, strings.Replace(text, "{", "{ ", 1), strings.Replace(text, "}", `,"more":1}`, 1), text[1:]} {
			if _, err := Read(other); parley.CodeOf(err) != parley.PasskeyRefused {
				t.Fatalf("%q: %v", other, err)
			}
		}
	})
}

// TestAnsweredIsTheSameInAProof compares the digest of an answer where it is signed with that where it is proven.
func TestAnsweredIsTheSameInAProof(t *testing.T) {
	sealed := capabilities.Sealed([]byte("x"))
	typed := map[string]capabilities.Value{"port": capabilities.Int(80), "key": capabilities.String("hunter2"), "tags": capabilities.Strings("a", "b"), "f": capabilities.Float(1)}
	signed, err := Answered(typed, map[string]bool{"key": true})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]capabilities.Value{"port": typed["port"], "key": sealed, "tags": typed["tags"], "f": typed["f"]}
	text, err := json.Marshal(capabilities.Record(stored))
	if err != nil {
		t.Fatal(err)
	}
	if same, err := IsAnswered(signed, text, false); err != nil || !same {
		t.Errorf("%v: %s of %s", err, signed, text)
	}
	typed["port"] = capabilities.Int(81)
	if other, _ := Answered(typed, map[string]bool{"key": true}); other == signed || other == (events.Hash{}) {
		t.Error("another answer has the same digest")
	}
}

func FuzzSigned(f *testing.F) {
	d := newDevice(f)
	s := d.sign(f, Statement{Act: "add", Nonce: "n"}.Text())
	f.Add(s.Statement, s.ClientData, s.Authenticator, s.Signature, s.Key)
	f.Fuzz(func(t *testing.T, statement string, client, data, signature, key []byte) {
		got := Signed{Key: key, Origin: d.origin, Statement: statement, ClientData: client, Authenticator: data, Signature: signature}
		if _, err := got.Check(); err == nil && bytes.Equal(key, s.Key) && (statement != s.Statement || !bytes.Equal(client, s.ClientData) || !bytes.Equal(data, s.Authenticator)) {
			t.Fatalf("it accepts %q %q %x", statement, client, data)
		}
		Read(statement)                         //nolint:errcheck // it does not panic
		IsAnswered(events.Hash{}, client, true) //nolint:errcheck // nor this
		Decode(string(client), len(client)*3/4) //nolint:errcheck // nor this
	})
}

// TestAnsweredSaysWhichReference compares the digests of references as they are where they are signed, stored and proven.
func TestAnsweredSaysWhichReference(t *testing.T) {
	id := func(n byte) capabilities.ID {
		return capabilities.ID{ULID: [16]byte{15: n}, Node: capabilities.NodeOf([capabilities.NodeKeySize]byte{1})}
	}
	values := func(r capabilities.Ref) map[string]capabilities.Value {
		return map[string]capabilities.Value{"value": capabilities.List(capabilities.Reference(r))}
	}
	held := capabilities.Ref{Target: id(1), Kind: capabilities.KindFolder, Grant: id(2)}
	want, err := Answered(values(held), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		ref  capabilities.Ref
		same bool
	}{
		{"as it is granted", capabilities.Ref{Target: id(1), Kind: capabilities.KindFolder, Grant: id(3), Facet: capabilities.Facet{Uses: 2}}, true},
		{"another folder", capabilities.Ref{Target: id(4), Kind: capabilities.KindFolder, Grant: id(2)}, false},
		{"another kind", capabilities.Ref{Target: id(1), Kind: capabilities.KindFile, Grant: id(2)}, false},
	} {
		text, err := json.Marshal(values(c.ref))
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := IsAnswered(want, text, false); ok != c.same || err != nil {
			t.Errorf("%s: it is what was signed: %t, %v", c.what, ok, err)
		}
	}
	// What was signed before said only that there is one.
	before, err := Answered(map[string]capabilities.Value{"value": capabilities.List(capabilities.String("reference"))}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(values(held))
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := IsAnswered(before, text, false); !ok || err != nil {
		t.Errorf("an earlier signature: %t, %v", ok, err)
	}
}
