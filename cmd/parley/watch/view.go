package watch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/events"
)

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if m.height == 0 {
		return v
	}
	lines := []string{m.header()}
	if !m.whole {
		lines = append(lines, m.list()...)
		decides, _ := m.decides()
		lines = append(lines, decides...)
		lines = append(lines, m.screen.Paint(terminal.Faint, strings.Repeat("─", m.screen.Width)))
	}
	lines = append(lines, m.item()...)
	lines = append(lines, m.footer()...)
	v.SetContent(strings.Join(lines, "\n"))
	return v
}

// header returns the line above the list: how many wait, and whether the node is away.
func (m *model) header() string {
	waiting := 0
	for _, e := range m.items {
		if waits(e) {
			waiting++
		}
	}
	text := m.screen.Paint(terminal.Strong, "Parley") + " · "
	switch waiting {
	case 0:
		text += "nothing waits for you"
	default:
		text += m.screen.Paint(terminal.Waiting, fmt.Sprintf("%d waiting for you", waiting))
	}
	if m.away != "" {
		text += " · " + m.screen.Paint(terminal.Wrong, "cut off: "+terminal.Visible(m.away)+"; trying again …")
	}
	return m.screen.Fit(text)
}

// listHeight returns the lines of the list, and itemHeight those of the selected message.
func (m *model) listHeight() int {
	decides, _ := m.decides()
	return min(max(m.height/3-len(decides), 3-len(decides), 1), max(len(m.order), 1))
}

func (m *model) itemHeight() int {
	left := m.height - 1 - len(m.footer())
	if !m.whole {
		decides, _ := m.decides()
		left -= m.listHeight() + len(decides) + 1
	}
	return max(left, 1)
}

// maxNamed bounds what a marked call is called, in characters.
const maxNamed = 60

// decides returns the lines that name the marked calls, which keys decide in place of the selected one. It reports false if
// the screen has no room to name each.
func (m *model) decides() (lines []string, named bool) {
	rows := m.marks()
	if len(rows) == 0 {
		return nil, true
	}
	text, room := "", max(m.height/4, 2)
	for i, row := range rows {
		calls := m.callsOf(row)
		if len(calls) == 0 {
			continue
		}
		numbers := make([]string, len(calls))
		for k, c := range calls {
			numbers[k] = strconv.FormatUint(c.Number, 10)
		}
		if text != "" {
			text += ", "
		}
		text += strings.Join(numbers, " ") + " " + nameOf(calls[0])
		if lines = m.broken(show.Line{Kind: show.Risk, Text: fmt.Sprintf("decides %d marked: %s", len(rows), text)}); len(lines) > room {
			return append(lines[:room-1], m.screen.Fit(fmt.Sprintf("… and %d more", len(rows)-i))), false
		}
	}
	return lines, true
}

// nameOf returns what a call is called in a list of several. One that has the comma of the list is quoted.
func nameOf(e view.Message) string {
	name := parley.Cut(strings.TrimPrefix(show.Wants(e), "run "), maxNamed)
	if strings.Contains(name, ",") {
		return terminal.Quoted(name)
	}
	return name
}

// list returns the part of the list around the selected message.
func (m *model) list() []string {
	if len(m.order) == 0 {
		return []string{"no messages"}
	}
	m.shown = m.same
	height := m.listHeight()
	at := slices.Index(m.order, m.chosen)
	first := min(max(at-height/2, 0), len(m.order)-height)
	narrow := m.screen
	narrow.Width -= 2
	lines := make([]string, 0, height)
	for i := first; i < first+height; i++ {
		mark := "  "
		if i == at {
			mark = m.screen.Paint(terminal.Strong, "▸ ")
		}
		if m.marked[m.order[i]] {
			mark = m.screen.Paint(terminal.Strong, "✓ ")
			if i == at {
				mark = m.screen.Paint(terminal.Strong, "▸✓")
			}
		}
		lines = append(lines, mark+show.Repeated(*m.items[m.order[i]], len(m.same[m.order[i]]), narrow))
	}
	return lines
}

// item returns the part of the selected message that is in view, and empty lines below it.
func (m *model) item() []string {
	height := m.itemHeight()
	var all []string
	if e := m.selected(); e != nil {
		all = m.wrapped(*e)
	}
	m.scroll = min(max(m.scroll, 0), max(len(all)-height, 0))
	lines := all[m.scroll:]
	if m.below = 0; len(lines) > height {
		m.below = len(lines) - height + 1
		lines = append(slices.Clone(lines[:height-1]), m.screen.Paint(terminal.Faint, fmt.Sprintf("… %d more lines: page down, enter", m.below)))
	} else if e := m.selected(); e != nil {
		m.seen[callOf(*e)] = true
		for _, same := range messagesOf(m.items, m.same[e.Number]) { // what is said of them is shown too
			m.seen[callOf(same)] = true
		}
	}
	for len(lines) < height {
		lines = append(lines, "")
	}
	return lines
}

// wrapped returns all lines of a message. Long ones are broken, since a line that is cut would hide what it allows.
func (m *model) wrapped(e view.Message) []string {
	var lines []string
	add := func(l show.Line) { lines = append(lines, m.broken(l)...) }
	from := show.Party(e.FromName, e.From)
	if e.IsSecondVote() {
		add(show.Line{Kind: show.Risk, Text: "! " + m.secondWords(&e)})
	}
	switch {
	case e.Type != string(events.Approval):
		add(show.Line{Kind: show.Command, Text: fmt.Sprintf("%d. from %s", e.Number, from)})
		for _, l := range show.Lines(e) {
			add(l)
		}
	default:
		add(show.Line{Kind: show.Command, Text: fmt.Sprintf("%d. %s wants to %s (%s)", e.Number, from, show.Wants(e), terminal.Visible(e.Title))})
		if same := m.same[e.Number]; len(same) > 1 {
			add(show.Line{Kind: show.Note, Text: fmt.Sprintf("%d the same: %s", len(same), strings.Trim(fmt.Sprint(same), "[]"))})
			for _, l := range show.Others(e, messagesOf(m.items, same)) {
				add(l)
			}
		}
		lines = append(lines, m.callLines(e)...)
	}
	for _, l := range show.Passed(e, m.screen) {
		add(l)
	}
	if e.Outcome != nil {
		lines = append(lines, "", m.screen.Fit(show.Settled(e, m.screen)))
	}
	return lines
}

// messagesOf returns the messages with some numbers.
func messagesOf(items map[uint64]*view.Message, numbers []uint64) []view.Message {
	all := make([]view.Message, len(numbers))
	for i, n := range numbers {
		all[i] = *items[n]
	}
	return all
}

// broken returns a line in as many as the screen's width needs.
func (m *model) broken(l show.Line) []string { return l.Broken(m.screen, m.screen.Width) }

// drawnCall is the call of an approval on a screen of a width. The call never changes.
type drawnCall struct {
	form  capabilities.ID
	width int
	lines []string
}

// callLines returns all lines of an approval's call. It keeps those of the last one. A long call takes a tenth of a
// second, and is drawn again on each key.
func (m *model) callLines(e view.Message) []string {
	if m.drawn.form != e.MessageID || m.drawn.width != m.screen.Width {
		m.drawn = drawnCall{form: e.MessageID, width: m.screen.Width}
		for _, l := range show.CallLines(e) {
			m.drawn.lines = append(m.drawn.lines, m.broken(l)...)
		}
	}
	return m.drawn.lines
}

// footer returns what is typed, or the last action and the keys.
func (m *model) footer() []string {
	if p := m.prompt; p != nil {
		var lines []string
		for i, c := range p.choices {
			lines = append(lines, terminal.Wrap(fmt.Sprintf("  %d. %s", i+1, terminal.Visible(c.Words)), m.screen.Width)...)
		}
		text := terminal.Visible(p.text)
		if p.secret {
			text = strings.Repeat("•", terminal.Clusters(p.text))
		}
		return append(lines, m.screen.Fit(fmt.Sprintf("%d. %s:", p.about.Number, p.label)), m.screen.Fit("> "+text+"▏"), m.screen.Fit(m.screen.Paint(terminal.Faint, "enter sends, esc goes back")))
	}
	keys := "↑↓ move · enter whole · q quit"
	if m.whole {
		keys = "↑↓ move · enter list · q quit"
	}
	e := m.selected()
	if e != nil && m.held == 0 {
		switch {
		case e.IsSecondVote() && !m.again[e.MessageID]:
			keys = fmt.Sprintf("v vote as %s too · ", show.Party(m.as, capabilities.ID{})) + keys
		case e.AnswerNeeded && e.Type == string(events.Approval):
			if !m.whole {
				keys = "space mark · " + keys
			}
			switch unseen := m.unseen(m.targets(*e)); {
			case unseen == nil:
				keys = "a allow · A always … · d deny · " + keys
			case callOf(*unseen) == callOf(*e):
				keys = fmt.Sprintf("a shows %d more lines, then allows · d deny · ", m.below) + keys
			default:
				keys = "a shows the marked calls, then allows · d deny · " + keys
			}
		case e.AnswerNeeded:
			keys = "r answer · d decline · " + keys
		case e.Type == "message":
			keys = "r reply · " + keys
		}
	}
	switch {
	case m.held != 0:
		keys = "just shown, keys decide in a moment · " + keys
	case e != nil && (e.AnswerNeeded || e.Type == "message"):
		keys = "s snooze · " + keys
	}
	return []string{m.screen.Fit(m.state), m.screen.Fit(m.screen.Paint(terminal.Faint, keys))}
}
