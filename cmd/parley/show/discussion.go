package show

import (
	"fmt"
	"strings"

	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway/people"
)

// Discussion returns what was asked back about a form and replied, as a search has found it or failed: each message behind its author and
// number. Further lines of a text are indented, so that none looks like the beginning of another message or of the call below. There are
// none where nothing was said.
func Discussion(e *view.Message, found view.Found, err error) (lines []Line) {
	for _, m := range found.Discussion(e) {
		by := fmt.Sprintf("%s (#%d): ", Sender(&m), m.Number)
		if m.Sent && !m.Received {
			by = fmt.Sprintf("%s (#%d): ", people.You, m.Number)
		}
		for i, line := range strings.Split(strings.TrimSpace(m.Text), "\n") {
			if i > 0 {
				by = "      "
			}
			lines = append(lines, Line{Says, by + spread(line)})
		}
		for _, f := range m.Files {
			lines = append(lines, Line{Note, "      with the file " + terminal.Quoted(f.Name)})
		}
	}
	switch {
	case err != nil:
		lines = append(lines, Line{Note, "what was asked about it cannot be shown: " + terminal.Visible(terminal.Message(err))})
	case found.Behind > 0:
		lines = append(lines, Line{Note, "what was said last is not here yet: show it again in a moment"})
	}
	if len(lines) > 0 {
		lines = append([]Line{{Note, "asked about before:"}}, lines...)
	}
	return lines
}
