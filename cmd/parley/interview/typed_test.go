package interview

import (
	"testing"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"parley/events"
)

// TestKeysTakeWholeCharacters types and removes characters of several code points.
func TestKeysTakeWholeCharacters(t *testing.T) {
	press := func(code rune) tea.Msg { return tea.KeyPressMsg{Code: code} }
	type step any
	for _, kind := range []events.FieldType{events.Text, events.Textarea, events.Secret} {
		for name, c := range map[string]struct {
			steps []step
			want  string
		}{
			"backspace":                 {[]step{"ok👩‍💻", tea.KeyBackspace}, "ok"},
			"backspace over a flag":     {[]step{"🇩🇪🇫🇷", tea.KeyBackspace}, "🇩🇪"},
			"backspace over an accent":  {[]step{"cafe\u0301", tea.KeyBackspace}, "caf"},
			"left and insert":           {[]step{"a👨‍👩‍👧", tea.KeyLeft, "x"}, "ax👨‍👩‍👧"},
			"left, right and insert":    {[]step{"👍🏽b", tea.KeyLeft, tea.KeyLeft, tea.KeyRight, "x"}, "👍🏽xb"},
			"delete":                    {[]step{"👩‍💻b", tea.KeyHome, tea.KeyDelete}, "b"},
			"backspace at the start":    {[]step{"👩‍💻", tea.KeyHome, tea.KeyBackspace, "a"}, "a👩‍💻"},
			"all of it":                 {[]step{"👩‍💻e\u0301", tea.KeyBackspace, tea.KeyBackspace, tea.KeyBackspace}, ""},
			"backspace over one letter": {[]step{"abc", tea.KeyBackspace}, "ab"},
		} {
			q := (&field{events.Field{Name: "a", Type: kind}}).question()
			q.widget.WithKeyMap(huh.NewDefaultKeyMap())
			q.widget.WithWidth(60)
			q.widget.Init()
			q.widget.Focus()
			for _, s := range c.steps {
				switch s := s.(type) {
				case string:
					q.widget.Update(tea.PasteMsg{Content: s})
				case rune:
					q.widget.Update(press(s))
				}
			}
			got := ""
			for _, said := range q.texts() {
				got = said.Text
			}
			if got != c.want {
				t.Errorf("%s, %s: %q, want %q", kind, name, got, c.want)
			}
		}
	}
}

// TestLinesKeepWholeCharacters moves up into a line with a joined emoji, where the column is within it.
func TestLinesKeepWholeCharacters(t *testing.T) {
	q := (&field{events.Field{Name: "a", Type: events.Textarea}}).question()
	q.widget.WithKeyMap(huh.NewDefaultKeyMap())
	q.widget.WithWidth(60)
	q.widget.Init()
	q.widget.Focus()
	q.widget.Update(tea.PasteMsg{Content: "👨‍👩‍👧‍👦\nab"})
	q.widget.Update(tea.KeyPressMsg{Code: tea.KeyUp})
	q.widget.Update(tea.PasteMsg{Content: "x"})
	if got := q.texts()[0].Text; got != "x👨‍👩‍👧‍👦\nab" && got != "👨‍👩‍👧‍👦x\nab" {
		t.Errorf("the emoji is torn: %q", got)
	}
}
