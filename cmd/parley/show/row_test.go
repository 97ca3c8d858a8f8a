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
		line := Row(all, rows[0], func(capabilities.ID, string) string { return "fae" }, minName, &r, terminal.Screen{Width: 80})
		if !strings.Contains(line, want) || !strings.Contains(line, "× alike") {
			t.Errorf("want %q in %q", want, line)
		}
	}
}

// TestRowsKeepWhoAndRisk draws rows on terminals of 80 and 40 cells: what is asked is in one column, the ends of names stay, and on the narrow one the
// risk, rather than the time.
func TestRowsKeepWhoAndRisk(t *testing.T) {
	var all []view.Message
	for i, from := range []string{"payments-checkout-worker-1", "数据库迁移助手", "fae"} {
		m := view.Message{Number: uint64(10 + i), Type: string(events.Approval), AnswerNeeded: true, FromName: from, Date: 1, Permission: &parley.Permission{Tool: "Bash", Input: `{"command":"rm -rf build"}`, Folder: "/srv/shop"}}
		m.MessageID.ULID[15], m.From.ULID[0] = byte(i+1), byte(i+1)
		all = append(all, m)
	}
	name := func(_ capabilities.ID, pet string) string { return pet }
	for width, want := range map[int]string{
		80: "Agents are stopped on these\n10. paymen…-worker-1  rm -rf build                           Deletes files · now\n11. 数据库迁移助手    rm -rf build                           Deletes files · now\n12. fae               rm -rf build                           Deletes files · now",
		40: "Agents are stopped on these\n10. pay…er-1  rm -rf bui…  Deletes files\n11. 数…助手   rm -rf bui…  Deletes files\n12. fae       rm -rf bui…  Deletes files",
	} {
		got := strings.Join(List(all, name, terminal.Screen{Width: width, Now: time.Unix(0, 0)}), "\n")
		if got != want {
			t.Errorf("%d:\n%s\nwant\n%s", width, got, want)
		}
	}
}
