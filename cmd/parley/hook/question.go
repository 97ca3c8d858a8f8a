package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox/form"
)

// askTool is the tool by which Claude Code asks a person. PreToolUse answers it with the tool's input and the answers.
const askTool = "AskUserQuestion"

// question is one question of the tool.
type question struct {
	Text    string   `json:"question"`
	Header  string   `json:"header"`
	Options []option `json:"options"`
	Several bool     `json:"multiSelect"`
}

type option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// readQuestions reads the tool's input. It refuses questions whose answers Claude Code would not read as they were
// meant: it joins several choices with commas, and knows a question by its text.
func readQuestions(input json.RawMessage) ([]question, error) {
	var in struct {
		Questions []question `json:"questions"`
	}
	if json.Unmarshal(input, &in) != nil || len(in.Questions) == 0 {
		return nil, parley.Refuse(parley.InvalidArgument, "the questions cannot be read")
	}
	texts := map[string]bool{}
	for _, q := range in.Questions {
		labels := map[string]bool{}
		for _, o := range q.Options {
			if q.Several && strings.Contains(o.Label, ",") {
				return nil, parley.Refuse(parley.InvalidArgument, "one of several choices has a comma, by which the choices are told apart")
			}
			labels[o.Label] = true
		}
		if texts[q.Text] || len(labels) != len(q.Options) || len(labels) == 0 || labels[""] || q.Text == "" {
			return nil, parley.Refuse(parley.InvalidArgument, "questions or choices are empty, or the same")
		}
		texts[q.Text] = true
	}
	return in.Questions, nil
}

func fieldName(i int) string { return fmt.Sprintf("q%d", i+1) }

// fieldsOf returns the fields for questions: a choice, and a text for an answer in other words.
func fieldsOf(questions []question) parley.Fields {
	var fields []events.Field
	for i, q := range questions {
		f := events.Field{Name: fieldName(i), Label: q.Text, Type: events.Radio, Required: true}
		if q.Several {
			f.Type = events.Multiselect
		}
		named := false
		for _, o := range q.Options {
			f.Options = append(f.Options, events.Option{Value: o.Label, Description: o.Description})
			named = named || o.Label == form.OtherOption
		}
		if !named {
			f.Options = append(f.Options, events.Option{Value: form.OtherOption, Description: "in words of your own"})
		}
		about := q.Header
		if about == "" {
			about = q.Text
		}
		fields = append(fields, f, events.Field{
			Name: fieldName(i) + form.OtherSuffix, Label: form.OtherOption + ": " + about, Type: events.Text, Help: "The answer in words of your own, or a remark on the choice",
		})
	}
	return fields
}

// answersOf returns the answers of a form by the texts of the questions, as Claude Code reads them.
func answersOf(questions []question, o view.Outcome) map[string]string {
	answers := map[string]string{}
	values, _ := o.Values.AsRecord()
	for i, q := range questions {
		var chosen []string
		if list, several := values[fieldName(i)].AsList(); several {
			for _, v := range list {
				label, _ := v.AsString()
				chosen = append(chosen, label)
			}
		} else {
			chosen = append(chosen, o.Text(fieldName(i)))
		}
		other := o.Text(fieldName(i) + form.OtherSuffix)
		switch at := slices.Index(chosen, form.OtherOption); {
		case other == "":
		case at >= 0:
			chosen[at] = other
		case q.Several:
			chosen = append(chosen, other)
		default:
			chosen[0] += " (" + other + ")"
		}
		answers[q.Text] = strings.Join(chosen, ", ")
	}
	return answers
}

// answerQuestions asks the host the questions of a call. The decision has the tool's input with the answers. It has a
// reason where nobody answers: the agent shows its own questions then.
func answerQuestions(ctx context.Context, agent Agent, call toolCall, o Options) Decision {
	questions, err := readQuestions(call.input)
	if err != nil {
		return undecided("%s", parley.AsError(err).Message)
	}
	var headers []string
	for _, q := range questions {
		if q.Header != "" {
			headers = append(headers, q.Header)
		}
	}
	title := agent.Title + " asks"
	outcome, d := ask(ctx, agent, call, o, api.FormRequest{Form: parley.Form{Title: title, Description: title + about(headers), Fields: fieldsOf(questions)}})
	if outcome.Status != view.StatusAnswered {
		return d
	}
	var input map[string]json.RawMessage
	if err := json.Unmarshal(call.input, &input); err != nil {
		return undecided("the questions cannot be read")
	}
	if input["answers"], err = json.Marshal(answersOf(questions, outcome)); err != nil {
		return undecided("the answers cannot be written: %v", err)
	}
	updated, err := json.Marshal(input)
	if err != nil {
		return undecided("the answers cannot be written: %v", err)
	}
	return Decision{Decided: true, Allowed: true, Reason: "answered in Parley", Input: string(updated)}
}

// ask sends a form to the host, if somebody follows the inbox, and waits for its outcome. The decision is that of a form
// that is not answered.
func ask(ctx context.Context, agent Agent, call toolCall, o Options, req api.FormRequest) (view.Outcome, Decision) {
	r := newRequest(agent, call, o)
	defer r.client.Close()
	id, release, err := r.sendForm(ctx, req)
	if err != nil {
		return view.Outcome{}, r.failed(ctx, err)
	}
	defer release()
	outcome, d := r.awaitOutcome(ctx, id)
	if outcome.Status == view.StatusDeclined {
		d = Decision{Decided: true, Reason: withReason("declined in Parley", outcome.Note)}
	}
	return outcome, d
}

// sendForm sends a form to the host, if somebody follows the inbox. It is held until the caller calls release.
func (r *request) sendForm(ctx context.Context, req api.FormRequest) (id capabilities.ID, release func(), err error) {
	if err := r.awaitFollower(ctx); err != nil {
		return id, nil, err
	}
	req.Acting, req.To, req.Key = r.as, "@host", r.call.key(r.agent)
	if r.options.Timeout > 0 {
		req.Deadline = capabilities.At(time.Now().Add(r.options.Timeout + formOutlives))
	}
	asked, release, err := r.ask(ctx, api.HeldAsk{Question: &req})
	return asked.Form, release, err
}

// about returns what a form with these headers asks about.
func about(headers []string) string {
	if len(headers) == 0 {
		return ""
	}
	return " about " + strings.Join(headers, ", ")
}

// errNobody reports that nobody is there who would answer a form.
var errNobody = parley.Refuse(parley.Timeout, "nobody follows the inbox")

// awaitFollower looks more than once for a follower of the host's inbox.
func (r *request) awaitFollower(ctx context.Context) error {
	for attempt := 1; !r.options.WaitAnyway; attempt++ {
		attended, err := r.options.attended(ctx)
		if err != nil || attended {
			return err
		}
		if attempt >= maxAttempts {
			return errNobody
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(attemptEvery):
		}
	}
	return nil
}
