package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley"
	"parley/gateway/sanitize"
)

// tool is what does a tool. What it gives is the structured content, or a result as it is.
type tool func(context.Context, *call) (any, error)

// tools are all there are; tools.json says what clients are told of them.
func tools() map[string]tool {
	return map[string]tool{
		"ask_user": askUser, "send_form": sendForm, "await_answer": awaitAnswer,
		"list_inbox": listInbox, "answer_form": answerForm, "decline_form": declineForm, "cancel_form": cancelForm,
		"send_message": sendMessage, "list_agents": listAgents, "wait_for_agent": waitForAgent,
	}
}

// call is one call of a tool.
type call struct {
	*Server
	agent   Agent
	request *sdk.CallToolRequest
}

// read reads the arguments. It refuses with INVALID_ARGUMENT what the tool does not know.
func (c *call) read(arguments any) error {
	raw := c.request.Params.Arguments
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(arguments)
	if err == nil {
		return nil
	}
	if parley.CodeOf(err) != parley.Internal { // a value that cannot be given
		return err
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return parley.Refuse(parley.InvalidArgument, "%s: a %s does not belong there", wrong.Field, wrong.Value)
	}
	return parley.Refuse(parley.InvalidArgument, "the arguments cannot be read: %v", err)
}

// result makes a result of structured content; those who do not read that have the same as text.
func result(content any) *sdk.CallToolResult {
	text, err := textOf(content)
	if err != nil {
		text = []byte(`{"error":{"code":"INTERNAL","message":"internal error"}}`)
	}
	return &sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text), IsError: err != nil,
	}
}

// textOf writes content as JSON in which nothing hides.
func textOf(content any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(content); err != nil {
		return nil, err
	}
	return sanitize.JSON(bytes.TrimSpace(b.Bytes())), nil
}

// failure is how a tool's error stands in its result.
type failure struct {
	Error *parley.Error `json:"error"`
}

// failed makes the result of a tool that was refused. What is nobody's business outside goes to the log.
func (s *Server) failed(name string, err error) *sdk.CallToolResult {
	e := parley.AsError(err)
	switch {
	case isContextEnd(err):
		e = parley.Refuse(parley.Timeout, "the call was given up")
	case parley.CodeOf(err) == parley.Internal:
		s.options.Log.Error("tool failed", slog.String("tool", name), slog.Any("error", err))
	}
	r := result(failure{sanitizeError(e)})
	r.IsError = true
	return r
}

// sanitizeError is an error whose words, which may quote those of others, hide nothing.
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
