package show

import (
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/queue"
)

// TestRowOfSimilarCallsSaysWhatDiffers shows similar calls as one line: the files that are changed, or the first and the last of what differs, as on
// the page.
func TestRowOfSimilarCallsSaysWhatDiffers(t *testing.T) {
	for want, inputs := range map[string][]string{
		"  a.ts, b.ts, c.ts  ":           {`Edit {"file_path":"/srv/shop/app/a.ts","old_string":"1","new_string":"2"}`, `Write {"file_path":"/srv/shop/app/b.ts","content":"x"}`, `Write {"file_path":"/srv/shop/lib/c.ts","content":"x"}`},
		"  go test ./p0 … ./p2 -v  ":     {`Bash {"command":"go test ./p0 -v"}`, `Bash {"command":"go test ./p1 -v"}`, `Bash {"command":"go test ./p2 -v"}`},
		"  a, b, c +2 files            ": {`Write {"file_path":"/srv/shop/a","content":"x"}`, `Write {"file_path":"/srv/shop/b","content":"x"}`, `Write {"file_path":"/srv/shop/c","content":"x"}`, `Write {"file_path":"/srv/shop/d","content":"x"}`, `Write {"file_path":"/srv/shop/e","content":"x"}`},
	} {
		var all []view.Message
		for i, input := range inputs {
			tool, doc, _ := strings.Cut(input, " ")
			m := view.Message{Number: uint64(i), Type: string(events.Approval), AnswerNeeded: true, Permission: &parley.Permission{Tool: tool, Input: doc, Folder: "/srv/shop"}}
			m.MessageID.ULID[15], m.From.ULID[0] = byte(i+1), 1
			all = append(all, m)
		}
		var r queue.Readings
		rows := queue.Rank(all, &r, 0)
		if len(rows) != 1 {
			t.Fatalf("%d rows of %q", len(rows), inputs)
		}
		line := Row(all, rows[0], func(capabilities.ID, string) string { return "fae" }, &r, terminal.Screen{Width: 80})
		if !strings.Contains(line, want) || !strings.Contains(line, "× alike") {
			t.Errorf("want %q in %q", want, line)
		}
	}
}
