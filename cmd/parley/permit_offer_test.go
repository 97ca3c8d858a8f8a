package main

import (
	"testing"

	"parley"
	"parley/actors/view"
	"parley/events"
)

// TestOfferIsNamed names offers of an approval of which two have the same words: by their numbers and their IDs they are told
// apart, and by the words they are not.
func TestOfferIsNamed(t *testing.T) {
	files := func(id, glob string) parley.Offer {
		return parley.Offer{ID: id, Words: "some files", Rule: events.Coverage{Kind: events.CoversFiles, Glob: glob}}
	}
	call := parley.Offer{ID: "call", Words: "exactly this call", Rule: events.Coverage{Kind: events.CoversCall}}
	w := permission{view.Message{Permission: &parley.Permission{Tool: "Edit", Offers: []parley.Offer{call, files("files-1", "a/*"), files("files-2", "b/*")}}}}
	for chosen, want := range map[string]string{"": "", "1": "", "call": "", "exactly this call": "", "2": "files-1", "files-1": "files-1", "3": "files-2", "files-2": "files-2"} {
		if got, err := w.offer(chosen); err != nil || got.ID != want {
			t.Errorf("%q is %q, want %q: %v", chosen, got.ID, want, err)
		}
	}
	for chosen, want := range map[string]parley.Code{"some files": parley.Ambiguous, "4": parley.InvalidArgument, "files-3": parley.InvalidArgument} {
		if got, err := w.offer(chosen); parley.CodeOf(err) != want {
			t.Errorf("%q is %q: %v", chosen, got.ID, err)
		}
	}
}
