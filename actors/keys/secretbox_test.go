package keys

import (
	"bytes"
	"testing"

	"github.com/nats-io/nkeys"

	"parley"
	"parley/capabilities"
)

func newKey(t *testing.T) nkeys.KeyPair {
	t.Helper()
	key, err := nkeys.CreateServer()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newBox(t *testing.T, key nkeys.KeyPair) *SecretBox {
	t.Helper()
	box, err := NewSecretBox(key)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestSealedValuesOpenOnlyWithTheirKey(t *testing.T) {
	key := newKey(t)
	box, again, other := newBox(t, key), newBox(t, key), newBox(t, newKey(t))
	plain := map[string]capabilities.Value{"password": capabilities.String("hunter2"), "name": capabilities.String("ann")}
	sealed, err := box.SealFields([]string{"password", "missing"}, plain)
	if err != nil || len(sealed) != 1 || !sealed["password"].IsSealed() {
		t.Fatalf("sealed %v, %v", sealed, err)
	}
	if got, _ := sealed["password"].AsSealed(); bytes.Contains(got, []byte("hunter2")) {
		t.Error("the sealed value shows its text")
	}
	opened, err := again.Open(capabilities.Record(sealed))
	if err != nil {
		t.Fatal(err)
	}
	fields, _ := opened.AsRecord()
	if text, _ := fields["password"].AsString(); text != "hunter2" {
		t.Errorf("opened as %v", opened)
	}
	if _, err := other.Open(sealed["password"]); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("with another key: %v", err)
	}
	if _, err := box.Open(capabilities.Sealed(nil)); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("a masked value: %v", err)
	}
}

func TestDerivedKeysDifferByPurpose(t *testing.T) {
	key := newKey(t)
	one, err := Derive(key, "one")
	if err != nil {
		t.Fatal(err)
	}
	again, _ := Derive(key, "one")
	two, _ := Derive(key, "two")
	if len(one) != 32 || !bytes.Equal(one, again) || bytes.Equal(one, two) {
		t.Errorf("derived %x, %x and %x", one, again, two)
	}
}
