package editor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/client"
)

// command is a command that the editor offers.
type command struct {
	Name        string       `json:"name"`
	Description string       `json:"description"`
	Input       *commandHint `json:"input,omitempty"`
}

type commandHint struct {
	Hint string `json:"hint"`
}

// commands returns the commands of prompts.
func commands() []command {
	return []command{
		{"inbox", "Ask again what waits for an answer", nil},
		{"answer", "Answer a form", &commandHint{"NUMBER FIELD=VALUE …"}},
		{"resolve", "Answer a request with a value that you hold", &commandHint{"NUMBER NAME"}},
		{"decline", "Decline a form or a call, with a reason", &commandHint{"NUMBER REASON"}},
		{"send", "Send a message to an agent", &commandHint{"AGENT TEXT"}},
	}
}

// prompt carries out a command, or sends a message to the session's agent and shows its output.
func (s *server) prompt(ctx context.Context, r acp.PromptRequest) (acp.PromptResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.session = r.SessionId
	s.prompts[r.SessionId] = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.prompts, r.SessionId)
	}()
	text := strings.TrimSpace(textOf(r.Prompt))
	word, rest, _ := strings.Cut(text, " ")
	var err error
	if name, isCommand := strings.CutPrefix(word, "/"); isCommand {
		err = s.command(ctx, r.SessionId, name, strings.TrimSpace(rest))
	} else {
		err = s.send(ctx, r.SessionId, s.Agent, text)
	}
	switch {
	case ctx.Err() != nil:
		return acp.PromptResponse{StopReason: acp.StopReasonCancelled}, nil
	case err != nil:
		s.say(r.SessionId, terminal.Visible(terminal.Message(err))+"\n")
	}
	return acp.PromptResponse{StopReason: acp.StopReasonEndTurn}, nil
}

// textOf returns the text of a prompt. A link stands as its address, and an embedded file in a block of its own.
func textOf(prompt []acp.ContentBlock) string {
	var b strings.Builder
	for _, block := range prompt {
		switch {
		case block.Text != nil:
			b.WriteString(block.Text.Text)
		case block.ResourceLink != nil:
			b.WriteString(block.ResourceLink.Uri)
		case block.Resource != nil && block.Resource.Resource.TextResourceContents != nil:
			r := block.Resource.Resource.TextResourceContents
			fmt.Fprintf(&b, "\n%s:\n%s\n", r.Uri, r.Text)
		}
	}
	return b.String()
}

// command carries out a command.
func (s *server) command(ctx context.Context, session acp.SessionId, name, rest string) error {
	first, more, _ := strings.Cut(rest, " ")
	more = strings.TrimSpace(more)
	switch name {
	case "inbox":
		s.askAgain(session)
		return nil
	case "answer":
		if s.keepsSecret(first) {
			return parley.Refuse(parley.NotPermitted, "%.80s asks for a secret, which an editor would keep", first).WithHint("parley answer %.80s", first)
		}
		texts, err := fieldTexts(more)
		if err != nil {
			return err
		}
		return s.settle(ctx, session, api.RespondForm.With(api.RespondFormRequest{FormRef: api.RefTo(first), Answer: parley.Answer{Texts: texts}}), first)
	case "resolve":
		return s.settle(ctx, session, api.Resolve.With(api.ResolveRequest{FormRef: api.RefTo(first), Name: more}), first)
	case "decline":
		return s.settle(ctx, session, api.DeclineForm.With(api.DeclineRequest{FormRef: api.RefTo(first), Reason: more}), first)
	case "send":
		return s.send(ctx, session, first, more)
	}
	return parley.Refuse(parley.InvalidArgument, "there is no command /%.80s", name)
}

// keepsSecret reports whether the message with a number asks for a secret.
func (s *server) keepsSecret(number string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, e := range s.waiting {
		if (strconv.FormatUint(n, 10) == number || e.MessageID.String() == number) && hasSecret(e) {
			return true
		}
	}
	return false
}

// fieldTexts reads FIELD=VALUE pairs. A value with spaces is in double quotes, as JSON.
func fieldTexts(text string) (texts []events.FieldText, err error) {
	for text = strings.TrimSpace(text); text != ""; text = strings.TrimSpace(text) {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return nil, parley.Refuse(parley.InvalidArgument, "%.80q is not FIELD=VALUE", text)
		}
		value := ""
		if strings.HasPrefix(rest, `"`) {
			dec := json.NewDecoder(strings.NewReader(rest))
			if err := dec.Decode(&value); err != nil {
				return nil, parley.Refuse(parley.InvalidArgument, "the value of %.80q is not in double quotes", name)
			}
			text = rest[dec.InputOffset():]
		} else {
			value, text, _ = strings.Cut(rest, " ")
		}
		texts = append(texts, events.FieldText{Name: name, Text: value})
	}
	return texts, nil
}

// settle ends a form by a command.
func (s *server) settle(ctx context.Context, session acp.SessionId, act api.Act, number string) error {
	if number == "" {
		return parley.Refuse(parley.InvalidArgument, "which form? give its number")
	}
	err := act(ctx, s.Node)
	if err == nil {
		s.say(session, "Done: "+terminal.Visible(number)+".\n")
	}
	return err
}

// askAgain asks all that waits, also what was left before.
func (s *server) askAgain(session acp.SessionId) {
	s.mu.Lock()
	clear(s.left)
	waiting := len(s.waiting)
	for _, e := range s.waiting {
		if q := s.open[e.MessageID]; q != nil {
			q.again = true
		}
		s.askLocked(e)
	}
	s.mu.Unlock()
	if waiting == 0 {
		s.say(session, "Nothing waits for an answer.\n")
	}
}

// send sends a message to an agent. It shows the output of its program until that has nothing more to do. If the turn
// is cancelled it ends the run.
func (s *server) send(ctx context.Context, session acp.SessionId, agent, text string) error {
	switch {
	case agent == "":
		return parley.Refuse(parley.InvalidArgument, "no agent is chosen").WithHint("/send AGENT TEXT, or start parley acp AGENT")
	case text == "":
		return parley.Refuse(parley.InvalidArgument, "the message is empty")
	}
	about, err := s.Node.Agent(ctx, agent)
	if err != nil {
		return err
	}
	agent = string(about.ID)
	_, at, err := s.Node.OutputTail(ctx, agent, 0)
	if err != nil {
		return err
	}
	sent, err := s.Node.Prompt(ctx, client.Prompt{Agent: agent, Text: text})
	if err != nil {
		return err
	}
	o := output{server: s, session: session, message: sent.Message, at: at}
	following, stop := context.WithCancel(ctx)
	var reading error
	done := make(chan struct{})
	go func() {
		defer close(done)
		reading = o.show(following, s.Node.FollowOutput(following, agent, at))
	}()
	status, final, err := s.finish(ctx, agent)
	stop()
	<-done
	if ctx.Err() != nil {
		return s.Node.Stop(context.WithoutCancel(ctx), agent)
	}
	if err = cmp.Or(err, ignoreEnd(following, reading)); err == nil {
		err = o.show(ctx, s.Node.Output(ctx, agent, o.at))
	}
	if err == nil && status == view.FinishError {
		s.say(session, "\n"+terminal.Visible(cmp.Or(final.Error, "the agent has failed"))+"\n")
	}
	return err
}

func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// finish waits until an agent has nothing more to do. A question of its own is no end: it is asked in the editor.
func (s *server) finish(ctx context.Context, agent string) (status string, final client.Agent, err error) {
	for {
		changed := s.changes()
		status, final, err = s.Node.WaitForAgent(ctx, agent)
		if err != nil || status != view.FinishPermission {
			return status, final, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return status, final, ctx.Err()
		}
	}
}

// output shows the output of a run in a session.
type output struct {
	*server
	session acp.SessionId
	message client.ID
	at      uint64
}

// show shows pieces of output.
func (o *output) show(_ context.Context, pieces func(yield func(client.Output, error) bool)) error {
	for piece, err := range pieces {
		if err != nil {
			return err
		}
		o.at = piece.Cursor
		if piece.Message != o.message {
			continue
		}
		switch piece.Stream {
		case "output":
			o.say(o.session, piece.Text)
		case "errors":
			o.chunk(o.session, "agent_thought_chunk", piece.Text)
		case "notice":
			o.notice(piece.Text)
		}
	}
	return nil
}

// notice shows a notice of an agent that speaks the same protocol.
func (o *output) notice(text string) {
	var n struct {
		Kind string `json:"sessionUpdate"`
		Text string `json:"text"`
	}
	if json.Unmarshal([]byte(text), &n) != nil {
		return
	}
	switch n.Kind {
	case "agent_thought_chunk":
		o.chunk(o.session, n.Kind, n.Text)
	case "tool_call", "tool_call_update", "plan":
		o.update(o.session, json.RawMessage(text))
	}
}
