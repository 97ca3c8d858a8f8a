package hook

import (
	"context"
	"encoding/json"

	"parley"
	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/internal/elicitation"
)

const maxServerName = 80 // characters of a server's name in a title

// answerElicitation asks the host for the values that an MCP server wants. The decision has the values. It has a reason
// where nobody answers: the agent shows its own dialog then, or cancels.
func answerElicitation(ctx context.Context, agent Agent, call toolCall, o Options) Decision {
	want := call.wanted
	if want.Mode != "" && want.Mode != "form" {
		return undecided("only a form can be answered, and %s asks for the mode %.20q", terminal.Visible(want.Server), want.Mode)
	}
	var schema elicitation.Schema
	if err := json.Unmarshal(want.Schema, &schema); err != nil {
		return undecided("the values that are asked for cannot be read: %v", err)
	}
	fields, err := schema.Fields()
	if err != nil {
		return undecided("the values that are asked for cannot be read: %v", err)
	}
	server := []rune(terminal.Visible(want.Server))
	form := api.FormRequest{Form: parley.Form{
		Title:       string(server[:min(len(server), maxServerName)]) + " asks through " + agent.Title,
		Description: want.Message,
		Fields:      fields,
	}}
	outcome, d := ask(ctx, agent, call, o, form)
	if outcome.Status != view.StatusAnswered {
		return d
	}
	values, err := outcome.Values.MarshalJSON()
	if err != nil {
		return undecided("the values cannot be written: %v", err)
	}
	given, err := elicitation.Content(values)
	if err != nil {
		return undecided("%v", err)
	}
	content, err := json.Marshal(given)
	if err != nil {
		return undecided("the values cannot be written: %v", err)
	}
	return Decision{Decided: true, Allowed: true, Reason: "answered in Parley", Input: string(content)}
}
