package queue

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/call/risk"
)

var now = capabilities.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))

func after(d time.Duration) capabilities.Time { return capabilities.At(now.Std().Add(d)) }

func id(n int) capabilities.ID {
	return capabilities.ID{ULID: [16]byte{byte(n >> 16), byte(n >> 8), byte(n)}}
}

var asked int

// ask returns an open approval of an agent for a command.
func ask(agent int, command string, change ...func(*view.Message)) view.Message {
	asked++
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	p := &parley.Permission{Tool: "Bash", Input: string(input), Folder: "/srv/shop"}
	m := view.Message{Number: uint64(asked), MessageID: id(asked), From: id(1_000_000 + agent), Type: string(events.Approval), Permission: p, AnswerNeeded: true, Date: after(time.Duration(asked) * time.Millisecond)}
	for _, c := range change {
		c(&m)
	}
	m.Digest = m.Permission.Digest()
	return m
}

func form(change ...func(*view.Message)) view.Message {
	m := ask(9, "")
	m.Type, m.Permission = "form", nil
	for _, c := range change {
		c(&m)
	}
	return m
}

func due(d time.Duration) func(*view.Message) {
	return func(m *view.Message) { m.Deadline = after(d) }
}

func tool(name, input string) func(*view.Message) {
	return func(m *view.Message) { m.Permission.Tool, m.Permission.Input = name, input }
}

func TestQueueIsRanked(t *testing.T) {
	all := []view.Message{
		form(),                                // 0 can wait
		ask(1, "ls a"),                        // 1 stopped, no risk
		ask(2, "rm x"),                        // 2 stopped, risk
		ask(3, "sudo ls"),                     // 3 stopped, high
		ask(4, "sudo id"),                     // 4 the same, later
		form(due(90 * time.Minute)),           // 5 due soon
		form(due(3 * time.Hour)),              // 6 can wait
		ask(5, "cat a", due(2*time.Minute)),   // 7 gives up soon
		ask(6, "cat b", due(9*time.Minute)),   // 8 not yet
		ask(7, "cat c", due(100*time.Minute)), // 9 a deadline for people
	}
	rows := Rank(all, &Readings{}, now)
	var order []int
	for _, r := range rows {
		order = append(order, r.Members...)
	}
	if want := []int{7, 5, 9, 3, 4, 2, 1, 8, 0, 6}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

func TestCallsFold(t *testing.T) {
	votes := func(m *view.Message) { m.Votes = &view.Votes{Need: 2} }
	other := func(m *view.Message) { m.Permission.Session = "Claude Code · app 2" }
	folder := func(m *view.Message) { m.Permission.Folder = "/srv/other" }
	for name, c := range map[string]struct {
		all  []view.Message
		want string // the sizes of the rows with their folds
	}{
		"two identical":             {[]view.Message{ask(1, "ls"), ask(1, "ls")}, "2 identical"},
		"two similar":               {[]view.Message{ask(1, "go test a"), ask(1, "go test b")}, "1, 1"},
		"three similar":             {[]view.Message{ask(1, "go test a"), ask(1, "go test b"), ask(1, "go test c")}, "3 similar"},
		"identical among similar":   {[]view.Message{ask(1, "go test a"), ask(1, "go test a"), ask(1, "go test c")}, "3 similar"},
		"other subcommands":         {[]view.Message{ask(1, "go test a"), ask(1, "go vet b"), ask(1, "go build c")}, "1, 1, 1"},
		"of two agents":             {[]view.Message{ask(1, "ls"), ask(2, "ls")}, "1, 1"},
		"of two sessions":           {[]view.Message{ask(1, "ls"), ask(1, "ls", other), ask(1, "ls", other)}, "1, 2 identical"},
		"similar, of two sessions":  {[]view.Message{ask(1, "go test a"), ask(1, "go test b"), ask(1, "go test c", other)}, "1, 1, 1"},
		"high risk":                 {[]view.Message{ask(1, "sudo a"), ask(1, "sudo b"), ask(1, "sudo c")}, "1, 1, 1"},
		"high risk, identical":      {[]view.Message{ask(1, "sudo a"), ask(1, "sudo a")}, "2 identical"},
		"other risk":                {[]view.Message{ask(1, "cat a"), ask(1, "cat b"), ask(1, "cat ../c")}, "1, 1, 1"},
		"other folders":             {[]view.Message{ask(1, "cat a"), ask(1, "cat b"), ask(1, "cat c", folder)}, "1, 1, 1"},
		"votes":                     {[]view.Message{ask(1, "ls", votes), ask(1, "ls", votes)}, "1, 1"},
		"forms":                     {[]view.Message{form(), form(), form()}, "1, 1, 1"},
		"no simple commands":        {[]view.Message{ask(1, "go test a && ls"), ask(1, "go test b && ls"), ask(1, "go test c && ls")}, "1, 1, 1"},
		"an MCP tool":               {[]view.Message{ask(1, "", tool("mcp__db__get", `{"a":1}`)), ask(1, "", tool("mcp__db__get", `{"a":2}`)), ask(1, "", tool("mcp__db__get", `{"a":3}`))}, "3 similar"},
		"changes":                   {[]view.Message{ask(1, "", tool("Write", `{"file_path":"a","content":""}`)), ask(1, "", tool("Write", `{"file_path":"b","content":""}`)), ask(1, "", tool("Edit", `{"file_path":"c","old_string":"a","new_string":"b"}`))}, "3 similar"},
		"due soon with other limit": {[]view.Message{ask(1, "go test a", due(time.Minute)), ask(1, "go test b", due(2*time.Minute)), ask(1, "go test c", due(time.Minute))}, "1, 1, 1"},
	} {
		var got []string
		seen := map[int]bool{}
		for _, r := range Rank(c.all, &Readings{}, now) {
			got = append(got, strings.TrimSpace(fmt.Sprint(len(r.Members), " ", map[Fold]string{Identical: "identical", Similar: "similar"}[r.Fold])))
			for _, m := range r.Members {
				if seen[m] {
					t.Errorf("%s: message %d is in two rows", name, m)
				}
				seen[m] = true
			}
		}
		if text := strings.Join(got, ", "); text != c.want || len(seen) != len(c.all) {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

func TestFoldHasTheWorstOfItsMembers(t *testing.T) {
	all := []view.Message{ask(1, "ls", due(5*time.Hour)), ask(1, "ls", due(30*time.Minute)), ask(1, "ls")}
	rows := Rank(all, &Readings{}, now)
	if len(rows) != 1 || rows[0].Limit != all[1].Deadline || rows[0].Since != all[0].Date || rows[0].Risk != risk.None || !rows[0].Stopped {
		t.Errorf("%+v", rows)
	}
}

// TestCallsAreReadOnce checks that many waiting calls, alike but for a digit, are read once each and not at each view.
func TestCallsAreReadOnce(t *testing.T) {
	var all []view.Message
	r := &Readings{}
	for n := range 3000 {
		all = append(all, ask(1, fmt.Sprintf("go test -run X%d ./a", n)))
		if n%500 == 0 {
			Rank(all, r, now)
		}
	}
	rows := Rank(all, r, now)
	if len(rows) != 1 || len(rows[0].Members) != 3000 {
		t.Errorf("%d rows", len(rows))
	}
	if r.read != 3000 {
		t.Errorf("%d calls were read", r.read)
	}
	Rank(all[:10], r, now)
	if r.read != 3000 {
		t.Errorf("%d calls were read", r.read)
	}
}

func TestDifferencesAreWords(t *testing.T) {
	for _, c := range []struct {
		texts         []string
		before, after string
		parts         []string
	}{
		{[]string{"go test ./a", "go test ./b"}, "go test", "", []string{"./a", "./b"}},
		{[]string{"cp a /srv", "cp b c /srv"}, "cp", "/srv", []string{"a", "b c"}},
		{[]string{"ls", "ls"}, "ls", "", []string{"", ""}},
		{[]string{"ls a", "ls"}, "ls", "", []string{"a", ""}},
		{[]string{"a x a", "a a"}, "a", "a", []string{"x", ""}},
		{nil, "", "", nil},
	} {
		before, parts, after := Differences(c.texts)
		if before != c.before || after != c.after || !slices.Equal(parts, c.parts) {
			t.Errorf("%q: %q %q %q", c.texts, before, parts, after)
		}
	}
}
