package transport

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
	"github.com/oklog/ulid/v2"

	"parley"
)

var someID = ulid.ULID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

func sealed(t testing.TB, from, to *Identity, body string) []byte {
	t.Helper()
	e, err := from.Seal(to.Node(), someID, 3, []byte(body))
	must(t, err)
	return e
}

// resigned returns the envelope with a new signature by its sender.
func resigned(by *Identity, envelope []byte) []byte {
	content := envelope[:len(envelope)-ed25519.SignatureSize]
	return append(slices.Clone(content), by.sign(forPacket, content)...)
}

func TestSealAndOpen(t *testing.T) {
	a, b := newIdentity(t), newIdentity(t)
	for _, size := range []int{0, 1, 1000, MaxBody} {
		body := bytes.Repeat([]byte{7}, size)
		e, err := a.Seal(b.Node(), someID, 250, body)
		must(t, err)
		l, err := b.Open(e)
		must(t, err)
		if l.ID != someID || l.From != a.Node() || l.Kind != 250 || l.Answer || !bytes.Equal(l.Body, body) {
			t.Errorf("%d bytes: opened as %+v", size, l)
		}
		if size == MaxBody && len(e) != maxEnvelope || len(e) > 1<<20-4096 {
			t.Errorf("the envelope of %d bytes has %d", size, len(e))
		}
	}
	if _, err := a.Seal(b.Node(), someID, 1, make([]byte, MaxBody+1)); parley.CodeOf(err) != parley.TooLarge {
		t.Errorf("a body too large: %v", err)
	}
}

func TestAlteredEnvelopeDoesNotOpen(t *testing.T) {
	a, b := newIdentity(t), newIdentity(t)
	e := sealed(t, a, b, "hello")
	for n := range e {
		for bit := range 8 {
			e[n] ^= 1 << bit
			if l, err := b.Open(e); err == nil {
				t.Errorf("with bit %d of byte %d turned it opened as %+v", bit, n, l)
			}
			e[n] ^= 1 << bit
		}
	}
	for n := range e {
		if _, err := b.Open(e[:n]); err == nil {
			t.Errorf("the first %d bytes opened", n)
		}
	}
}

func TestOpenErrorsNameReason(t *testing.T) {
	a, b, c := newIdentity(t), newIdentity(t), newIdentity(t)
	alter := func(at int, to ...byte) []byte {
		e := sealed(t, a, b, "hello")
		copy(e[at:], to)
		return e
	}
	c3 := c.Node()
	for name, o := range map[string]struct {
		envelope []byte
		want     error
	}{
		"nothing":                           {nil, ErrMalformed},
		"a word":                            {[]byte("hello"), ErrMalformed},
		"too short":                         {alter(0)[:minEnvelope-1], ErrMalformed},
		"too long":                          {make([]byte, maxEnvelope+1), ErrOversize},
		"version 0":                         {alter(len(magic), 0), ErrMalformed},
		"a newer version":                   {alter(len(magic), 2), ErrVersion},
		"a newer version, shorter":          {alter(len(magic), 2)[:10], ErrVersion},
		"another role":                      {alter(roleAt, 2), ErrMalformed},
		"another kind":                      {alter(kindAt, 4), ErrForged},
		"a packet made a response":          {alter(roleAt, roleAnswer), ErrForged},
		"for another":                       {sealed(t, a, c, "hello"), ErrForeign},
		"in another's name":                 {alter(fromAt, c3.Bytes()...), ErrForged},
		"from nobody":                       {alter(fromAt, make([]byte, 32)...), ErrForged},
		"another's, addressed anew, signed": {resigned(a, alter(sealedAt+40, 0, 0, 0, 0)), ErrSealed},
		"another's, signed as its own":      {resigned(c, alter(fromAt, c3.Bytes()...)), ErrSealed},
	} {
		if _, err := b.Open(o.envelope); !errors.Is(err, o.want) {
			t.Errorf("%s: %v, want %v", name, err, o.want)
		}
	}
}

// fixedIdentity returns an identity that the corpus was sealed with.
func fixedIdentity(t testing.TB, n byte) *Identity {
	t.Helper()
	seed, err := nkeys.EncodeSeed(nkeys.PrefixByteServer, bytes.Repeat([]byte{n}, 32))
	must(t, err)
	key, err := nkeys.FromSeed(seed)
	must(t, err)
	i, err := NewIdentity(key)
	must(t, err)
	return i
}

// envelopesOfVersion1 returns the bodies of the corpus by their envelopes, which the first fixed identity sealed to the
// second.
func envelopesOfVersion1(t testing.TB) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "envelopes.txt"))
	must(t, err)
	bodies := map[string]string{}
	for line := range strings.Lines(string(text)) {
		body, digits, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		e, err := hex.DecodeString(digits)
		must(t, err)
		bodies[string(e)] = body
	}
	return bodies
}

func TestEnvelopesOfVersion1Open(t *testing.T) {
	for e, body := range envelopesOfVersion1(t) {
		l, err := fixedIdentity(t, 2).Open([]byte(e))
		if err != nil || l.From != fixedIdentity(t, 1).Node() || l.ID != someID || l.Kind != 3 || string(l.Body) != body {
			t.Errorf("the one of %q opened as %+v, %v", body, l, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	a, b := fixedIdentity(f, 1), fixedIdentity(f, 2)
	genuine := envelopesOfVersion1(f)
	for text := range genuine {
		e := []byte(text)
		f.Add(e)
		f.Add(e[:len(e)-1])
		f.Add(append(slices.Clone(e), 0))
		f.Add(resigned(b, e))
	}
	f.Add(sealed(f, a, fixedIdentity(f, 3), "for another"))
	f.Add([]byte(magic + "\x02"))
	f.Fuzz(func(t *testing.T, envelope []byte) {
		l, err := b.Open(envelope)
		body, known := genuine[string(envelope)]
		if (err == nil) != known || known && string(l.Body) != body {
			t.Errorf("%x opened as %+v, %v", envelope, l, err)
		}
	})
}

func BenchmarkSealAndOpen(b *testing.B) {
	from, to := newIdentity(b), newIdentity(b)
	for _, size := range []int{200, 4 << 10, 64 << 10, MaxBody} {
		body := make([]byte, size)
		b.Run(fmt.Sprintf("seal/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				_, err := from.Seal(to.Node(), someID, 1, body)
				must(b, err)
			}
		})
		e := sealed(b, from, to, string(body))
		b.Run(fmt.Sprintf("open/%d", size), func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				_, err := to.Open(e)
				must(b, err)
			}
		})
	}
	b.Run("curve key", func(b *testing.B) {
		for b.Loop() {
			_, err := curveKey(to.Node())
			must(b, err)
		}
	})
}
