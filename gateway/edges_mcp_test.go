package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"parley"
	"parley/gateway/edgetest"
)

// toolOf has the tools that perform operations, with the names of their arguments by the members of the requests.
var toolOf = map[string]struct {
	name      string
	arguments map[string]string
}{
	"form":         {"send_form", map[string]string{"description": "message"}},
	"await":        {"await_answer", map[string]string{"id": "handle", "number": "handle", "waitMs": "timeoutSeconds"}},
	"respond_form": {"answer_form", map[string]string{"id": "form", "number": "form"}},
	"decline_form": {"decline_form", map[string]string{"id": "form", "number": "form"}},
	"cancel_form":  {"cancel_form", map[string]string{"id": "form", "number": "form"}},
	"send":         {"send_message", nil},
	"reply":        {"send_message", map[string]string{"id": "replyTo", "number": "replyTo"}},
	"invoke":       {"use_capability", map[string]string{"waitMs": "wait"}},
}

// toolShapes has the operations that a tool performs.
func toolShapes() map[string]bool {
	shapes := map[string]bool{}
	for operation := range toolOf {
		shapes[operation] = true
	}
	return shapes
}

// overMCP performs an operation by the tool for it, and over HTTP where there is none.
func (e *edges) overMCP(ctx context.Context, c edgetest.Caller, operation, request string) ([]byte, error) {
	tool, ok := toolOf[operation]
	var members map[string]json.RawMessage
	if !ok || json.Unmarshal([]byte(request), &members) != nil {
		return e.overTCP(ctx, c, operation, request)
	}
	var arguments []string
	for name, value := range members {
		if as, renamed := tool.arguments[name]; renamed {
			name = as
		}
		if name == "as" {
			return e.overTCP(ctx, c, operation, request)
		}
		if name == "timeoutSeconds" && !bytes.HasPrefix(value, []byte("-")) {
			value = []byte("0.001")
		}
		if name == "handle" && !bytes.HasPrefix(value, []byte(`"`)) {
			value = fmt.Appendf(nil, "%q", value)
		}
		arguments = append(arguments, fmt.Sprintf("%q:%s", name, value))
	}
	session, _, err := e.tool(ctx, c, "", `"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}`)
	if err != nil {
		return nil, err
	}
	_, result, err := e.tool(ctx, c, session, fmt.Sprintf(`"tools/call","params":{"name":%q,"arguments":{%s}}`, tool.name, strings.Join(arguments, ",")))
	if err != nil {
		return nil, err
	}
	var content struct {
		StructuredContent json.RawMessage
	}
	var refused struct {
		Error  *parley.Error
		Handle string
	}
	if err := errors.Join(json.Unmarshal(result, &content), json.Unmarshal(content.StructuredContent, &refused)); err != nil {
		return nil, fmt.Errorf("%s: %w", result, err)
	}
	if refused.Error != nil {
		return nil, refused.Error
	}
	if operation == "form" {
		return json.Marshal(map[string]string{"form": refused.Handle})
	}
	return content.StructuredContent, nil
}

// tool sends a request of the protocol, and returns its session and its result.
func (e *edges) tool(ctx context.Context, c edgetest.Caller, session, method string) (string, json.RawMessage, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+e.h.server.Address()+toolsPath, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":`+method+`}`))
	if err != nil {
		return "", nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := e.web.Do(r)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", nil, err
	}
	if err := refusalIn(resp.StatusCode >= 400, text); err != nil {
		return "", nil, err
	}
	if _, data, ok := bytes.Cut(text, []byte("data: ")); ok {
		text, _, _ = bytes.Cut(data, []byte("\n"))
	}
	var answer struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(text, &answer); err != nil || answer.Error != nil {
		return "", nil, fmt.Errorf("%s: %w", text, err)
	}
	return resp.Header.Get("Mcp-Session-Id"), answer.Result, nil
}
