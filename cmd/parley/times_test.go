package main

import (
	"strings"
	"testing"
	"time"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
)

// TestTimesAreLocalOnTerminal shows times on a terminal whose clock is three hours ahead of UTC, and in a file.
func TestTimesAreLocalOnTerminal(t *testing.T) {
	clock := time.FixedZone("", 3*3600)
	on := terminal.Screen{Width: 80, Now: time.Date(2026, 1, 31, 10, 0, 0, 0, clock)}
	at := capabilities.At(time.Date(2026, 1, 31, 18, 0, 0, 0, clock))
	for text, show := range map[string]func(terminal.Screen) string{
		", until %": func(s terminal.Screen) string { return untilText(at, s) },
		"until %": func(s terminal.Screen) string {
			return facetText(capabilities.Grant{Facet: capabilities.Facet{Until: at}}, s)
		},
		"away from % to %": func(s terminal.Screen) string { return awayText(&view.Away{From: at, Until: at}, s) },
	} {
		for shown, s := range map[string]terminal.Screen{"18:00": on, "2026-01-31T15:00:00.000Z": {Now: on.Now}} {
			if got, want := show(s), strings.ReplaceAll(text, "%", shown); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
	}
}
