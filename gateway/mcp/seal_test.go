package mcp

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley"
)

func sealsTest(t *testing.T, key byte) *seals {
	t.Helper()
	s, err := newSeals(bytes.Repeat([]byte{key}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSealIsGoodOnceForItsAgentUntilExpiry(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := sealsTest(t, 1)
	sealed := func() string {
		text, err := s.seal("fae@A", round{Form: "f", Round: 2, Until: now.Add(time.Hour)})
		if err != nil || strings.Contains(text, "fae@A") {
			t.Fatalf("%q %v", text, err)
		}
		return text
	}
	state := sealed()
	if r, err := s.open("fae@A", state, now); err != nil || r.Form != "f" || r.Round != 2 {
		t.Errorf("%+v %v", r, err)
	}
	for name, try := range map[string]func() error{
		"again":         func() error { _, err := s.open("fae@A", state, now); return err },
		"too late":      func() error { _, err := s.open("fae@A", sealed(), now.Add(2*time.Hour)); return err },
		"another agent": func() error { _, err := s.open("bob", sealed(), now); return err },
		"another node":  func() error { _, err := sealsTest(t, 2).open("fae@A", sealed(), now); return err },
		"cut":           func() error { text := sealed(); _, err := s.open("fae@A", text[:len(text)-1], now); return err },
		"longer":        func() error { _, err := s.open("fae@A", sealed()+"A", now); return err },
		"no seal":       func() error { _, err := s.open("fae@A", "!", now); return err },
		"nothing":       func() error { _, err := s.open("fae@A", "", now); return err },
		"very long":     func() error { _, err := s.open("fae@A", strings.Repeat("A", 1<<20), now); return err },
	} {
		if err := try(); parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSealDetectsEveryChangedBit(t *testing.T) {
	s := sealsTest(t, 1)
	text, err := s.seal("fae@A", round{Form: "f", Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		for _, c := range []byte("Az-") {
			if text[i] == c {
				continue
			}
			if _, err := s.open("fae@A", text[:i]+string(c)+text[i+1:], time.Now()); err == nil {
				t.Fatalf("character %d may be %c", i, c)
			}
		}
	}
}

func TestUsedSealsAreForgottenInOrder(t *testing.T) {
	s := sealsTest(t, 1)
	for i := range maxUsed + 10 {
		if !s.use(fmt.Sprint(i)) {
			t.Fatal(i)
		}
	}
	if len(s.used) != maxUsed || len(s.order) != maxUsed {
		t.Errorf("%d and %d are remembered", len(s.used), len(s.order))
	}
	if s.use(fmt.Sprint(maxUsed+9)) || s.use("10") || !s.use("9") {
		t.Error("the oldest are to go")
	}
}
