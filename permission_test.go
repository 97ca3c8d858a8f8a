package parley_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/events"
)

// drawOffer draws an offer. Its texts are short, so that two of them are often alike.
func drawOffer(t *rapid.T) parley.Offer {
	text := rapid.StringMatching(`[ab:0-9]{0,3}`)
	return parley.Offer{
		ID: text.Draw(t, "id"), Words: text.Draw(t, "words"),
		Rule: events.Coverage{Kind: events.CoversCommands, Folder: text.Draw(t, "folder"), Commands: []events.CommandPattern{{Words: []string{text.Draw(t, "word")}}}},
	}
}

func drawPermission(t *rapid.T) parley.Permission {
	text := rapid.StringMatching(`[ab:0-9]{0,3}`)
	p := parley.Permission{Tool: text.Draw(t, "tool"), Input: text.Draw(t, "input"), Folder: text.Draw(t, "folder"), Reason: text.Draw(t, "reason"), Part: text.Draw(t, "part")}
	for range rapid.IntRange(0, 2).Draw(t, "offers") {
		p.Offers = append(p.Offers, drawOffer(t))
	}
	return p
}

// TestDigestCoversAllThatIsShown draws pairs of permissions. Their digests are alike if and only if all of them is, and their
// keys as calls if and only if tool, input and folder are.
func TestDigestCoversAllThatIsShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := drawPermission(t)
		b := a
		switch rapid.IntRange(0, 7).Draw(t, "change") {
		case 0:
			b.Reason = rapid.StringMatching(`[ab:]{0,3}`).Draw(t, "another reason")
		case 1:
			b.Part = rapid.StringMatching(`[ab:]{0,3}`).Draw(t, "another part")
		case 2:
			b.Folder = rapid.StringMatching(`[ab:]{0,3}`).Draw(t, "another folder")
		case 3:
			b.Offers = append(b.Offers[:len(b.Offers):len(b.Offers)], drawOffer(t))
		case 4:
			if len(a.Offers) > 0 {
				b.Offers = append([]parley.Offer{drawOffer(t)}, a.Offers[1:]...)
			}
		case 5:
			b.Reason, b.Part = a.Part, a.Reason
		default:
			b = drawPermission(t)
		}
		same := reflect.DeepEqual(a, b) || len(a.Offers)+len(b.Offers) == 0 && a.Call() == b.Call() && a.Reason == b.Reason && a.Part == b.Part
		if (a.Digest() == b.Digest()) != same {
			t.Fatalf("%+v and %+v: the digests are %s and %s", a, b, a.Digest(), b.Digest())
		}
		if (a.Call() == b.Call()) != (a.Tool == b.Tool && a.Input == b.Input && a.Folder == b.Folder) {
			t.Fatalf("%+v and %+v: the calls are %s and %s", a, b, a.Call(), b.Call())
		}
		if a.IsSameCall(&b) != (a.Call() == b.Call()) {
			t.Fatalf("%+v and %+v: the same call, %t", a, b, a.IsSameCall(&b))
		}
		before, after := a.Around()
		sum := sha256.Sum256([]byte(before + fmt.Sprintf("%d:%s", len(a.Input), a.Input) + after))
		if hex.EncodeToString(sum[:]) != a.Digest() {
			t.Fatalf("%+v: a page tells another digest than %s", a, a.Digest())
		}
	})
}
