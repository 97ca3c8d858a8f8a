package modeltest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// readGenerate reads a request of Gemini's API. Each call has to have a response in the next content. Its calls have no IDs of their own.
func readGenerate(body []byte) (conversation, error) {
	type part struct {
		Text string `json:"text"`
		Call *struct {
			Name string `json:"name"`
		} `json:"functionCall"`
		Response *struct {
			Name     string          `json:"name"`
			Response json.RawMessage `json:"response"`
		} `json:"functionResponse"`
	}
	type content struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	var in struct {
		Contents []content `json:"contents"`
		System   content   `json:"systemInstruction"`
		Tools    []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return conversation{}, err
	}
	c := conversation{stream: true, calls: map[string]string{}}
	for _, p := range in.System.Parts {
		c.system += p.Text
	}
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			c.tools = append(c.tools, f.Name)
		}
	}
	if len(in.Contents) == 0 || in.Contents[0].Role != "user" {
		return c, fmt.Errorf("a request has contents, of which the user's is first")
	}
	open := 0
	for _, m := range in.Contents {
		if m.Role == "model" {
			if open > 0 {
				return c, fmt.Errorf("%d calls without a response", open)
			}
			c.answers++
			c.news = nil
		}
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				open++
			case p.Response != nil:
				open--
				c.results = append(c.results, Result{Tool: p.Response.Name, Text: string(p.Response.Response)})
				c.news = append(c.news, string(p.Response.Response))
			case m.Role == "user":
				c.prompts = append(c.prompts, p.Text)
				c.news = append(c.news, p.Text)
			}
		}
	}
	if open != 0 {
		return c, fmt.Errorf("%d calls without a response", open)
	}
	return c, nil
}

// writeGenerate writes an answer of Gemini's API as a stream of one event.
func writeGenerate(w http.ResponseWriter, _ conversation, id string, t Turn) {
	var parts []any
	if t.Text != "" {
		parts = append(parts, map[string]any{"text": t.Text})
	}
	for _, call := range t.Calls {
		parts = append(parts, map[string]any{"functionCall": map[string]any{"name": call.Tool, "args": call.Input}})
	}
	s := newStream(w)
	_, _ = fmt.Fprintf(s.w, "data: %s\n\n", encode(map[string]any{
		"responseId":    id,
		"candidates":    []any{map[string]any{"index": 0, "finishReason": "STOP", "content": map[string]any{"role": "model", "parts": parts}}},
		"usageMetadata": map[string]any{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
	}))
}
