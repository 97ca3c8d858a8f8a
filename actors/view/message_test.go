package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"parley"
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

func TestSameAsksAreOneGroup(t *testing.T) {
	fae, bob := capabilities.ID{ULID: [16]byte{1}}, capabilities.ID{ULID: [16]byte{2}}
	asked := 0
	open := func(from capabilities.ID, input, folder string) view.Message {
		asked++ // what is said of a call, and its digest with that, are no part of the call
		asks := parley.Permission{Tool: "shell", Input: input, Folder: folder, Reason: fmt.Sprint("reason ", asked), Part: fmt.Sprint("part ", asked)}
		return view.Message{From: from, Permission: &asks, Digest: asks.Digest(), AnswerNeeded: true, Fields: []events.Field{{Name: "rule", Options: []events.Option{{Value: "call"}}}}}
	}
	settled := open(fae, "a", "/srv")
	settled.AnswerNeeded = false
	all := []view.Message{
		open(fae, "a", "/srv"), open(fae, "b", "/srv"), open(fae, "a", "/srv"), open(bob, "a", "/srv"), open(fae, "a", "/tmp"), settled, {Number: 6}, {Number: 7}, open(fae, "a", "/tmp"),
	}
	session := open(fae, "a", "/srv")
	session.Permission.Session = "Claude Code · app 2"
	all = append(all, session)
	want := [][]int{{0, 2}, {1}, {3}, {4, 8}, {5}, {6}, {7}, {9}}
	if got := view.Together(all); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestStepsInWords(t *testing.T) {
	at := capabilities.Time(1_700_000_000_000)
	id := capabilities.ID{ULID: [16]byte{1}}
	name := func(_ capabilities.ID, name string) string { return name }
	when := func(capabilities.Time) string { return "noon" }
	for want, s := range map[string]view.ForwardStep{
		"forwarded by bob":                         {ByName: "bob"},
		"forwarded by bob (away until noon)":       {ByName: "bob", Cause: events.Absent, Until: at},
		"forwarded to you as a member of ops":      {ByName: "ops", Cause: events.Member},
		"forwarded to cy as a member of ops":       {ByName: "ops", Cause: events.Member, To: id, ToName: "cy"},
		"escalated from bob after 4h":              {ByName: "bob", Cause: events.Escalated, After: 14_400_000},
		"escalated from bob after 1h30m":           {ByName: "bob", Cause: events.Escalated, After: 5_400_000},
		"escalated from bob after 10m":             {ByName: "bob", Cause: events.Escalated, After: 600_000},
		"escalated from bob after 10s":             {ByName: "bob", Cause: events.Escalated, After: 10_000},
		"escalated from bob after 100h0m1s":        {ByName: "bob", Cause: events.Escalated, After: 360_001_000},
		"forwarded by one of a cause that is none": {ByName: "one of a cause that is none", Cause: "else"},
	} {
		if got := s.Words(name, when); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, f := range map[string]view.Forwarded{
		"bob":                           {},
		"bob (you are away until noon)": {Cause: events.Absent, Until: at},
		"bob (cy is away until noon)":   {Cause: events.Absent, Until: at, By: id, ByName: "cy"},
		"bob as a member":               {Cause: events.Member},
		"bob as a member of ops":        {Cause: events.Member, By: id, ByName: "ops"},
	} {
		f.Name = "bob"
		if got := f.Words(name, when); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestUrgentComesFirst(t *testing.T) {
	var all []view.Message
	for i, p := range []parley.Priority{"", events.Low, events.Normal, events.Urgent, events.Low, events.Urgent} {
		all = append(all, view.Message{Number: uint64(i), Header: parley.Header{Priority: p}})
	}
	rows := []int{0, 1, 2, 3, 4, 5}
	view.ByPriority(rows, func(i int) *view.Message { return &all[i] })
	if want := []int{3, 5, 0, 2, 1, 4}; !slices.Equal(rows, want) {
		t.Errorf("got %v, want %v", rows, want)
	}
}

// TestReceiptsInWords says of a message to one how far it has come, and of one to several with whom: who handled it, too.
func TestReceiptsInWords(t *testing.T) {
	fae, session := capabilities.ID{ULID: [16]byte{1}}, capabilities.ID{ULID: [16]byte{2}}
	one, several := view.Message{}, view.Message{Recipients: []view.Recipient{{}, {}}}
	handled := view.Receipt{By: fae, ByName: "fae", Reader: fae, ReaderName: "fae", State: events.Handled, How: "replied", Known: view.KnownByNode}
	bySession := handled
	bySession.Reader, bySession.ReaderName = session, "fae 2"
	own := view.Receipt{Reader: fae, ReaderName: "you", State: events.Handled, How: "replied"}
	waits := view.Receipt{By: fae, ByName: "fae", Reader: fae, ReaderName: "fae", State: events.Delivered}
	shown := bySession
	shown.State, shown.How = events.Shown, "transcript"
	for _, c := range []struct {
		message view.Message
		receipt view.Receipt
		want    string
	}{
		{one, handled, "handled (replied), its node says"},
		{several, handled, "handled by fae (replied), its node says"},
		{one, bySession, "handled by fae 2 (replied), its node says"},
		{one, shown, "shown to fae 2 (transcript), its node says"},
		{one, own, "handled by you (replied)"},
		{several, waits, "delivered to fae"},
	} {
		if got := c.message.ReceiptWords(c.receipt, func(_ capabilities.ID, name string) string { return name }); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
