package modeltest

import (
	"encoding/json"
	"fmt"
	"maps"
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

// dangerousUse is the safeguard of Claude Code's automatic mode: the server says of each call whether it is dangerous.
const dangerousUse = "dangerous_tool_use"

// laterTools returns the lines of a text that may name tools: a request may list tools by their names alone.
func laterTools(text string) (names []string) {
	for line := range strings.Lines(text) {
		if name := strings.TrimSpace(line); name != "" && !strings.Contains(name, " ") {
			names = append(names, name)
		}
	}
	return names
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
		Safeguards []struct {
			Type string `json:"type"`
		} `json:"safeguards"`
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
	for _, s := range in.Safeguards {
		c.judged = c.judged || s.Type == dangerousUse
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
			c.news = nil
		}
		for _, b := range list {
			if m.Role != "assistant" {
				c.news = append(c.news, b.Text+plain(b.Content))
			}
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
			case b.Type == "text" && m.Role == "system":
				c.system += "\n" + b.Text
				c.later = append(c.later, laterTools(b.Text)...)
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
	judged := map[string]any{}
	if t.Text != "" {
		content = append(content, map[string]any{"type": "text", "text": t.Text})
	}
	for i, call := range t.Calls {
		reason = "tool_use"
		use := fmt.Sprintf("toolu_%s_%d", id, i)
		content = append(content, map[string]any{"type": "tool_use", "id": use, "name": call.Tool, "input": call.Input})
		judged[use] = map[string]any{"type": "evaluated", "outcome": "not_flagged"}
	}
	end := map[string]any{"stop_reason": reason, "stop_sequence": nil}
	if c.judged {
		end["safeguard_results"] = []any{map[string]any{"type": dangerousUse, "status": map[string]any{"type": "available", "tool_uses": judged}}}
	}
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1}
	message := map[string]any{
		"id": "msg_" + id, "type": "message", "role": "assistant", "model": c.model, "content": content,
		"usage": usage,
	}
	if !c.stream {
		maps.Copy(message, end)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, encode(message))
		return
	}
	s := newStream(w)
	message["content"] = []any{}
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
	s.send("message_delta", map[string]any{"delta": end, "usage": usage})
	s.send("message_stop", map[string]any{})
}
