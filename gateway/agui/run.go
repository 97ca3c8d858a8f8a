package agui

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/exchange"
	"parley/gateway/sanitize"
)

// run is one run of an agent.
type run struct {
	client Client
	stream *stream
	input  *input
	agent  string
}

// serve begins or resumes the run's exchange, and follows it until it ends or is interrupted.
func (r *run) serve(ctx context.Context) error {
	e, trouble, err := r.begin(ctx)
	if err != nil {
		return err
	}
	if trouble != nil && e.Question != nil {
		r.interrupt(e, trouble)
		return nil
	}
	for e, err := range exchange.Follow(ctx, r.client, e.ID()) {
		switch {
		case err != nil:
			return err
		case e.Ended():
			return r.finish(e)
		case e.Question != nil:
			r.interrupt(e, nil)
			return nil
		}
	}
	return nil
}

// begin returns the exchange of the run, after it was asked or its question answered. Trouble is the reason why the
// answer was not accepted: nothing has changed then.
func (r *run) begin(ctx context.Context) (e *exchange.Exchange, trouble, err error) {
	if len(r.input.Resume) == 0 {
		e, err = exchange.Begin(ctx, r.client, r.agent, "agui "+r.input.Thread+" "+r.input.Run, r.text())
		return e, nil, err
	}
	answer := r.input.Resume[0]
	id, reply, ok := parseInterrupt(answer.Interrupt)
	if !ok {
		return nil, nil, parley.Refuse(parley.InvalidArgument, "there is no interrupt %s", parley.Quoted(answer.Interrupt, 100))
	}
	if e, err = exchange.Find(ctx, r.client, id); err != nil {
		return nil, nil, err
	}
	if e.Question == nil || e.Question.MessageID.String() != reply.Form {
		return e, nil, r.checkRepeat(ctx, reply.Form)
	}
	switch answer.Status {
	case "cancelled":
		err = e.Decline(ctx, r.client, reply.Form, "the user declined to answer")
	case "resolved":
		switch payload := answer.Payload.(type) {
		case map[string]any:
			reply.Values = payload
		case string:
			reply.Text = payload
		default:
			err = parley.Refuse(parley.InvalidAnswer, "the payload of an answer is an object, or a text for a form with one field")
		}
		if err == nil {
			err = e.Answer(ctx, r.client, reply)
		}
	default:
		return nil, nil, parley.Refuse(parley.InvalidArgument, "the status of a resume is resolved or cancelled")
	}
	if code := parley.CodeOf(err); code == parley.InvalidAnswer || code == parley.Amended {
		trouble, err = err, nil
	}
	if err == nil {
		e, err = exchange.Find(ctx, r.client, id)
	}
	return e, trouble, err
}

// checkRepeat refuses an answer to a form that does not wait, unless the caller itself has settled it: a resume may be
// repeated.
func (r *run) checkRepeat(ctx context.Context, form string) error {
	m, err := api.GetMessage.Do(ctx, r.client, api.MessageRequest{FormRef: api.RefTo(form)})
	if err != nil {
		return err
	}
	if o := m.Outcome; o == nil || o.By.String() != r.client.Identity() {
		return parley.Refuse(parley.NoPendingInput, "the form %s does not wait for an answer of yours", parley.Quoted(form, 100))
	}
	return nil
}

// text returns the text of the last message of the user.
func (r *run) text() string {
	for _, m := range slices.Backward(r.input.Messages) {
		if m.Role != "user" {
			continue
		}
		var text string
		if json.Unmarshal(m.Content, &text) == nil {
			return text
		}
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		_ = json.Unmarshal(m.Content, &parts) // none: the exchange refuses an empty text
		var texts []string
		for _, p := range parts {
			if p.Type == "text" {
				texts = append(texts, p.Text)
			}
		}
		return strings.Join(texts, "\n\n")
	}
	return ""
}

// interruptOf returns the ID of an interrupt: the exchange, the form and its revision.
func interruptOf(e *exchange.Exchange) string {
	return e.ID() + "/" + e.Question.MessageID.String() + "/" + strconv.FormatUint(e.Question.AnswerRevision(), 10)
}

func parseInterrupt(s string) (id string, reply exchange.Reply, ok bool) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return "", reply, false
	}
	revision, err := strconv.ParseUint(parts[2], 10, 32)
	return parts[0], exchange.Reply{Form: parts[1], Revision: revision}, err == nil && revision > 0
}

// interrupt ends the run with the question of its exchange.
func (r *run) interrupt(e *exchange.Exchange, trouble error) {
	q := e.Question
	i := event{"id": interruptOf(e), "reason": Reason, "message": exchange.Words(q), "responseSchema": exchange.Schema(q.Fields)}
	if q.Deadline != 0 {
		i["expiresAt"] = q.Deadline
	}
	if trouble != nil {
		t := parley.AsError(trouble)
		text := "That was not accepted: " + t.Message
		for _, name := range slices.Sorted(maps.Keys(t.Fields)) {
			text += "\n" + name + ": " + t.Fields[name]
		}
		i["message"] = sanitize.Lines(text) + "\n\n" + exchange.Words(q)
	}
	r.finished(event{"outcome": event{"type": "interrupt", "interrupts": []event{i}}})
}

// finish ends the run with the outcome of its exchange.
func (r *run) finish(e *exchange.Exchange) error {
	o := e.Form.Outcome
	switch o.Status {
	case view.StatusAnswered:
		if text := sanitize.Lines(o.Text(exchange.AnswerField)); text != "" && e.Form.Sent {
			r.stream.send(event{"type": "TEXT_MESSAGE_START", "messageId": e.ID(), "role": "assistant"})
			r.stream.send(event{"type": "TEXT_MESSAGE_CONTENT", "messageId": e.ID(), "delta": text})
			r.stream.send(event{"type": "TEXT_MESSAGE_END", "messageId": e.ID()})
		}
		values, err := json.Marshal(o.Values)
		if err != nil {
			return err
		}
		r.finished(event{"outcome": event{"type": "success"}, "result": json.RawMessage(sanitize.JSON(values))})
	case view.StatusDeclined:
		return parley.Refuse(parley.Declined, "the agent declined: %s", o.Note)
	case view.StatusExpired:
		return parley.Refuse(parley.Expired, "nobody answered in time")
	default:
		r.finished(event{"outcome": event{"type": "cancelled"}})
	}
	return nil
}

func (r *run) finished(e event) {
	e["type"], e["threadId"], e["runId"] = "RUN_FINISHED", r.input.Thread, r.input.Run
	r.stream.send(e)
}
