package show

import (
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/mailbox"
)

func TestLines(t *testing.T) {
	t.Parallel()
	at, err := time.Parse(time.RFC3339, "2026-02-25T10:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	when := capabilities.At(at)
	someone := capabilities.ID{ULID: [16]byte{1}, Node: capabilities.NodeOf([32]byte{1})}
	one := uint64(1)
	for want, e := range map[string]view.Message{
		`0. "fae" sent form "D" (fields: a, b) at "2026-02-25T10:00:00.000Z"`: {
			Type: "form", FromName: "fae", Description: "D", Date: when,
			Fields: []events.Field{testField("a"), testField("b")},
		},
		`1. you sent form "D" to "HOST" (fields: a) at "2026-02-25T10:00:00.000Z" - expired at "2026-02-25T10:00:00.000Z"`: {
			Number: 1, Type: "form", Sent: true, ToName: "HOST", Description: "D", Date: when,
			Fields:  []events.Field{testField("a")},
			Outcome: &view.Outcome{Status: view.StatusExpired, At: when},
		},
		`4. "fae" by you sent "hi" to "bob" at "2026-02-25T10:00:00.000Z"`: {
			Number: 4, Type: "message", Sent: true, Author: someone, AuthorName: "fae", ToName: "bob", Text: "hi", Date: when,
		},
		`0. ` + view.ShortID(someone) + ` sent "hi" at "2026-02-25T10:00:00.000Z"`: {Type: "message", From: someone, Text: "hi", Date: when},
		`2. "` + someone.String() + `" replied "hi" in reply to #1 at "2026-02-25T10:00:00.000Z" (dismissed)`: {
			Number: 2, Type: "message", From: someone, To: capabilities.ID{Node: someone.Node}, Text: "hi", Date: when, ReplyTo: someone, ReplyNumber: &one, Dismissed: true,
		},
		`7. "fae" sent "the log" with the file "a.log" at "2026-02-25T10:00:00.000Z"`: {
			Number: 7, Type: "message", FromName: "fae", Text: "the log", Header: parley.Header{Files: []events.File{{Name: "a.log"}}}, Date: when,
		},
		`8. "fae" sent no text with 2 files at "2026-02-25T10:00:00.000Z"`: {
			Number: 8, Type: "message", FromName: "fae", Header: parley.Header{Files: []events.File{{Name: "a.log"}, {Name: "b.log"}}}, Date: when,
		},
		`9. "fae" sent "Lunch" at "2026-02-25T10:00:00.000Z"`: {
			Number: 9, Type: "message", FromName: "fae", Header: parley.Header{Subject: "Lunch"}, Date: when,
		},
		`3. "bob" requested "x" at "2026-02-25T10:00:00.000Z" - superseded by "bob" at "2026-02-25T10:00:00.000Z": n\n`: {
			Number: 3, Type: "request", FromName: "bob", Description: "x", Date: when,
			Outcome: &view.Outcome{Status: view.StatusSuperseded, By: someone, ByName: "bob", At: when, Note: "n\n"},
		},
		`4. "fae" sent form "D" (fields: ) at "2026-02-25T10:00:00.000Z" - answering`: {
			Number: 4, Type: "form", FromName: "fae", Description: "D", Date: when, Answering: true, Refused: "old",
		},
		`6. "fae" sent form "T" (fields: ) at "2026-02-25T10:00:00.000Z"`: {
			Number: 6, Type: "form", FromName: "fae", Title: "T", Date: when,
		},
		`5. "fae" sent form "D" (fields: ) at "2026-02-25T10:00:00.000Z" - refused: no\u{202e}`: {
			Number: 5, Type: "form", FromName: "fae", Description: "D", Date: when, Refused: "no\u202e",
		},
	} {
		if got := Message(e, terminal.Screen{}); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func testField(name string) events.Field { return events.Field{Name: name} }

// decided returns an approval with a decision.
func decided(decision, reason string) view.Message {
	return view.Message{
		Number: 7, Type: "approval", FromName: "fae", Title: "Bash", Description: `{"command":"git push"}`, Permission: &parley.Permission{Tool: "Bash", Input: `{"command":"git push"}`}, Date: 1772013600000,
		Outcome: &view.Outcome{Status: view.StatusAnswered, Allowed: decision == mailbox.Once || decision == mailbox.Always, At: 1772013600000, Values: capabilities.Record(map[string]capabilities.Value{
			"decision": capabilities.String(decision), "reason": capabilities.String(reason),
		})},
	}
}

func TestDecisionsAreShown(t *testing.T) {
	for _, c := range []struct {
		e    view.Message
		want string
	}{
		{decided(mailbox.Once, ""), "✓ Allowed once ·"},
		{decided(mailbox.Always, ""), "✓ Always: exactly this call ·"},
		{decided(mailbox.Deny, "not\ntoday"), `✕ Denied · not\ntoday ·`},
		{decided(mailbox.Never, ""), "✕ Never: exactly this call ·"},
	} {
		file := `7. "fae" asked to call "Bash" (input: {"command":"git push"}) at "2026-02-25T10:00:00.000Z" - ` + c.want + ` at "2026-02-25T10:00:00.000Z"`
		if got := Message(c.e, terminal.Screen{}); got != file {
			t.Errorf("got  %s\nwant %s", got, file)
		}
		on := terminal.Screen{Width: 80, Now: c.e.Date.Std().Add(3 * time.Minute)}
		if got, want := Message(c.e, on), `7. "fae" wants to run git push 3m ago - `+c.want+" 3m ago"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	expired := decided("", "")
	expired.Outcome = &view.Outcome{Status: view.StatusExpired, At: expired.Date}
	if got := Message(expired, terminal.Screen{}); !strings.HasSuffix(got, ` - ⏱ Expired at "2026-02-25T10:00:00.000Z"`) {
		t.Error(got)
	}
	opinion := decided(mailbox.Once, "")
	opinion.Outcome.Allowed = false
	if got := Message(opinion, terminal.Screen{}); !strings.Contains(got, "– Not allowed: only the agent's host can") {
		t.Error(got)
	}
}

func TestPreviewSaysWhatIsLeft(t *testing.T) {
	lines := plain(Added, "+", strings.Repeat("x\n", 9)+"x")
	if got, want := Preview(lines, terminal.Screen{Width: 40}, 3, "parley show 7"), "   +x\n   +x\n   +x\n   … 7 more lines: parley show 7"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := Preview(lines[:4], terminal.Screen{}, 3, "parley show 7"); strings.Contains(got, "more") {
		t.Errorf("%s hides one line", got)
	}
}

// TestTerminalSaysHowFormCame checks that a narrow terminal cuts neither a cause nor a step of a chain.
func TestTerminalSaysHowFormCame(t *testing.T) {
	now := time.Date(2026, 2, 25, 10, 0, 0, 0, time.UTC)
	e := view.Message{Type: "form", FromName: "fae", Description: "Which port is it, of all that there are?", Received: true, Date: capabilities.At(now), Steps: []view.ForwardStep{
		{ByName: "al\u202eice", Cause: events.Escalated, After: 14_400_000}, {ByName: "bob", Cause: events.Absent, Until: capabilities.At(now.Add(48 * time.Hour))}, {ByName: "ops", Cause: events.Member},
	}, ForwardedTo: []view.Forwarded{{Party: view.Party{Name: "cy"}, Cause: events.Absent, Until: capabilities.At(now.Add(time.Hour))}}}
	const want = `   escalated from "al\u{202e}ice" after 4h
   forwarded by "bob" (away until 27 Feb 10:00)
   forwarded to you as a member of "ops"
   forwarded to "cy" (you are away until 11:00)
   Which port is it, of all that there are?`
	if got := Whole(e, nil, terminal.Screen{Width: 40, Now: now}); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	const line = ` escalated from "al\u{202e}ice" after 4h, forwarded by "bob" (away until 2026-02-27T10:00:00.000Z), forwarded to you as a member of "ops", forwarded to "cy" (you are away until 2026-02-25T11:00:00.000Z) at `
	if got := Whole(e, nil, terminal.Screen{}); !strings.Contains(got, line) || strings.Count(got, "escalated") != 1 {
		t.Errorf("got\n%s\nwant\n%s", got, line)
	}
}
