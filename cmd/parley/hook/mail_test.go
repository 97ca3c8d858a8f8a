package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/gateway/api"
)

// entries writes a transcript.
func entries(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "transcript.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	toldLine   = `{"type":"attachment","attachment":{"type":"hook_additional_context","content":"Parley fae:17,18:TOKEN. 2 new messages"}}`
	queuedLine = `{"type":"queue-operation","content":"Parley fae:17,18:TOKEN."}`
	callLine   = `{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"c1","name":"mcp__parley__read_mail","input":{}}]}}`
	readLine   = `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"{\"mail\":[{\"number\":\"17\",\"mark\":\"TOKEN:17\"}]}"}]}}`
	answerLine = `{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"I see"}]}}`
)

// TestTranscriptProves reads transcripts: only the result of read_mail with an answer behind it proves that a text was shown.
func TestTranscriptProves(t *testing.T) {
	t.Parallel()
	mark := api.Mark{Token: "TOKEN", Number: 17}
	offers := []api.Offer{{Token: "TOKEN", Numbers: []uint64{17, 18, 1}}}
	for name, test := range map[string]struct {
		lines             []string
		last              string
		shown, kept, lost bool
	}{
		"an answer that is not written yet": {lines: []string{answerLine, readLine}, last: "That was it", shown: true},
		"an answer of before":               {lines: []string{answerLine, readLine}, last: "I see", kept: true},
		"an answer without the text":        {lines: []string{toldLine}, last: "That was it"},
		"nothing":                           {lines: []string{answerLine}, lost: true},
		"the notice":                        {lines: []string{toldLine, answerLine}},
		"a notice that waits":               {lines: []string{queuedLine, answerLine}, lost: true},
		"the text":                          {lines: []string{toldLine, readLine}, kept: true},
		"the text and an answer":            {lines: []string{toldLine, readLine, answerLine}, shown: true},
		"an answer before the text":         {lines: []string{answerLine, readLine}, kept: true},
		"a failed answer":                   {lines: []string{readLine, `{"type":"assistant","isApiErrorMessage":true,"message":{"content":[]}}`}, kept: true},
		"an answer of the program":          {lines: []string{readLine, `{"type":"assistant","message":{"model":"<synthetic>","content":[]}}`}, kept: true},
		"a subagent's answer":               {lines: []string{readLine, `{"type":"assistant","isSidechain":true,"message":{"model":"m","content":[]}}`}, kept: true},
		"a subagent's result":               {lines: []string{strings.Replace(readLine, `{"type":"user"`, `{"isSidechain":true,"type":"user"`, 1), answerLine}, lost: true},
		"the model repeats the mark":        {lines: []string{toldLine, `{"type":"assistant","message":{"model":"m","content":[{"type":"text","text":"TOKEN:17"}]}}`, answerLine}},
		"the person types the mark":         {lines: []string{toldLine, `{"type":"user","message":{"content":"TOKEN:17"}}`, answerLine}},
		"lines that are no entries":         {lines: []string{"TOKEN:17", `{"type":`, `"TOKEN:17"`, readLine, "[1]", answerLine}, shown: true},
		"another tool's result":             {lines: []string{toldLine, `{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"c2","name":"Bash"}]}}`, strings.Replace(readLine, "c1", "c2", 1), answerLine}},
		"a tool of another's server":        {lines: []string{toldLine, `{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"c2","name":"mcp__other__read_mail"}]}}`, strings.Replace(readLine, "c1", "c2", 1), answerLine}},
		"a wait for mail":                   {lines: []string{toldLine, `{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"c2","name":"mcp__parley__wait_for_mail"}]}}`, strings.Replace(readLine, "c1", "c2", 1), answerLine}, shown: true},
		"a call that a person has typed":    {lines: []string{toldLine, `{"type":"user","message":{"content":[{"type":"tool_use","id":"c2","name":"mcp__parley__read_mail"}]}}`, strings.Replace(readLine, "c1", "c2", 1), answerLine}},
		"an answer in another's text":       {lines: []string{readLine, `{"type":"user","message":{"content":"{\"type\":\"assistant\"}"}}`}, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := readProof(claudeStep, toolCall{transcript: entries(t, slices.Concat([]string{callLine}, test.lines)...)}.conversation(), offers, test.last)
			if !p.Read || slices.Contains(p.Shown, mark) != test.shown || slices.Contains(p.Kept, mark) != test.kept || slices.Contains(p.Lost, "TOKEN") != test.lost {
				t.Errorf("%+v", p)
			}
			if len(p.Shown)+len(p.Kept) > 1 { // neither 18, nor 1, with which 17 begins
				t.Errorf("more than was there: %+v", p)
			}
		})
	}
	for _, path := range []string{"", "/nowhere", t.TempDir()} {
		if p := readProof(claudeStep, toolCall{transcript: path}.conversation(), offers, ""); p.Read || len(p.Lost)+len(p.Shown) > 0 {
			t.Errorf("%q: %+v", path, p)
		}
	}
	long := entries(t, slices.Repeat([]string{`{"type":"user","message":{"content":"` + strings.Repeat("x", 1<<20) + `"}}`}, 20)...)
	if p := readProof(claudeStep, toolCall{transcript: long}.conversation(), offers, ""); !p.Read || len(p.Shown) > 0 {
		t.Errorf("%+v", p)
	}
}

// TestRolloutProves reads the files in which Codex keeps threads.
func TestRolloutProves(t *testing.T) {
	t.Parallel()
	const (
		told   = `{"type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"Parley fae:17:TOKEN. 1 new message"}]}}`
		call   = `{"type":"response_item","payload":{"type":"function_call","namespace":"mcp__parley","name":"read_mail","arguments":"{}","call_id":"c1"}}`
		result = `{"type":"response_item","payload":{"type":"function_call_output","call_id":"c1","output":"{\"mail\":[{\"mark\":\"TOKEN:17\"}]}"}}`
		answer = `{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I see"}]}}`
		shell  = `{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{}","call_id":"c2"}}`
	)
	mark := api.Mark{Token: "TOKEN", Number: 17}
	offers := []api.Offer{{Token: "TOKEN", Numbers: []uint64{17, 1}}}
	for name, test := range map[string]struct {
		lines             []string
		last              string
		shown, kept, lost bool
	}{
		"nothing":                         {lines: []string{answer}, lost: true},
		"the notice":                      {lines: []string{told, answer}},
		"the text":                        {lines: []string{told, call, result}, kept: true},
		"the text and an answer":          {lines: []string{told, call, result, answer}, shown: true},
		"the text and a call":             {lines: []string{told, call, result, shell}, shown: true},
		"an answer that is told":          {lines: []string{told, call, result}, last: "That was it", shown: true},
		"the result of another tool":      {lines: []string{told, shell, strings.Replace(result, "c1", "c2", 1), answer}},
		"the result of another server":    {lines: []string{told, strings.Replace(call, "mcp__parley", "mcp__other", 1), result, answer}},
		"the result of no call":           {lines: []string{told, result, answer}},
		"a text that looks like a result": {lines: []string{told, call, `{"type":"response_item","payload":{"type":"message","role":"user","call_id":"c1","output":"TOKEN:17"}}`, answer}},
		"an event that repeats it":        {lines: []string{`{"type":"event_msg","payload":{"type":"function_call_output","call_id":"c1","output":"TOKEN:17"}}`, answer}, lost: true},
		"lines that are no items":         {lines: []string{told, "TOKEN:17", `{"type":`, call, "[1]", result, "null", answer}, shown: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := readProof(codexStep, toolCall{transcript: entries(t, test.lines...)}.conversation(), offers, test.last)
			if !p.Read || slices.Contains(p.Shown, mark) != test.shown || slices.Contains(p.Kept, mark) != test.kept || slices.Contains(p.Lost, "TOKEN") != test.lost || len(p.Shown)+len(p.Kept) > 1 {
				t.Errorf("%+v", p)
			}
		})
	}
}

// TestTranscriptSaysThatNothingIsDone tells an agent that works from one that does not.
func TestTranscriptSaysThatNothingIsDone(t *testing.T) {
	t.Parallel()
	calls := `{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","name":"Bash"}]}}`
	for name, test := range map[string]struct {
		lines []string
		idle  bool
	}{
		"it answers":     {[]string{readLine, answerLine}, true},
		"it calls":       {[]string{answerLine, calls}, false},
		"it has a task":  {[]string{answerLine, `{"type":"user","message":{"content":"go on"}}`}, false},
		"interrupted":    {[]string{calls, `{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}`}, true},
		"nothing at all": {[]string{""}, false},
	} {
		if got := isIdle(entries(t, test.lines...)); got != test.idle {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHooksOfCodex has hooks carry a notice in the members that Codex takes on each event. A nudge that comes too late is dropped,
// also where no node runs; a prompt of a person never is.
func TestHooksOfCodex(t *testing.T) {
	t.Parallel()
	const notice = "Parley shop-1:0:TOKEN. 1 new message"
	o, _ := nodeOfMail(t, &api.Carried{Notice: notice})
	nothing, _ := nodeOfMail(t, &api.Carried{})
	away := nothing
	away.Dial = func(context.Context) (net.Conn, error) { return nil, os.ErrNotExist }
	run := func(agent Agent, o Options, event, more string) string {
		t.Helper()
		r, _, err := agent.Run(t.Context(), strings.NewReader(fmt.Sprintf(`{"session_id":"s","cwd":"/","hook_event_name":%q%s}`, event, more)), o)
		if err != nil {
			t.Error(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	call := `,"tool_name":"shell","tool_input":{},"tool_use_id":"c"`
	dropped := `{"decision":"block","reason":"Parley: the mail has been read meanwhile."}`
	for _, test := range []struct {
		agent       Agent
		o           Options
		event, more string
		want        string
	}{
		{Codex(), o, SessionStart, `,"source":"startup"`, `{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"` + notice + `"}}`},
		{Codex(), o, PostToolUse, call, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"` + notice + `"}}`},
		{Codex(), o, PostToolUse, call + `,"agent_id":"a1"`, "null"},
		{Codex(), o, Stop, "", `{"decision":"block","reason":"` + notice + `"}`},
		{Codex(), o, UserPromptSubmit, `,"prompt":"` + Nudge + `"`, `{"hookSpecificOutput":{"hookEventName":"UserPromptSubmit","additionalContext":"` + notice + `"}}`},
		{Codex(), nothing, UserPromptSubmit, `,"prompt":"` + Nudge + `"`, dropped},
		{Codex(), away, UserPromptSubmit, `,"prompt":"` + Nudge + `"`, dropped},
		{Codex(), nothing, UserPromptSubmit, `,"prompt":"go on"`, "null"},
		{Codex(), away, UserPromptSubmit, `,"prompt":"go on"`, "null"},
		{Codex(), o, SessionEnd, `,"reason":"other"`, "null"},
		{OpenCode(), o, FileChanged, "", `{"hookSpecificOutput":{"hookEventName":"FileChanged","additionalContext":"` + notice + `"}}`},
		{OpenCode(), o, Stop, "", `{"hookSpecificOutput":{"hookEventName":"Stop","additionalContext":"` + notice + `"}}`},
	} {
		if got := run(test.agent, test.o, test.event, test.more); got != test.want {
			t.Errorf("%s %s%s: %s", test.agent.Name, test.event, test.more, got)
		}
	}
}

// nodeOfMail answers registrations of a hook.
func nodeOfMail(t *testing.T, mail *api.Carried) (o Options, asked *[]api.Register) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	asked = &[]api.Register{}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var wanted api.Register
		if r.URL.Path == api.RegisterPath && json.NewDecoder(r.Body).Decode(&wanted) == nil {
			*asked = append(*asked, wanted)
		}
		_ = json.NewEncoder(w).Encode(api.Registered{Name: "shop", Session: "shop-1", Bound: true, Mail: mail})
	})}
	go func() { _ = s.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = s.Close() })
	return Options{
		Dial: func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "unix", socket) },
		Env:  func(name string) (string, bool) { return "cli", name == "CLAUDE_CODE_ENTRYPOINT" },
	}, asked
}

// TestHooksOfMail has hooks carry a notice, and say nothing where there is none, no node, or a subagent.
func TestHooksOfMail(t *testing.T) {
	t.Parallel()
	o, asked := nodeOfMail(t, &api.Carried{Notice: "Parley shop-1:0:TOKEN. 1 new message", Wake: "/wake"})
	run := func(o Options, event, more string) *Response {
		t.Helper()
		r, d, err := ClaudeCode().Run(t.Context(), strings.NewReader(fmt.Sprintf(`{"session_id":"s","cwd":"/","hook_event_name":%q%s}`, event, more)), o)
		if err != nil || d != left {
			t.Errorf("%s: %v, %v", event, d, err)
		}
		return r
	}
	for _, event := range []string{SessionStart, UserPromptSubmit, PostToolBatch, Stop} {
		before := len(*asked)
		r := run(o, event, `,"source":"startup"`)
		if r == nil || r.Specific == nil || r.Specific.Event != event || r.Specific.Context != "Parley shop-1:0:TOKEN. 1 new message" || len(r.Specific.Watch) != 1 || r.Wake != "" {
			t.Errorf("%s: %+v", event, r)
		}
		if len(*asked) != before+1 {
			t.Errorf("%s takes %d exchanges", event, len(*asked)-before)
		}
		if r := run(o, event, `,"agent_id":"a1"`); r != nil {
			t.Errorf("%s of a subagent: %+v", event, r)
		}
	}
	if r := run(o, FileChanged, ""); r == nil || r.Wake != "Parley shop-1:0:TOKEN. 1 new message" || r.Specific != nil {
		t.Errorf("%+v", r)
	}
	if r := run(o, SessionEnd, `,"reason":"other"`); r != nil {
		t.Errorf("%+v", r)
	}
	printing := o
	printing.Env = func(name string) (string, bool) { return "sdk-cli", name == "CLAUDE_CODE_ENTRYPOINT" }
	if r := run(printing, FileChanged, ""); r != nil {
		t.Errorf("without a terminal: %+v", r)
	}
	away := o
	away.Dial = func(context.Context) (net.Conn, error) { return nil, os.ErrNotExist }
	several, _ := nodeOfMail(t, &api.Carried{Notice: "two\nlines"})
	long, _ := nodeOfMail(t, &api.Carried{Notice: strings.Repeat("x", maxSaid+1)})
	nothing, _ := nodeOfMail(t, nil)
	for _, o := range []Options{away, several, long, nothing} {
		for _, event := range []string{SessionStart, UserPromptSubmit, PostToolBatch, Stop, FileChanged, SessionEnd} {
			if r := run(o, event, ""); r != nil {
				t.Errorf("%s: %+v", event, r)
			}
		}
	}
}
