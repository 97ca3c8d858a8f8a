package mailbox_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestCountOfAPasskeyGrows has devices sign with any counts, and the mailbox be replayed and restored in between. A count that does not
// grow is refused: of two devices with one key, one is a copy. A device that does not count says 0 each time.
func TestCountOfAPasskeyGrows(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		v.Add("host")
		v.NameAgents()
		first := rapid.Uint32Range(0, 3).Draw(t, "at registration")
		evs := v.Must("host", mailbox.AddPasskey{PasskeyAdded: events.PasskeyAdded{
			Name: "phone", Key: public, Credential: []byte("one"), Origin: "http://localhost:7420", Count: first,
		}})
		phone := evs[0].(*events.PasskeyAdded).Passkey
		last := first
		for range rapid.IntRange(1, 12).Draw(t, "uses") {
			count := rapid.Uint32Range(0, 6).Draw(t, "count")
			_, err := v.Decide("host", mailbox.UsePasskey{Passkey: phone, Count: count})
			switch taken := count > last || count == 0 && last == 0; {
			case taken && err != nil:
				t.Fatalf("%d after %d: %v", count, last, err)
			case !taken && parley.CodeOf(err) != parley.PasskeyRefused:
				t.Fatalf("%d after %d is taken: %v", count, last, err)
			case taken:
				last = count
			}
			restored, err := mailbox.Restore(v.States["host"].ID, []byte(v.Snapshot("host")))
			if err != nil {
				t.Fatal(err)
			}
			if all := restored.Passkeys.All(); len(all) != 1 || all[0].Count != last {
				t.Fatalf("restored: %+v, want the count %d", all, last)
			}
		}
	})
}
