package watch

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"

	"parley"
	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox"
)

// maxEdited bounds an edited command, in bytes.
const maxEdited = 64 << 10

// edited is the result of the person's editor.
type edited struct {
	about view.Message // as it was shown
	text  string
	err   error
}

// editable returns the text of a call that a person edits: its command, or the whole input.
func editable(p *parley.Permission) (text string, isCommand bool) {
	var in struct{ Command *string }
	if json.Unmarshal([]byte(p.Input), &in) == nil && in.Command != nil && strings.Count(p.Input, `"command"`) == 1 {
		return *in.Command, true
	}
	return p.Input, false
}

// edit opens the person's editor with the text of a call.
func edit(m *model, e view.Message) tea.Cmd {
	switch {
	case !mailbox.IsEditable(e.Fields):
		m.state = "this agent takes no edited command: deny it with what to do instead"
		return nil
	case len(m.same[m.rowOf(e.Number)]) > 1:
		m.state = "only one call is edited: this row has several"
		return nil
	}
	text, _ := editable(e.Permission)
	file, err := os.CreateTemp("", "parley-command-*.sh") // of mode 0600
	if err == nil {
		_, err = file.WriteString(text + "\n")
		if closed := file.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		m.state = terminal.Visible(err.Error())
		return nil
	}
	words := strings.Fields(editorOf(os.Getenv))
	c := exec.CommandContext(m.ctx, words[0], append(words[1:], file.Name())...)
	return tea.ExecProcess(c, func(err error) tea.Msg {
		defer os.Remove(file.Name()) //nolint:errcheck // in the folder for temporary files
		got := edited{about: e, err: err}
		if err == nil {
			got.text, got.err = readEdited(file.Name())
		}
		return got
	})
}

// readEdited reads what the person's editor has written.
func readEdited(name string) (text string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b, err := terminal.Read(f, "the edited text", maxEdited)
	return string(b), err
}

// editorOf returns the command of the person's editor.
func editorOf(env func(string) string) string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if command := strings.TrimSpace(env(name)); command != "" {
			return command
		}
	}
	return "vi"
}

// takeEdited shows the edited call, with its risks found anew. Nothing is allowed until a key does that.
func takeEdited(m *model, got edited) tea.Cmd {
	e, text := got.about, strings.TrimSuffix(got.text, "\n")
	now := m.items[e.Number]
	was, isCommand := editable(e.Permission)
	switch {
	case got.err != nil:
		m.state = "nothing was changed: " + terminal.Visible(got.err.Error())
	case strings.TrimSpace(text) == "":
		m.state = "nothing was changed: the edited text is empty. d denies the call"
	case text == was:
		m.state = "nothing was changed"
	case now == nil || !now.AnswerNeeded || now.Digest != e.Digest:
		m.state = "the call has ended meanwhile: nothing was changed"
	default:
		input := text
		if isCommand {
			var err error
			if input, err = withCommand(e.Permission.Input, text); err != nil {
				m.state = "nothing was changed: " + terminal.Visible(err.Error())
				return nil
			}
		} else if !json.Valid([]byte(text)) {
			m.state = "nothing was changed: the edited input is no JSON"
			return nil
		}
		changed := *e.Permission
		changed.Input, changed.Offers = input, nil
		e.Permission, e.Digest = &changed, changed.Digest()
		m.edited = &editedCall{asked: got.about, call: e}
		m.scroll = 0
		return m.hold()
	}
	return nil
}

// editedCall is a call as the person has changed it, which is shown in place of the one asked for.
type editedCall struct {
	asked view.Message
	call  view.Message // with the edited input
}

// withCommand returns an input in which a member "command" is another text. All else of it stays as it is.
func withCommand(input, command string) (string, error) {
	dec := json.NewDecoder(strings.NewReader(input))
	if _, err := dec.Token(); err != nil {
		return "", err
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return "", err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return "", err
		}
		if key != "command" {
			continue
		}
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(command); err != nil {
			return "", err
		}
		end := int(dec.InputOffset())
		return input[:end-len(value)] + strings.TrimSuffix(text.String(), "\n") + input[end:], nil
	}
	return "", parley.Refuse(parley.InvalidArgument, "the input has no command")
}

// allowEdited allows the edited call once. The answer names the call that was asked for and has the input that was shown.
func allowEdited(m *model, c *editedCall) tea.Cmd {
	m.edited = nil
	e := c.asked
	texts := []events.FieldText{{Name: "decision", Text: mailbox.Once}, {Name: "input", Text: c.call.Permission.Input}}
	return m.call(e, "respond_form", "✓ Edited command allowed once", true, api.RespondFormRequest{FormRef: refTo(e.MessageID), Answer: parley.Answer{Digest: e.Digest, Revision: e.AnswerRevision(), Texts: texts}})
}
