package view_test

import (
	"encoding/json"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

func TestMaskedMessageJSONRoundTrip(t *testing.T) {
	secret := capabilities.Sealed([]byte("ciphertext"))
	was := view.Message{
		Number: 3, Type: "message", Text: "take @it", Edges: map[string]capabilities.Value{"it": secret, "n": capabilities.Int(1)},
		Fields: []events.Field{{Name: "key", Type: events.Secret, Default: secret}, {Name: "port", Type: events.Number, Example: capabilities.Int(443)}},
	}
	text, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	read := view.Message{Text: "of before"}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(read)
	if err != nil || string(again) != string(text) {
		t.Errorf("%s was read as %s, %v", text, again, err)
	}
	if err := json.Unmarshal([]byte(`{"edges":{"it":{"$cap":"x"}}}`), &view.Message{}); err == nil {
		t.Error("an edge that is no value was read")
	}
}
