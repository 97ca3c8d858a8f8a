package interview

import (
	"strings"
	"unicode/utf8"

	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/textarea"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"parley/cmd/parley/terminal"
)

// typed is a field in which text is typed. A key removes or passes a whole character as a person sees it. The library's
// fields take a code point at a time, which leaves half of a joined emoji in the text. They do not tell where their cursor
// is. So a mirror gets the same keys, and tells it.
type typed struct {
	huh.Field
	text   *string
	mirror mirror
}

// mirror is the input that a library's field has inside.
type mirror interface {
	update(tea.Msg)
	reset(text string)
	resize(width int)
	text() string
	around() (before, after string) // the cursor, in its line
}

// Update implements huh.Model.
func (t *typed) Update(msg tea.Msg) (huh.Model, tea.Cmd) {
	pressed, isKey := msg.(tea.KeyPressMsg)
	if !isKey {
		return t, t.feed(msg)
	}
	var all []tea.Cmd
	for range t.times(pressed) {
		all = append(all, t.feed(msg))
	}
	for range utf8.UTFMax * len(*t.text) { // up and down may end within a character
		if before, after := t.mirror.around(); before == "" || after == "" || terminal.Clusters(before)+terminal.Clusters(after) == terminal.Clusters(before+after) {
			break
		}
		all = append(all, t.feed(tea.KeyPressMsg{Code: tea.KeyLeft}))
	}
	return t, tea.Batch(all...)
}

// times returns how often the field needs a key for one character.
func (t *typed) times(pressed tea.KeyPressMsg) int {
	keys := textinput.DefaultKeyMap() // those of a text area are the same
	before, after := t.mirror.around()
	switch {
	case key.Matches(pressed, keys.DeleteCharacterBackward, keys.CharacterBackward):
		return max(utf8.RuneCountInString(terminal.LastCluster(before)), 1)
	case key.Matches(pressed, keys.DeleteCharacterForward, keys.CharacterForward):
		return max(utf8.RuneCountInString(terminal.FirstCluster(after)), 1)
	}
	return 1
}

// feed gives the field and the mirror a message.
func (t *typed) feed(msg tea.Msg) tea.Cmd {
	_, cmd := t.Field.Update(msg) // it returns itself
	t.mirror.update(msg)
	if t.mirror.text() != *t.text { // the text came from elsewhere, such as an editor: the cursor is at its end
		t.mirror.reset(*t.text)
	}
	return cmd
}

// WithWidth implements huh.Field.
func (t *typed) WithWidth(width int) huh.Field {
	t.Field.WithWidth(width)
	t.mirror.resize(width - huh.ThemeCharm(false).Focused.Base.GetHorizontalFrameSize())
	return t
}

// lineMirror is the mirror of a field of one line.
type lineMirror struct{ textinput.Model }

func newLineMirror(text string) *lineMirror {
	m := &lineMirror{textinput.New()}
	m.SetValue(text)
	m.Focus()
	return m
}

func (m *lineMirror) update(msg tea.Msg) { m.Model, _ = m.Update(msg) }

func (m *lineMirror) reset(text string) {
	m.SetValue(text)
	m.CursorEnd()
}

func (m *lineMirror) resize(int)   {} // up and down do not move in it
func (m *lineMirror) text() string { return m.Value() }

func (m *lineMirror) around() (before, after string) { return cut(m.Value(), m.Position()) }

// areaMirror is the mirror of a field of several lines.
type areaMirror struct{ textarea.Model }

func newAreaMirror(text string) *areaMirror {
	m := &areaMirror{textarea.New()}
	m.ShowLineNumbers, m.Prompt = false, ""
	m.KeyMap.InsertNewline.SetKeys(huh.NewDefaultKeyMap().Text.NewLine.Keys()...)
	m.SetValue(text)
	m.Focus()
	return m
}

func (m *areaMirror) update(msg tea.Msg) { m.Model, _ = m.Update(msg) }
func (m *areaMirror) reset(text string)  { m.SetValue(text) }
func (m *areaMirror) resize(width int)   { m.SetWidth(width) }
func (m *areaMirror) text() string       { return m.Value() }

func (m *areaMirror) around() (before, after string) {
	lines := strings.Split(m.Value(), "\n")
	return cut(lines[min(m.Line(), len(lines)-1)], m.Column())
}

// cut divides a text behind so many code points.
func cut(text string, at int) (before, after string) {
	points := []rune(text)
	at = min(max(at, 0), len(points))
	return string(points[:at]), string(points[at:])
}
