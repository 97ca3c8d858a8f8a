package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// readResponses reads a request of the Responses API. Each call has to have an output.
func readResponses(body []byte) (conversation, error) {
	var in struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Instructions string          `json:"instructions"`
		Tools        []responseTool  `json:"tools"`
		Input        json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conversation{}, err
	}
	c := conversation{model: in.Model, stream: in.Stream, system: in.Instructions, calls: map[string]string{}}
	for _, t := range in.Tools {
		c.tools = append(c.tools, t.names()...)
	}
	var items []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Name    string          `json:"name"`
		CallID  string          `json:"call_id"`
		Output  json.RawMessage `json:"output"`
	}
	if err := json.Unmarshal(in.Input, &items); err != nil || in.Model == "" || len(items) == 0 {
		return c, fmt.Errorf("a request has a model and a list as its input: %w", err)
	}
	open := map[string]bool{}
	answering := false
	for _, item := range items {
		mine := item.Role == "assistant" || item.Type == "function_call" || item.Type == "custom_tool_call"
		if mine && !answering {
			c.answers++
		}
		if answering = mine; mine {
			c.news = nil
		} else {
			c.news = append(c.news, plain(item.Content)+plain(item.Output))
		}
		switch item.Type {
		case "function_call", "custom_tool_call":
			open[item.CallID], c.calls[item.CallID] = true, item.Name
		case "function_call_output", "custom_tool_call_output":
			if !open[item.CallID] {
				return c, fmt.Errorf("an output of no call: %s", item.CallID)
			}
			delete(open, item.CallID)
			c.results = append(c.results, Result{Tool: c.calls[item.CallID], Text: plain(item.Output)})
		case "message", "":
			if item.Role == "assistant" {
				continue
			}
			c.prompts = append(c.prompts, plain(item.Content))
		}
	}
	if len(open) > 0 {
		return c, fmt.Errorf("calls without an output: %v", open)
	}
	return c, nil
}

// responseTool is a tool on offer, or a namespace of tools.
type responseTool struct {
	Type  string         `json:"type"`
	Name  string         `json:"name"`
	Tools []responseTool `json:"tools"`
}

// names returns a tool's name, or those of a namespace's tools, as in "namespace.tool".
func (t responseTool) names() []string {
	if len(t.Tools) == 0 {
		return []string{t.Name}
	}
	var names []string
	for _, inner := range t.Tools {
		names = append(names, t.Name+"."+inner.Name)
	}
	return names
}

// writeResponses writes an answer of the Responses API.
func writeResponses(w http.ResponseWriter, c conversation, id string, t Turn) {
	var items []map[string]any
	if t.Text != "" {
		items = append(items, map[string]any{
			"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": t.Text, "annotations": []any{}}},
		})
	}
	for i, call := range t.Calls {
		space, name, inSpace := strings.Cut(call.Tool, ".")
		if !inSpace {
			space, name = "", call.Tool
		}
		items = append(items, map[string]any{
			"type": "function_call", "namespace": space, "id": fmt.Sprintf("fc_%s_%d", id, i), "call_id": fmt.Sprintf("call_%s_%d", id, i),
			"name": name, "arguments": encode(call.Input), "status": "completed",
		})
		if !inSpace {
			delete(items[len(items)-1], "namespace")
		}
	}
	response := map[string]any{
		"id": "resp_" + id, "object": "response", "model": c.model, "status": "in_progress", "output": []any{},
	}
	s := newStream(w)
	s.send("response.created", map[string]any{"response": response})
	for i, item := range items {
		s.send("response.output_item.added", map[string]any{"output_index": i, "item": item})
		s.send("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	response["status"], response["output"] = "completed", items
	response["usage"] = map[string]any{
		"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
		"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0},
	}
	s.send("response.completed", map[string]any{"response": response})
}
