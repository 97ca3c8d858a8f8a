package show

import (
	"strings"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway/call/calltest"
)

func TestCallsAreShown(t *testing.T) {
	for _, c := range []struct{ tool, input, want string }{
		{"Bash", `{"command":"git push && ls","description":"Push"}`, "!|$ git push|  && ls|says: “Push”"},
		{"Edit", `{"file_path":"shop/a.go","old_string":"one\n\ttwo\nthree","new_string":"one\n\t2\nthree"}`, "shop/a.go| one|-    two|+    2| three"},
		{"MultiEdit", `{"file_path":"a.go","edits":[{"old_string":"x","new_string":"y"},{"old_string":"1","new_string":"2"}]}`, "a.go|-x|+y|…|-1|+2"},
		{"Write", `{"file_path":"n.txt","content":"a\nb\n"}`, "n.txt|+a|+b"},
		{"deploy", `{"to":"eu","long":"a\nb"}`, "!|to: eu|long:|  a|  b"},
		{"odd", "in /tmp\n$ ls", "!|input:|  in /tmp|  $ ls"},
		{"Bash", `{"command":"rm x","description":"List\n$ ls","timeout":1}`, "!|$ rm x|says: “List|       $ ls”|timeout: 1"},
		{"Edit", `{"file_path":"$ ls","old_string":"x","new_string":"y"}`, `"$ ls"|-x|+y`},
		{"send", `{"in /safe":"x","$ echo":"y","! deletes":"nothing","a b":1,"ok_1":2}`, `!|"in /safe": x|"$ echo": y|"! deletes": nothing|"a b": 1|ok_1: 2`},
		{"odd", `not JSON`, "!|input: not JSON"},
		{"x", "{\"text\":\"ls \u202e\\u001b[2J\"}", `!|text: ls \u{202e}\u{1b}[2J`},
		{"Write", `{"file_path":"/etc/x","content":"a"}`, "!|/etc/x|+a"},
	} {
		e := view.Message{Type: "approval", Permission: &parley.Permission{Tool: c.tool, Input: c.input, Folder: "/srv"}}
		var got []string
		for _, l := range CallLines(e) {
			if l.Kind == Risk {
				l.Text = l.Text[:1] // the words are those of gateway/call
			} else if l.Kind == Note && strings.HasPrefix(l.Text, "… Uses the network") {
				continue
			}
			got = append(got, l.Text)
		}
		if s := strings.Join(got, "|"); s != "in /srv|"+c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.input, s, c.want)
		}
	}
}

// TestLongCallEndsWithItsInput shows an edit whose lines are too many. What it adds is in the input alone.
func TestLongCallEndsWithItsInput(t *testing.T) {
	input := `{"file_path":"a","old_string":"` + strings.Repeat(`a\n`, 20_000) + `","new_string":"` + strings.Repeat(`b\n`, 20_000) + `"}`
	lines := CallLines(view.Message{Type: "approval", Permission: &parley.Permission{Tool: "Edit", Input: input}})
	note, last := lines[len(lines)-2], lines[len(lines)-1]
	if len(lines) > 11_000 || last.Text != "  "+input || note.Kind != Note || !strings.HasSuffix(note.Text, " more lines, which the whole input has:") {
		t.Errorf("%d lines, the last %.100q after %q", len(lines), last.Text, note.Text)
	}
}

// TestHostileCallsAreShown shows calls that hide what they do.
func TestHostileCallsAreShown(t *testing.T) {
	for _, c := range calltest.Hostile() {
		lines := CallLines(view.Message{Type: "approval", Permission: &parley.Permission{Tool: c.Tool, Input: c.Input, Folder: "/srv/shop"}})
		var all strings.Builder
		blank := 0
		for _, l := range lines {
			if strings.TrimSpace(l.Text) == "" {
				blank++
			}
			all.WriteString(l.Text + "\n")
		}
		for _, text := range append(c.Shows, "in /srv/shop") {
			if !strings.Contains(all.String(), text) {
				t.Errorf("%s: %q is not shown:\n%.2000s", c.Name, text, all.String())
			}
		}
		if forged := calltest.Forged(all.String(), ""); forged != "" {
			t.Errorf("%s: %q is shown as if Parley said it:\n%.2000s", c.Name, forged, all.String())
		}
		if terminal.Visible(all.String()) != strings.ReplaceAll(all.String(), "\n", `\n`) || blank > 2 || strings.Contains(all.String(), strings.Repeat(" ", 100)) {
			t.Errorf("%s: %d blank lines:\n%.2000s", c.Name, blank, all.String())
		}
	}
}

// TestBrokenLinesBeginWithNoWordsOfTheCaller shows a description that is as wide as the screen before it looks like a command.
func TestBrokenLinesBeginWithNoWordsOfTheCaller(t *testing.T) {
	e := view.Message{Type: "approval", Permission: &parley.Permission{Tool: "Bash", Input: `{"command":"rm -rf ~","description":"` + strings.Repeat("x", 33) + strings.Repeat("$ harmless"+strings.Repeat("y", 24), 3) + `"}`}}
	for _, text := range []string{
		Preview(CallLines(e), terminal.Screen{Width: 43}, 0, ""),
		Preview(CallLines(e), terminal.Screen{Width: 40}, 0, ""),
	} {
		if lines := strings.Split(text, "\n"); strings.Count(text, "harmless") < 2 || len(lines) < 6 {
			t.Errorf("not all is shown:\n%s", text)
		}
		if forged := calltest.Forged(text, "   "); forged != "" {
			t.Errorf("%q:\n%s", forged, text)
		}
	}
}
