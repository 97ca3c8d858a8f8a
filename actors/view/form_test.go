package view_test

import (
	"encoding/json"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
)

// TestOutcomeJSONRoundTrip checks that each view can be parsed from its JSON. A secret stays masked.
func TestOutcomeJSONRoundTrip(t *testing.T) {
	was := view.Message{Number: 3, Type: "form", Outcome: &view.Outcome{
		Status: view.StatusAnswered, ByName: "fae", Order: []string{"port", "password"},
		Values: capabilities.Record(map[string]capabilities.Value{"port": capabilities.Int(443), "password": capabilities.Sealed([]byte("ciphertext"))}),
	}}
	text, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	var read view.Message
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(read)
	if err != nil || string(again) != string(text) {
		t.Errorf("%s was read as %s, %v", text, again, err)
	}
	if err := json.Unmarshal([]byte(`{"status":"declined","at":5}`), &view.Outcome{}); err == nil {
		t.Error("an outcome that is none was read")
	}
}
