package capabilities

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/fault"
)

const locatorText = "parley://" + nodeText + "/" + ulidText

func TestLocatorTextRoundTrip(t *testing.T) {
	kinds := rapid.SampledFrom([]Kind{"", KindAgent, KindForm, KindMessage, KindPromise, KindResolver, KindGrant, KindBlob, KindNode})
	rapid.Check(t, func(t *rapid.T) {
		l := Locator{ID: someID().Draw(t, "id"), Kind: kinds.Draw(t, "kind")}
		if n := rapid.IntRange(0, maxHints).Draw(t, "hints"); n > 0 {
			l.Hints = rapid.SliceOfN(rapid.StringN(0, 20, 60), n, n).Draw(t, "at")
		}
		got, err := ParseLocator(l.String())
		if err != nil || !reflect.DeepEqual(got, l) {
			t.Fatalf("%s: got %+v, %v, want %+v", l, got, err, l)
		}
		if !IsLocator(l.String()) {
			t.Fatalf("%s is not recognized as a locator", l)
		}
	})
}

func TestHintsAreNoPartOfIdentity(t *testing.T) {
	bare, err := ParseLocator(locatorText)
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"?at=nats://a:1", "?type=agent&at=x&at=y", "?type=agent&later=ignored"} {
		if l, err := ParseLocator(locatorText + query); err != nil || l.ID != bare.ID {
			t.Errorf("%s: got %v, %v", query, l, err)
		}
	}
}

func TestMalformedLocatorsAreRefused(t *testing.T) {
	for what, s := range map[string]string{
		"empty":                 "",
		"another scheme":        strings.Replace(locatorText, "parley", "http", 1),
		"no node":               "parley:///" + ulidText,
		"no ULID":               "parley://" + nodeText,
		"an empty ULID":         "parley://" + nodeText + "/",
		"a node in lower case":  "parley://" + strings.ToLower(nodeText) + "/" + ulidText,
		"a wrong checksum":      "parley://" + nodeText[:55] + "A/" + ulidText,
		"a ULID in lower case":  "parley://" + nodeText + "/" + strings.ToLower(ulidText),
		"a ULID that overflows": "parley://" + nodeText + "/8" + ulidText[1:],
		"a longer path":         locatorText + "/more",
		"two slashes":           "parley://" + nodeText + "//" + ulidText,
		"a user":                "parley://me@" + nodeText + "/" + ulidText,
		"a user and a password": "parley://me:secret@" + nodeText + "/" + ulidText,
		"a port":                "parley://" + nodeText + ":80/" + ulidText,
		"a fragment":            locatorText + "#part",
		"an empty fragment":     locatorText + "#",
		"a # after the query":   locatorText + "?type=agent#",
		"opaque":                "parley:" + nodeText + "/" + ulidText,
		"an unknown type":       locatorText + "?type=spaceship",
		"a malformed query":     locatorText + "?type=%zz",
		"a semicolon":           locatorText + "?a;b",
		"nine hints":            locatorText + "?" + strings.Repeat("at=x&", 9),
		"more than 4 KiB":       locatorText + "?at=" + strings.Repeat("x", 4096),
		"a space":               "parley://" + nodeText + "/ " + ulidText,
		"a control character":   locatorText + "\n",
		"invalid UTF-8":         "parley://\xff\xfe/" + ulidText,
	} {
		_, err := ParseLocator(s)
		wantCode(t, err, fault.InvalidArgument, what)
	}
}

// FuzzParseLocator checks that a parsed locator equals the one parsed from its text.
func FuzzParseLocator(f *testing.F) {
	f.Add(locatorText)
	f.Add(locatorText + "?type=promise&at=nats://host:4222&at=x")
	f.Add(locatorText + "?type=invitation&secret=abc&at=nats://host:4222")
	f.Add("parley://me@" + nodeText + "/" + ulidText + "#f")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ParseLocator(s)
		if err != nil {
			wantCode(t, err, fault.InvalidArgument, s)
			return
		}
		text := l.String()
		if len(text) > maxLocatorSize { // escaping makes hints longer
			return
		}
		again, err := ParseLocator(text)
		if err != nil || !reflect.DeepEqual(again, l) || again.String() != text {
			t.Fatalf("%q: %+v, then %+v, %v", s, l, again, err)
		}
	})
}
