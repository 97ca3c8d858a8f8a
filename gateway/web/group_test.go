package web

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/queue"
)

// calls returns open approvals of one agent in a folder: pairs of a tool and an input.
func calls(of ...[2]string) (all []view.Message) {
	for i, c := range of {
		m := view.Message{Number: uint64(i), Type: string(events.Approval), AnswerNeeded: true, Permission: &parley.Permission{Tool: c[0], Input: c[1], Folder: "/srv/shop"}}
		m.MessageID.ULID[0] = byte(i + 1)
		m.Digest = m.Permission.Digest()
		all = append(all, m)
	}
	return all
}

func bash(commands ...string) (all [][2]string) {
	for _, c := range commands {
		in, err := json.Marshal(map[string]string{"command": c})
		if err != nil {
			panic(err)
		}
		all = append(all, [2]string{"Bash", string(in)})
	}
	return all
}

func tables(inputs ...string) (all [][2]string) {
	for _, in := range inputs {
		all = append(all, [2]string{"mcp__postgres__migrate", in})
	}
	return all
}

// TestGroupSaysOnceWhatIsTheSame reads similar calls: title, what is the same, the columns and their cells, and what is marked.
func TestGroupSaysOnceWhatIsTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		calls                    [][2]string
		title, same, cells, look string
	}{
		"commands":                  {bash("go test ./a -v", "go test ./b -v", "go test ./c ./d -v"), "Run go test 3 times", "command=go test … -v", "command: ./a|./b|./c ./d", "||"},
		"nothing shared":            {bash("ls", "pwd", "id"), "Run 3 commands", "", "command: ls|pwd|id", "||"},
		"blanks that differ":        {bash(`echo "a  b" c`, `echo "a b" c`, `echo d c`), "Run 3 commands", "", `command: echo "a  b" c|echo "a b" c|echo d c`, "||"},
		"arguments":                 {tables(`{"table":"a","to":"v2"}`, `{"table":"b","to":"v2"}`, `{"to":"v2"}`), "Call postgres · migrate 3 times", "to=v2", "table: a|b|none", "||"},
		"numbers":                   {tables(`{"table":"a","rows":9000}`, `{"table":"b","rows":3}`, `{"table":"c","rows":7}`), "Call postgres · migrate 3 times", "", "table: a|b|c; rows: 9000|3|7", "Far above the others||"},
		"the largest":               {tables(`{"rows":9}`, `{"rows":3}`, `{"rows":7}`), "Call postgres · migrate 3 times", "", "rows: 9|3|7", "Largest||"},
		"many columns":              {tables(`{"a":1,"b":1,"c":1,"d":1,"e":1}`, `{"a":2,"b":2,"c":2,"d":2,"e":2}`), "Call postgres · migrate 2 times", "", "whole", "|"},
		"a long value":              {tables(`{"sql":"`+strings.Repeat("x", 200)+`"}`, `{"sql":"y"}`), "Call postgres · migrate 2 times", "", "whole", "|"},
		"changes":                   {[][2]string{{"Write", `{"file_path":"/srv/shop/a","content":"1"}`}, {"Edit", `{"file_path":"/srv/shop/b","old_string":"1","new_string":"2"}`}}, "Make 2 changes", "", "whole", "|"},
		"what the agent says of it": {[][2]string{{"Bash", `{"command":"go vet a","description":"one"}`}, {"Bash", `{"command":"go vet b","description":"two"}`}}, "Run go vet 2 times", "command=go vet …", "command: a|b; says: “one”|“two”", "|"},
		"several lines":             {bash("ls\npwd", "ls\nid"), "Run 2 commands", "", "whole", "|"},
	} {
		g := newGroup(calls(c.calls...))
		var same, cells, look []string
		for _, v := range g.Same {
			same = append(same, v.Key+"="+v.Text)
		}
		for i, col := range g.Columns {
			var texts []string
			for _, m := range g.Members {
				texts = append(texts, map[bool]string{true: "none", false: m.Cells[i].Text}[m.Cells[i].Missing])
			}
			cells = append(cells, col.Name+": "+strings.Join(texts, "|"))
		}
		for _, m := range g.Members {
			look = append(look, m.Look)
			if len(g.Columns) == 0 && len(m.Blocks) == 0 {
				t.Errorf("%s: a member is not shown", name)
			}
		}
		if len(g.Columns) == 0 {
			cells = []string{"whole"}
		}
		got := []string{g.Title, strings.Join(same, "; "), strings.Join(cells, "; "), strings.Join(look, "|")[:len(c.look)]}
		if want := []string{c.title, c.same, c.cells, c.look}; !slices.Equal(got, want) {
			t.Errorf("%s:\n%q, want\n%q", name, got, want)
		}
	}
}

// TestGroupLeavesNothingOut shows calls of more lines than are drawn.
func TestGroupLeavesNothingOut(t *testing.T) {
	long := strings.Repeat("\n", maxInList/2-200) + "the end"
	in, err := json.Marshal(map[string]string{"file_path": "/srv/shop/a", "content": strings.Repeat("x\n", 10_010) + "the end"})
	if err != nil {
		t.Fatal(err)
	}
	g := newGroup(calls([2]string{"Write", string(in)}, [2]string{"Write", fmt.Sprintf(`{"file_path":"/srv/shop/b","content":%q}`, long)}))
	for i, m := range g.Members {
		text := ""
		for _, b := range m.Blocks {
			for _, l := range b.Lines {
				text += l.Text() + "\n"
			}
			for _, v := range b.Values {
				text += v.Text
			}
		}
		if !strings.Contains(text, "the end") {
			t.Errorf("call %d is not shown whole", i)
		}
	}
}

// TestLargeGroupsAreCut folds more calls than a page shows whole, and calls with large inputs.
func TestLargeGroupsAreCut(t *testing.T) {
	var of [][2]string
	for i := range 250 {
		of = append(of, bash(fmt.Sprintf("go test ./p%d", i))...)
	}
	of = append(of, bash("go test "+strings.Repeat("x", maxInList+1))...)
	for range 6 {
		of = append(of, bash("go test "+strings.Repeat("y", maxInList-100)+fmt.Sprint(len(of)))...)
	}
	all := calls(of...)
	row := queue.Row{Fold: queue.Similar}
	for i := range all {
		row.Members = append(row.Members, i)
	}
	seen := map[int]bool{}
	for _, part := range partsOf(all, row) {
		size := 0
		for _, i := range part {
			if seen[i] {
				t.Errorf("%d is in two rows", i)
			}
			seen[i], size = true, size+len(all[i].Permission.Input)
		}
		if len(part) > maxSimilar || len(part) > 1 && size > maxSimilarBytes {
			t.Errorf("a row of %d calls with %d bytes", len(part), size)
		}
	}
	if len(seen) != len(all) {
		t.Errorf("%d of %d calls are in rows", len(seen), len(all))
	}
}

// TestRuleOfGroupCoversEachCall offers for several calls only rules that all of them offer, and never that for the very call.
func TestRuleOfGroupCoversEachCall(t *testing.T) {
	exact := parley.Offer{ID: "call", Rule: events.Coverage{Kind: events.CoversCall, Folder: "/srv"}, Words: "this very call in /srv"}
	tests := parley.Offer{ID: "commands", Rule: events.Coverage{Kind: events.CoversCommands, Commands: []events.CommandPattern{{Words: []string{"go", "test"}}}}, Words: "go test"}
	vets := parley.Offer{ID: "commands", Rule: events.Coverage{Kind: events.CoversCommands, Commands: []events.CommandPattern{{Words: []string{"go", "vet"}}}}, Words: "go vet"}
	for name, c := range map[string]struct {
		offers [][]parley.Offer
		want   string
	}{
		"all offer it":           {[][]parley.Offer{{exact, tests}, {exact, tests}}, "commands"},
		"one offers another":     {[][]parley.Offer{{exact, tests}, {exact, vets}}, ""},
		"only the very calls":    {[][]parley.Offer{{exact}, {exact}}, ""},
		"one offers none at all": {[][]parley.Offer{{exact, tests}, nil}, ""},
	} {
		members := calls(bash("go test a", "go test b")...)
		for i := range members {
			members[i].Permission.Offers = c.offers[i]
		}
		a := newApproval(members[0])
		a.Rule = &widget{}
		for _, o := range c.offers[0] {
			a.Rule.Choices = append(a.Rule.Choices, choice{Value: o.ID, Label: o.Words})
		}
		a.onlyShared(members)
		var got []string
		if a.Rule != nil {
			for _, o := range a.Rule.Choices {
				got = append(got, o.Value)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
}
