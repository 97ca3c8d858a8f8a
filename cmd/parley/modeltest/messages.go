package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// block is a part of a message of Anthropic's API.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

// blocks reads content: a text, or a list of blocks.
func blocks(raw json.RawMessage) ([]block, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}, nil
	}
	var list []block
	err := json.Unmarshal(raw, &list)
	return list, err
}

// plain returns the text of content.
func plain(raw json.RawMessage) string {
	list, err := blocks(raw)
	if err != nil {
		return string(raw)
	}
	texts := make([]string, len(list))
	for i, b := range list {
		texts[i] = b.Text
	}
	return strings.Join(texts, "\n")
}

// readMessages reads a request of the Messages API. Each tool call has to have a result in the next message.
func readMessages(body []byte) (conversation, error) {
	var in struct {
		Model     string          `json:"model"`
		MaxTokens int             `json:"max_tokens"`
		Stream    bool            `json:"stream"`
		System    json.RawMessage `json:"system"`
		Tools     []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conversation{}, err
	}
	c := conversation{model: in.Model, stream: in.Stream, system: plain(in.System), calls: map[string]string{}}
	for _, t := range in.Tools {
		c.tools = append(c.tools, t.Name)
	}
	if in.Model == "" || in.MaxTokens <= 0 || len(in.Messages) == 0 || in.Messages[0].Role != "user" {
		return c, fmt.Errorf("a request has a model, a number of tokens, and messages of which the user's is first")
	}
	open := map[string]bool{}
	for _, m := range in.Messages {
		list, err := blocks(m.Content)
		if err != nil {
			return c, err
		}
		if m.Role == "assistant" {
			if len(open) > 0 {
				return c, fmt.Errorf("calls without a result: %v", open)
			}
			c.answers++
		}
		for _, b := range list {
			switch {
			case b.Type == "tool_use":
				open[b.ID], c.calls[b.ID] = true, b.Name
			case b.Type == "tool_result" && !open[b.ToolUseID]:
				return c, fmt.Errorf("a result of no call: %s", b.ToolUseID)
			case b.Type == "tool_result":
				delete(open, b.ToolUseID)
				c.results = append(c.results, Result{Tool: c.calls[b.ToolUseID], Text: plain(b.Content)})
			case b.Type == "text" && m.Role == "user":
				c.prompts = append(c.prompts, b.Text)
			}
		}
	}
	if len(open) > 0 {
		return c, fmt.Errorf("calls without a result: %v", open)
	}
	return c, nil
}

// writeMessages writes an answer of the Messages API, as events or as one object.
func writeMessages(w http.ResponseWriter, c conversation, id string, t Turn) {
	reason := "end_turn"
	var content []map[string]any
	if t.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": t.Text})
	}
	for i, call := range t.Calls {
		reason = "tool_use"
		content = append(content, map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%s_%d", id, i), "name": call.Tool, "input": call.Input})
	}
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1}
	message := map[string]any{
		"id": "msg_" + id, "type": "message", "role": "assistant", "model": c.model, "content": content,
		"stop_reason": reason, "stop_sequence": nil, "usage": usage,
	}
	if !c.stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, encode(message))
		return
	}
	s := newStream(w)
	message["content"], message["stop_reason"] = []any{}, nil
	s.send("message_start", map[string]any{"message": message})
	for i, b := range content {
		var delta map[string]any
		if b["type"] == "text" {
			delta = map[string]any{"type": "text_delta", "text": b["text"]}
			b["text"] = ""
		} else {
			delta = map[string]any{"type": "input_json_delta", "partial_json": encode(b["input"])}
			b["input"] = map[string]any{}
		}
		s.send("content_block_start", map[string]any{"index": i, "content_block": b})
		s.send("content_block_delta", map[string]any{"index": i, "delta": delta})
		s.send("content_block_stop", map[string]any{"index": i})
	}
	s.send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": usage})
	s.send("message_stop", map[string]any{})
}
