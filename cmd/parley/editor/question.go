package editor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/mcp"
	"parley/gateway/sanitize"
	"parley/mailbox"
	"parley/mailbox/form"
)

// formType is the type of a message with a form.
const formType = "form"

// question is a message that the editor is asked about.
type question struct {
	cancel   context.CancelFunc
	answered bool // in the editor
	again    bool // it is asked for again, so it is not left
	settled  bool // wherever
	outcome  *view.Outcome
}

// end withdraws the question, which was settled. The caller holds the server's lock.
func (q *question) end(outcome *view.Outcome) {
	q.settled, q.outcome = true, outcome
	if !q.answered {
		q.cancel()
	}
}

// askLocked asks a message in the newest session, unless it is asked already. The caller holds the lock.
func (s *server) askLocked(e view.Message) {
	if s.open[e.MessageID] != nil || s.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	q := &question{cancel: cancel}
	s.open[e.MessageID] = q
	session, elicits := s.session, s.elicits
	s.work.Go(func() {
		defer cancel()
		err := s.ask(ctx, session, elicits, e)
		s.mu.Lock()
		delete(s.open, e.MessageID)
		switch {
		case q.settled || q.answered && err == nil:
		case q.again && err == nil:
			s.askLocked(e)
		default:
			s.left[e.MessageID] = true
		}
		s.mu.Unlock()
		switch {
		case s.ctx.Err() != nil:
		case q.settled && (!q.answered || err != nil):
			s.closeCall(session, e, q.outcome)
		case err != nil:
			s.say(session, fmt.Sprintf("\n%d was not settled: %s\n", e.Number, terminal.Visible(parley.AsError(err).Message)))
		}
	})
}

// ask asks a message, and settles it by the response.
func (s *server) ask(ctx context.Context, session acp.SessionId, elicits bool, e view.Message) error {
	if e.Type == string(events.Approval) {
		return s.askPermission(ctx, session, e)
	}
	if options, ok := choicesOf(e); ok && !e.Passkey {
		return s.askChoice(ctx, session, e, options)
	}
	schema, why := mcp.Elicitation(e.Fields)
	if e.Type == formType && elicits && schema != nil && !e.Passkey {
		return s.elicit(ctx, session, e, schema, "")
	}
	if why == "" {
		why = "the editor shows no forms"
	}
	text := fmt.Sprintf("\n**%d. %s** asks:\n\n%s\n\n", e.Number, terminal.Visible(show.Sender(&e)), fenced(append(show.Lines(e), show.Passed(e, terminal.Screen{})...)))
	switch {
	case e.Passkey:
		text += fmt.Sprintf("It needs a passkey: answer it on the page (`parley open`); or `/decline %d REASON`.\n", e.Number)
	case e.Type == string(events.Request):
		text += fmt.Sprintf("Answer with `/resolve %d NAME`, or `/decline %d REASON`.\n", e.Number, e.Number)
	case hasSecret(e):
		text += fmt.Sprintf("It asks for a secret. Answer with `parley answer %d` in a terminal, or on the page; or `/decline %d REASON`.\n", e.Number, e.Number)
	default:
		text += fmt.Sprintf("Answer with `/answer %d FIELD=VALUE …`, or `/decline %d REASON` (%s).\n", e.Number, e.Number, terminal.Visible(why))
	}
	s.say(session, text)
	return nil
}

// hasSecret reports whether a form asks for a secret. None passes through an editor, which keeps what is typed.
func hasSecret(e view.Message) bool {
	return slices.ContainsFunc(e.Fields, func(f events.Field) bool { return form.ControlOf(&f) == form.Secret })
}

// settle settles a question by the person's response, and shows in the editor that it was. The question is not withdrawn
// meanwhile.
func settle[Req any](s *server, session acp.SessionId, e view.Message, status string, by api.Op[Req, view.Outcome], r Req) error {
	s.mu.Lock()
	if q := s.open[e.MessageID]; q != nil {
		q.answered = true
	}
	s.mu.Unlock()
	settled, err := by.Do(s.ctx, s.Node, r)
	if err != nil || status == "" {
		return err
	}
	update := map[string]any{"sessionUpdate": "tool_call_update", "toolCallId": e.MessageID.String(), "status": status}
	waits := map[view.FormStatus]string{view.StatusVoted: "Your vote counts. The call waits for others.", view.StatusAnswering: "The decision is kept, and goes to the agent's node."}[settled.Status]
	if waits != "" {
		update["status"], update["content"] = "in_progress", []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(waits))}
	}
	s.update(session, update)
	return nil
}

// permission is a request for permission.
type permission struct {
	SessionID acp.SessionId          `json:"sessionId"`
	ToolCall  map[string]any         `json:"toolCall"`
	Options   []acp.PermissionOption `json:"options"`
}

// request asks for permission. It returns the chosen option, "" if none was.
func (s *server) request(ctx context.Context, p permission) (string, error) {
	r, err := acp.SendRequest[acp.RequestPermissionResponse](s.conn, ctx, acp.ClientMethodSessionRequestPermission, p)
	if err != nil || r.Outcome.Selected == nil {
		return "", err
	}
	return string(r.Outcome.Selected.OptionId), nil
}

// askPermission asks about the call of an approval. Each standing rule that it offers is an option. One that needs a passkey can be denied
// alone, since an editor cannot sign.
func (s *server) askPermission(ctx context.Context, session acp.SessionId, e view.Message) error {
	offers := mailbox.OffersOf(e.Permission)
	var options []acp.PermissionOption
	if e.Takes(mailbox.Once) && !e.Passkey {
		options = append(options, acp.PermissionOption{Kind: acp.PermissionOptionKindAllowOnce, Name: "Allow once", OptionId: mailbox.Once})
	}
	if !e.Takes(mailbox.Always) || show.IsHigh(e) || e.Passkey {
		offers = nil
	}
	for _, o := range offers {
		options = append(options, acp.PermissionOption{
			Kind: acp.PermissionOptionKindAllowAlways, Name: "Always: " + terminal.Visible(o.Words), OptionId: acp.PermissionOptionId(mailbox.Always + " " + o.ID),
		})
	}
	options = append(options, acp.PermissionOption{Kind: acp.PermissionOptionKindRejectOnce, Name: "Deny", OptionId: mailbox.Deny})
	if len(offers) > 0 {
		options = append(options, acp.PermissionOption{Kind: acp.PermissionOptionKindRejectAlways, Name: "Never: " + terminal.Visible(offers[0].Words), OptionId: mailbox.Never})
	}
	chosen, err := s.request(ctx, permission{session, toolCall(e), options})
	if err != nil || chosen == "" {
		return err
	}
	if !slices.ContainsFunc(options, func(o acp.PermissionOption) bool { return string(o.OptionId) == chosen }) {
		return parley.Refuse(parley.InvalidArgument, "%.80q is no option", chosen)
	}
	answer := map[string]capabilities.Value{}
	if id, isRule := strings.CutPrefix(chosen, mailbox.Always+" "); isRule {
		chosen = mailbox.Always
		if id != offers[0].ID { // which needs no field
			answer["rule"] = capabilities.String(id)
		}
	}
	answer["decision"] = capabilities.String(chosen)
	status := "completed"
	if chosen == mailbox.Deny || chosen == mailbox.Never {
		status = "failed"
	}
	return settle(s, session, e, status, api.RespondForm, api.RespondFormRequest{FormRef: api.RefTo(e.MessageID.String()), Answer: parley.Answer{Digest: e.Digest, Revision: e.AnswerRevision(), Values: answer}})
}

// toolCall describes the call of an approval. All of it is shown as content.
func toolCall(e view.Message) map[string]any {
	lines := show.CallLines(e)
	if e.Passkey {
		lines = append(lines, show.Line{Text: "It needs a passkey: allow it on the page (parley open)."})
	}
	call := map[string]any{
		"toolCallId": e.MessageID.String(), "status": "pending", "kind": kindOf(e),
		"title":   terminal.Visible(show.Sender(&e)) + " wants to " + show.Wants(e),
		"content": []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(fenced(lines)))},
	}
	if input := []byte(e.Description); json.Valid(input) {
		call["rawInput"] = json.RawMessage(sanitize.JSON(input))
	}
	return call
}

// kindOf returns the kind of the call of an approval.
func kindOf(e view.Message) acp.ToolKind {
	verb, _, _ := strings.Cut(show.Wants(e), " ")
	switch verb {
	case "run":
		return acp.ToolKindExecute
	case "edit", "write":
		return acp.ToolKindEdit
	case "read":
		return acp.ToolKindRead
	}
	return acp.ToolKindOther
}

// fenced returns lines as a block of Markdown that none of them ends.
func fenced(lines []show.Line) string {
	var b strings.Builder
	fence := "```"
	for _, l := range lines {
		for strings.Contains(l.Text, fence) {
			fence += "`"
		}
		switch l.Kind {
		case show.Added:
			b.WriteString("+ ")
		case show.Removed:
			b.WriteString("- ")
		}
		b.WriteString(l.Text + "\n")
	}
	return fence + "\n" + b.String() + fence
}

// closeCall shows in the editor that a question was settled elsewhere.
func (s *server) closeCall(session acp.SessionId, e view.Message, outcome *view.Outcome) {
	e.Outcome = outcome
	text := "settled elsewhere"
	if outcome != nil {
		text = show.Settled(e, terminal.Screen{})
	}
	if _, isChoice := choicesOf(e); e.Type != string(events.Approval) && !isChoice {
		s.say(session, fmt.Sprintf("\n%d: %s\n", e.Number, text))
		return
	}
	s.update(session, map[string]any{
		"sessionUpdate": "tool_call_update", "toolCallId": e.MessageID.String(), "status": "failed",
		"content": []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(text))},
	})
}

// maxChoices bounds the options of a form that is shown as a request for permission.
const maxChoices = 8

// declineOption is the option that declines a form.
const declineOption = "decline"

// choicesOf returns the options of a form with one choice among a few. All editors can show it.
func choicesOf(e view.Message) ([]events.Option, bool) {
	if e.Type != formType || len(e.Fields) != 1 {
		return nil, false
	}
	f := e.Fields[0]
	if form.ControlOf(&f) != form.Choice {
		return nil, false
	}
	return f.Options, len(f.Options) > 0 && len(f.Options) <= maxChoices
}

// askChoice asks a form with one choice as a request for permission.
func (s *server) askChoice(ctx context.Context, session acp.SessionId, e view.Message, choices []events.Option) error {
	var options []acp.PermissionOption
	for i, o := range choices {
		name := cmp.Or(o.Label, o.Value)
		if o.Description != "" {
			name += " - " + o.Description
		}
		options = append(options, acp.PermissionOption{
			Kind: acp.PermissionOptionKindAllowOnce, Name: terminal.Visible(name), OptionId: acp.PermissionOptionId(strconv.Itoa(i)),
		})
	}
	options = append(options, acp.PermissionOption{Kind: acp.PermissionOptionKindRejectOnce, Name: "Decline", OptionId: declineOption})
	chosen, err := s.request(ctx, permission{session, map[string]any{
		"toolCallId": e.MessageID.String(), "status": "pending", "kind": acp.ToolKindOther, "title": show.Gist(e),
		"content": []acp.ToolCallContent{acp.ToolContent(acp.TextBlock(fenced(show.Lines(e))))},
	}, options})
	if err != nil || chosen == "" {
		return err
	}
	form := api.RefTo(e.MessageID.String())
	if chosen == declineOption {
		return settle(s, session, e, "failed", api.DeclineForm, api.DeclineRequest{FormRef: form, Revision: e.AnswerRevision()})
	}
	i, err := strconv.Atoi(chosen)
	if err != nil || i < 0 || i >= len(choices) {
		return parley.Refuse(parley.InvalidArgument, "%.80q is no option", chosen)
	}
	answer := map[string]capabilities.Value{e.Fields[0].Name: capabilities.String(choices[i].Value)}
	return settle(s, session, e, "completed", api.RespondForm, api.RespondFormRequest{FormRef: form, Answer: parley.Answer{Revision: e.AnswerRevision(), Values: answer}})
}

// elicited is the editor's response to an elicitation.
type elicited struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content"`
}

// maxRounds bounds how often one form is shown after invalid answers.
const maxRounds = 5

// elicit asks a form as an elicitation. An answer that the node refuses is asked for again, with the reason.
func (s *server) elicit(ctx context.Context, session acp.SessionId, e view.Message, schema any, wrong string) error {
	form := api.RefTo(e.MessageID.String())
	for round := 1; ; round++ {
		message := terminal.Visible(show.Sender(&e)) + ": " + sanitize.Lines(cmp.Or(e.Description, e.Title))
		if wrong != "" {
			message = "That was not accepted: " + sanitize.Lines(wrong) + "\n\n" + message
		}
		r, err := acp.SendRequest[elicited](s.conn, ctx, acp.ClientMethodElicitationCreate, map[string]any{
			"sessionId": session, "mode": "form", "message": message, "requestedSchema": schema,
		})
		if err != nil {
			return err
		}
		switch r.Action {
		case "decline":
			return settle(s, session, e, "", api.DeclineForm, api.DeclineRequest{FormRef: form, Revision: e.AnswerRevision()})
		case "accept":
			answer, err := mcp.ElicitationAnswer(e.Fields, r.Content)
			if err == nil {
				err = settle(s, session, e, "", api.RespondForm, api.RespondFormRequest{FormRef: form, Answer: parley.Answer{Revision: e.AnswerRevision(), Values: answer}})
			}
			if parley.CodeOf(err) != parley.InvalidAnswer || round == maxRounds {
				return err
			}
			wrong = mcp.FieldErrors(err)
		default:
			return nil // it stays open
		}
	}
}
