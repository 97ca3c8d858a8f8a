package modeltest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestServerFindsTurnsAndFaults sends requests of both protocols.
func TestServerFindsTurnsAndFaults(t *testing.T) {
	t.Parallel()
	s := Serve(Script{Prompt: "hello", Turns: []Turn{{Calls: []Call{{Tool: "look", Input: map[string]any{"at": 1}}}}, {Text: "over"}}})
	defer s.Close()
	const (
		messages = `{"model":"m","max_tokens":1,"stream":true,"tools":[{"name":"look"}],"messages":[{"role":"user","content":"hello"}`
		input    = `{"model":"m","stream":true,"tools":[{"type":"function","name":"look"}],"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hello"}]}`
	)
	for _, step := range []struct{ path, body, want string }{
		{"messages", messages + `]}`, `"partial_json":"{\"at\":1}"`},
		{"messages", messages + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"look"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"seen"}]}]}`, `"text":"over"`},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"hello"}]}`, `"text":"Noted"`},
		{"messages", messages + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"look"}]},{"role":"user","content":"well?"}]}`, "calls without a result"},
		{"responses", input + `]}`, `"arguments":"{\"at\":1}"`},
		{"responses", input + `,{"type":"function_call","call_id":"a","name":"look"},{"type":"function_call_output","call_id":"a","output":"seen"}]}`, `"text":"over"`},
		{"responses", input + `,{"type":"function_call_output","call_id":"a","output":"seen"}]}`, "an output of no call"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/"+step.path, strings.NewReader(step.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "a-key")
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if err != nil || !strings.Contains(string(text), step.want) {
			t.Errorf("%s: %s is answered by %s, %v", step.path, step.body, text, err)
		}
	}
	reacting := Serve(Script{React: func(seen Seen) Turn { return Turn{Text: strings.Join(seen.News, "+")} }})
	defer reacting.Close()
	for path, body := range map[string]string{
		"messages":  messages + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"look"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"seen"},{"type":"text","text":"well?"}]}]}`,
		"responses": input + `,{"type":"function_call","call_id":"a","name":"look"},{"type":"function_call_output","call_id":"a","output":"seen"},{"type":"message","role":"developer","content":"well?"}]}`,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, reacting.URL+"/v1/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "a-key")
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(got.Body)
		_ = got.Body.Close()
		if err != nil || !strings.Contains(string(text), `"seen+well?"`) {
			t.Errorf("%s: what is new is answered by %s, %v", path, text, err)
		}
	}
	if wrong := s.Wrong(); len(wrong) != 2 {
		t.Errorf("wrong: %q", wrong)
	}
	if results := s.Results("hello"); len(results) != 1 || results[0] != (Result{"look", "seen"}) || len(s.Others()) != 1 {
		t.Errorf("results %q, others %q", results, s.Others())
	}
}
