package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// tool is the function of a tool. It returns the structured content, or a complete result.
type tool func(context.Context, *call) (any, error)

// tools are all tools. Their descriptions are in tools.json.
func tools() map[string]tool {
	return map[string]tool{
		"ask_user": askUser, "send_form": sendForm, "await_answer": awaitAnswer,
		"read_mail": readMail, "wait_for_mail": waitForMail, "read_file": readFile, "list_inbox": listInbox, "search_mail": searchMail, "answer_form": answerForm, "decline_form": declineForm, "claim_form": claimForm, "cancel_form": cancelForm,
		"send_message": sendMessage, "acknowledge": acknowledge, "lease": askLease, "release": releaseLease, "list_leases": listLeases, "list_team": listTeam, "use_capability": useCapability,
		"list_topics": listTopics, "subscribe": subscribe, "post": post, "read_topic": readTopic, "list_agents": listAgents, "wait_for_agent": waitForAgent,
	}
}

// ToolNames returns the names of all tools, in no order.
func ToolNames() []string { return slices.Collect(maps.Keys(tools())) }

// operations has the operation of each tool, whose scope the agent needs.
var operations = map[string]string{
	"ask_user": "form", "send_form": "form", "await_answer": "await", "read_mail": "read_mail", "wait_for_mail": "read_mail", "read_file": "fetch_file", "list_inbox": "list_messages", "search_mail": "search", "answer_form": "respond_form",
	"decline_form": "decline_form", "claim_form": "claim_form", "cancel_form": "cancel_form", "send_message": "send", "acknowledge": "acknowledge", "lease": "lease", "release": "release_lease", "list_leases": "list_leases", "list_team": "list_teams", "use_capability": "invoke",
	"list_topics": "list_topics", "subscribe": "subscribe", "post": "post", "read_topic": "list_posts", "list_agents": "fetch_agents",
	"wait_for_agent": "wait_for_finish",
}

// call is one call of a tool.
type call struct {
	*Server
	agent   Agent
	request *sdk.CallToolRequest
	schema  json.RawMessage // of the arguments
	sent    string          // the form that the call has sent and no other call knows
}

// read decodes the arguments, also those that were given as JSON text. It refuses unknown ones with INVALID_ARGUMENT, and what no request may have.
func (c *call) read(arguments any) error {
	raw := readArguments(c.schema, c.request.Params.Arguments)
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if err := api.CheckBody(raw); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(arguments)
	if err == nil {
		return nil
	}
	if parley.CodeOf(err) != parley.Internal { // a value that the type refuses
		return err
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return api.WrongType(wrong)
	}
	return cmp.Or(checkNames(c.schema, raw), error(parley.Refuse(parley.InvalidArgument, "the arguments cannot be read: %v", err)))
}

// result returns a result with structured content, and the same as text for clients without it.
func result(content any) *sdk.CallToolResult {
	text, err := textOf(content)
	if err != nil {
		text = []byte(`{"error":{"code":"INTERNAL","message":"internal error"}}`)
	}
	return &sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text), IsError: err != nil,
	}
}

// textOf returns content as JSON, with invisible characters escaped.
func textOf(content any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(content); err != nil {
		return nil, err
	}
	return sanitize.JSON(bytes.TrimSpace(b.Bytes())), nil
}

// orderedObject returns a JSON object of n members in their order, which a Go map would lose.
func orderedObject(n int, member func(int) (name string, value any)) ([]byte, error) {
	b := []byte{'{'}
	for i := range n {
		name, value := member(i)
		key, err := textOf(name)
		if err != nil {
			return nil, err
		}
		text, err := textOf(value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, key...), ':'), text...)
	}
	return append(b, '}'), nil
}

// failure is the structured content of a tool's error. The output schemas of all tools admit it, because clients validate
// errors too.
type failure struct {
	Error *parley.Error `json:"error"`
}

// failed returns the result of a refused call. Details of internal errors go to the log only.
func (s *Server) failed(name string, err error) *sdk.CallToolResult {
	e := parley.AsError(err)
	switch {
	case isContextEnd(err):
		e = parley.Refuse(parley.Timeout, "the call was given up")
	case parley.CodeOf(err) == parley.Internal:
		s.options.Log.Error("tool failed", slog.String("tool", name), slog.Any("error", err))
	}
	if hint := hintOf(name, e.Code); hint != "" {
		e = e.WithHint("%s", hint)
	}
	r := result(failure{sanitizeError(e)})
	r.IsError = true
	return r
}

// hintOf returns how a model finds what it has named wrongly, with the tools that it has; "" leaves the hint as it is, which may be of commands.
func hintOf(tool string, code parley.Code) string {
	switch {
	case code == parley.NoSuchMessage:
		return "list_inbox with the view all lists the messages"
	case code == parley.UnknownRecipient, code == parley.AgentNotFound:
		return "list_agents lists whom the agent can reach; whoever reaches both can introduce them"
	case code != parley.UnknownName:
		return ""
	}
	switch operations[tool] {
	case operations["subscribe"], operations["post"], operations["read_topic"]:
		return "list_topics lists the topics"
	case operations["lease"], operations["list_team"]:
		return "list_team lists the teams"
	case operations["release"]:
		return "list_leases lists the leases"
	case operations["use_capability"]:
		return "" // it names what is held
	}
	return "list_agents lists whom the agent can reach"
}

// sanitizeError returns an error with invisible characters escaped. Its texts may quote others.
func sanitizeError(e *parley.Error) *parley.Error {
	shown := &parley.Error{Code: e.Code, Message: sanitize.Line(e.Message), Hint: sanitize.Line(e.Hint)}
	for name, why := range e.Fields {
		if shown.Fields == nil {
			shown.Fields = map[string]string{}
		}
		shown.Fields[sanitize.Line(name)] = sanitize.Line(why)
	}
	return shown
}
