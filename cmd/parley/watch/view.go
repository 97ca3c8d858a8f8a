package watch

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"parley"
	"parley/actors/view"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/queue"
	"parley/mailbox"
)

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView("")
	v.AltScreen = true
	if m.height == 0 {
		return v
	}
	lines := []string{m.header()}
	switch {
	case m.helps:
		lines = append(lines, helpIn(m.screen.Width)...)
		for len(lines) < m.height-1 {
			lines = append(lines, "")
		}
		lines = append(lines[:m.height-1], m.screen.Paint(terminal.Faint, "any key goes back"))
		v.SetContent(strings.Join(lines, "\n"))
		return v
	case !m.whole:
		lines = append(lines, m.drawList()...)
		decides, _ := m.decides()
		lines = append(lines, decides...)
		lines = append(lines, m.screen.Paint(terminal.Faint, strings.Repeat("─", m.screen.Width)))
	}
	lines = append(lines, m.item()...)
	lines = append(lines, m.footer()...)
	v.SetContent(strings.Join(lines, "\n"))
	return v
}

// help has the keys.
var help = []string{
	"",
	"  a         allow once, answer    A         always, by a rule",
	"  d         deny, with a reason   e         edit the command in $EDITOR",
	"  m         allow, and more within limits",
	"  r         ask back, or reply    s         snooze",
	"  c         be on it, or no more, where others may answer too",
	"",
	"  j k       next, previous        enter     the whole message, and back",
	"  x         select                J K       select and go on",
	"  space b   a screen on, back     g G       first, last",
	"  /         search                f         show calls, changes, questions, mail",
	"  ?         keys                  q         quit",
	"",
	"  What is of high risk is allowed in two steps: a, and a again.",
	"  Keys decide once all of a call was on the screen, and 0.7 s after it appeared.",
}

// helpIn returns the keys for a width: on a narrow terminal one a line, and no more than these.
func helpIn(width int) (lines []string) {
	if width >= 80 {
		return help
	}
	const indent, keys, second = 2, 8, 34 // cells before the keys, of them, and before the second column
	narrow := func(line []rune) {
		lines = append(lines, strings.TrimRight(string(line[:keys])+string(line[keys+indent:]), " "))
	}
	for _, line := range help {
		letters := []rune(line)
		switch hasSecond := len(letters) > second && letters[second-1] == ' ' && letters[second-2] == ' ' && letters[second] != ' '; {
		case line == "" || strings.HasSuffix(line, "."):
		case hasSecond:
			narrow(letters[indent:second])
			narrow(letters[second:])
		default:
			narrow(letters[indent:])
		}
	}
	return lines
}

// header returns the line above the list: what needs the person, what the list leaves out, and whether the node is away.
func (m *model) header() string {
	text := m.screen.Paint(terminal.Strong, "Parley") + " · "
	switch need, words := m.counts(); {
	case need == 0:
		text += "nothing needs you"
	default:
		text += m.screen.Paint(terminal.Waiting, fmt.Sprintf("%d need you", need))
		if need == 1 {
			text = strings.Replace(text, "1 need you", "1 needs you", 1)
		}
		if words != "" {
			text += " · " + words
		}
	}
	if m.only != everything {
		text += " · only " + m.only.String()
	}
	if m.query != "" {
		text += " · with " + terminal.Quoted(m.query)
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
		if lines = m.broken(show.Line{Kind: show.Risk, Text: fmt.Sprintf("decides %d selected: %s", len(rows), text)}); len(lines) > room {
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

// drawList returns the part of the list around the selected message, with the headings of the sections.
func (m *model) drawList() []string {
	if len(m.order) == 0 {
		if m.only != everything || m.query != "" {
			return []string{"nothing like that: f and / change what is shown"}
		}
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
		lines = append(lines, mark+m.line(m.order[i], narrow))
	}
	return lines
}

// item returns the part of the selected message that is in view, and empty lines below it.
func (m *model) item() []string {
	height := m.itemHeight()
	var all []string
	if e := m.selected(); e != nil {
		if m.edited != nil {
			e = &m.edited.call
		}
		all = m.wrapped(*e)
	}
	m.scroll = min(max(m.scroll, 0), max(len(all)-height, 0))
	lines := all[m.scroll:]
	if m.below = 0; len(lines) > height {
		m.below = len(lines) - height + 1
		lines = append(slices.Clone(lines[:height-1]), m.screen.Paint(terminal.Faint, fmt.Sprintf("… %d more lines: page down, enter", m.below)))
	} else if m.edited != nil {
		m.seen[callOf(m.edited.call)] = true
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
	from := terminal.Visible(m.nameOf(e.From, e.Sender()))
	if e.IsSecondVote() {
		add(show.Line{Kind: show.Risk, Text: "! " + secondWords(&e)})
	}
	for _, l := range m.said[e.MessageID] {
		add(l)
	}
	switch {
	case e.Type != string(events.Approval):
		add(show.Line{Kind: show.Command, Text: fmt.Sprintf("%d. from %s", e.Number, from)})
		for _, l := range show.Lines(e) {
			add(l)
		}
	default:
		wants := fmt.Sprintf("%d. %s wants to %s (%s)", e.Number, from, show.Wants(e), terminal.Visible(e.Title))
		if m.edited != nil {
			wants = fmt.Sprintf("%d. Edited command, in place of what %s asked for", e.Number, from)
		}
		add(show.Line{Kind: show.Command, Text: wants})
		lines = append(lines, sharedLines(m, e)...)
	}
	for _, l := range show.Passed(e, m.screen) {
		add(l)
	}
	if e.Outcome != nil {
		lines = append(lines, "", m.screen.Fit(show.Settled(show.Decided(e, m.nameOf), m.screen)))
	}
	return lines
}

// sharedLines returns all lines of the calls of a row.
func sharedLines(m *model, e view.Message) (lines []string) {
	same := m.same[e.Number]
	if len(same) < 2 || m.edited != nil {
		return m.callLines(e)
	}
	add := func(l show.Line) { lines = append(lines, m.broken(l)...) }
	all := messagesOf(m.items, same)
	if m.rows[e.Number].Fold == queue.Identical {
		add(show.Line{Kind: show.Note, Text: fmt.Sprintf("%d × identical: %s", len(same), strings.Trim(fmt.Sprint(same), "[]"))})
		for _, l := range show.Others(e, all) {
			add(l)
		}
		return append(lines, m.callLines(e)...)
	}
	add(show.Line{Kind: show.Note, Text: fmt.Sprintf("%d alike, decided together: %s", len(same), strings.Trim(fmt.Sprint(same), "[]"))})
	for _, o := range all {
		add(show.Line{Kind: show.Key, Text: fmt.Sprintf("%d.", o.Number)})
		for _, l := range show.CallLines(o) {
			if o.Number == e.Number || l.Kind != show.Folder {
				add(l)
			}
		}
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

// drawnCall is a call on a screen of a width, by callOf: an edited call is another than the one asked for.
type drawnCall struct {
	call  string
	width int
	lines []string
}

// callLines returns all lines of an approval's call. It keeps those of the last one. A long call takes a tenth of a
// second, and is drawn again on each key.
func (m *model) callLines(e view.Message) []string {
	if m.drawn.call != callOf(e) || m.drawn.width != m.screen.Width {
		m.drawn = drawnCall{call: callOf(e), width: m.screen.Width}
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
			past := ""
			if i < len(p.past) {
				past = p.past[i]
			}
			lines = append(lines, terminal.Wrap(fmt.Sprintf("  %d. %s%s", i+1, terminal.Visible(c.Words), past), m.screen.Width)...)
		}
		lines = append(lines, terminal.Wrap(terminal.Visible(p.says), m.screen.Width)...)
		text := terminal.Visible(p.text)
		if p.secret {
			text = strings.Repeat("•", terminal.Clusters(p.text))
		}
		label := p.label
		if p.about.Number != noNumber {
			label = fmt.Sprintf("%d. %s", p.about.Number, p.label)
		}
		return append(lines, m.screen.Fit(label+":"), m.screen.Fit("> "+text+"▏"), m.screen.Fit(m.screen.Paint(terminal.Faint, "enter sends, esc goes back")))
	}
	return []string{m.screen.Fit(m.state), m.screen.Fit(m.screen.Paint(terminal.Faint, fitKeys(keysOf(m), m.screen.Width)))}
}

// fitKeys leaves out the last keys that a screen has no room for, but not those that show all and quit.
func fitKeys(keys string, cells int) string {
	parts := strings.Split(keys, " · ")
	for len(parts) > 2 && ansi.StringWidth(strings.Join(parts, " · ")) > cells {
		parts = slices.Delete(parts, len(parts)-3, len(parts)-2)
	}
	return strings.Join(parts, " · ")
}

// keysOf returns what keys do now, what is likeliest first.
func keysOf(m *model) string {
	keys := "jk move · enter whole · ? keys · q quit"
	if m.whole {
		keys = "jk move · enter list · ? keys · q quit"
	}
	e := m.selected()
	switch {
	case e == nil:
		return keys
	case m.held != 0:
		return "just shown, keys decide in a moment · " + keys
	case m.edited != nil:
		return "a allow edited command · e edit again · esc drop the changes · " + keys
	}
	if e.AnswerNeeded || e.Type == "message" {
		keys = "s snooze · " + keys
	}
	if words := map[string]string{"claim": "c be on it · ", "release": "c not be on it · ", "take-over": "c take it over · "}[e.ClaimVerb()]; words != "" {
		keys = words + keys
	}
	switch {
	case e.IsSecondVote():
		return keys
	case e.AnswerNeeded && e.Type == string(events.Approval):
		return callKeys(m, *e) + keys
	case e.AnswerNeeded:
		return "a answer · r ask · d decline · " + keys
	case e.Type == "message":
		return "r reply · " + keys
	}
	return keys
}

// asks returns what a question about a form does.
func asks(e view.Message) string {
	if e.Held {
		return "deny and ask"
	}
	return "ask"
}

// callKeys returns what keys do with a call.
func callKeys(m *model, e view.Message) string {
	targets := m.targets(e)
	_, high := m.worst(targets)
	rest, always := "d deny · r "+asks(e)+" · ", "A always … · "
	if slices.ContainsFunc(targets, func(o view.Message) bool { return !o.AsksSame(&targets[0]) }) {
		always = "" // a rule is for one call
	}
	if !m.whole {
		rest += "x select · "
	}
	switch unseen := m.unseen(targets); {
	case unseen != nil && callOf(*unseen) == callOf(e):
		return fmt.Sprintf("a shows %d more lines, then allows · ", m.below) + rest
	case unseen != nil:
		return "a shows the selected calls, then allows · " + rest
	case isArmed(m, targets):
		return "a allows it now · " + rest
	case high:
		return "a allow, in two steps · " + rest
	case mailbox.IsEditable(e.Fields) && len(targets) == 1:
		return "a allow · " + always + "m more · e edit · " + rest
	}
	return "a allow · " + always + rest
}
