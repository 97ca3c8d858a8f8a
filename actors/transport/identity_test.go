package transport

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/nats-io/nkeys"

	"parley"
	"parley/capabilities"
)

func TestIdentityRequiresNodeKey(t *testing.T) {
	user, err := nkeys.CreateUser()
	must(t, err)
	if _, err := NewIdentity(user); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("a user's key: %v", err)
	}
	key, err := nkeys.CreateServer()
	must(t, err)
	text, err := key.PublicKey()
	must(t, err)
	public, err := nkeys.FromPublicKey(text)
	must(t, err)
	if _, err := NewIdentity(public); err == nil {
		t.Error("a key without its seed made an identity")
	}
	i, err := NewIdentity(key)
	must(t, err)
	if i.Node().String() != text {
		t.Errorf("the identity of %s is %s", text, i.Node())
	}
}

// TestSealingKeyFollowsFromID compares the two halves of the curve pair: one is derived from the seed, one from the ID.
func TestSealingKeyFollowsFromID(t *testing.T) {
	for range 50 {
		i := newIdentity(t)
		own, err := curvePair(t, i).PublicKey()
		must(t, err)
		computed, err := curveKey(i.Node())
		must(t, err)
		text, err := nkeys.Encode(nkeys.PrefixByteCurve, computed[:])
		must(t, err)
		if own != string(text) {
			t.Fatalf("the seed of %s gives %s, its ID %s", i.Node(), own, text)
		}
	}
}

// curvePair returns the identity's curve key as nkeys represents it.
func curvePair(t *testing.T, i *Identity) nkeys.KeyPair {
	t.Helper()
	seed, err := nkeys.EncodeSeed(nkeys.PrefixByteCurve, i.secrets.curve[:])
	must(t, err)
	pair, err := nkeys.FromCurveSeed(seed)
	must(t, err)
	return pair
}

func TestSealEqualsNkeys(t *testing.T) {
	here, there := newIdentity(t), newIdentity(t)
	ours, theirs := curvePair(t, here), curvePair(t, there)
	ourKey, err := ours.PublicKey()
	must(t, err)
	sealed, err := here.secrets.seal(nil, []byte("ours"), there.Node())
	must(t, err)
	if body, err := theirs.Open(sealed, ourKey); err != nil || string(body) != "ours" {
		t.Fatalf("nkeys opens %q, %v", body, err)
	}
	sealed, err = theirs.Seal([]byte("theirs"), ourKey)
	must(t, err)
	if body, err := here.secrets.open(sealed, there.Node()); err != nil || string(body) != "theirs" {
		t.Fatalf("an envelope by nkeys opens as %q, %v", body, err)
	}
}

func TestInvalidIDsHaveNoKey(t *testing.T) {
	for name, text := range map[string]string{
		"zero, of order 4":              "0000000000000000000000000000000000000000000000000000000000000000",
		"the neutral element":           "0100000000000000000000000000000000000000000000000000000000000000",
		"of order 2":                    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"of order 8":                    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"of order 8, the other":         "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"another spelling of the first": "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"another spelling of the next":  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"no point of the curve":         "0200000000000000000000000000000000000000000000000000000000000000",
	} {
		raw, err := hex.DecodeString(text)
		must(t, err)
		node := capabilities.NodeOf([32]byte(raw))
		if _, err := curveKey(node); err == nil {
			t.Errorf("%s has a key", name)
		}
		if _, err := newIdentity(t).Seal(node, [16]byte{1}, 1, nil); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("sealed to %s: %v", name, err)
		}
	}
}

func TestCertificateIsStable(t *testing.T) {
	key, err := nkeys.CreateServer()
	must(t, err)
	var made [][]byte
	for range 2 {
		i, err := NewIdentity(key)
		must(t, err)
		c, err := i.certificate()
		must(t, err)
		made = append(made, c.Certificate[0])
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("one key made two certificates")
	}
}
