package sim

import (
	"slices"
	"testing"
)

// TestCondenseKeepsNodesThatExchangePackets condenses a transcript in which node C has no part.
func TestCondenseKeepsNodesThatExchangePackets(t *testing.T) {
	lines := []string{
		"step 0",
		"step 1",
		"h@A handles ask B of h@A",
		"step 2",
		"c@C handles mailbox.PostMessage of c@C",
		"    a form expires",
		"C stores 1 sections",
		"    log of c@C: 6 MessagePosted",
		"step 3",
		"A stores 1 sections",
		"    log of h@A: 6 FormRequested",
		"A sends packet 1 of epoch 7 with 1 items to B",
		"step 4",
		"h@B handles resume",
		"step 5",
		"h@B handles remote mailbox.RemoteDelivery",
		"h@B has message 1 of h@A after message 2",
	}
	want := []string{lines[1], lines[2], lines[8], lines[9], lines[10], lines[11], lines[14], lines[15], lines[16]}
	if got := condense(lines, lines[16]); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestRedrawnTakesTheShorter draws steps of which one fails from 7 on, and the other has fewer lines with a smaller draw.
func TestRedrawnTakesTheShorter(t *testing.T) {
	steps := []Step{{stepHandle, 1 << 40}, {stepHandle, 1 << 41}}
	got := redrawn(steps, func(all []Step) int {
		if all[0].Draw < 7 {
			return 0 // it does not fail
		}
		return 10 + int(min(all[1].Draw, 50))
	})
	if want := []Step{{stepHandle, 7}, {stepHandle, 0}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
