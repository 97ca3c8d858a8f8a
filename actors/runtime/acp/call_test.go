//go:build unix

package acp

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"parley"
	"parley/actors/runtime"
	"parley/actors/runtime/runtimetest"
)

func TestToolOfCall(t *testing.T) {
	const explained = `"content":[{"type":"content","content":{"type":"text","text":"`
	codex := func(rest string) string {
		return `{"kind":"search","title":"List /w","rawInput":{"call_id":"1","turn_id":"2","cwd":"/w","parsed_cmd":[{"type":"list_files"}],"available_decisions":["approved"]` + rest + `},` +
			explained + `Available Decisions: approved"}}]}`
	}
	const diffs = `"content":[{"type":"diff","path":"/w/a","newText":"x"},{"type":"diff","path":"/w/a","newText":"y"},{"type":"diff","path":"/w/b","newText":"x"}]`
	patch := func(changes, rest string) string {
		return `{"kind":"edit","title":"Edit /w/a, /w/b",` + diffs + `,"rawInput":{"call_id":"1","changes":` + changes + rest + `}}`
	}
	for _, c := range []struct {
		agent, call string
		want        runtime.Call
	}{
		{"", `{"kind":"execute","title":"Push it","rawInput":{"command":"git push"}}`, runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"git push","title":"Push it"}`}}},
		{"", `{"kind":"execute","title":"<b>","rawInput":{"command":"a && b > c"}}`, runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"a && b > c","title":"<b>"}`}}},
		{"", `{"kind":"execute","title":"Push it","rawInput":{"command":"git push","title":"x"}}`, runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"git push","title":"x"}`}}},
		{"", `{"kind":"execute","rawInput":{"command":"ls","cwd":"/"}}`, runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"ls","cwd":"/"}`}}},
		{"", `{"kind":"execute","title":"Push it","rawInput":{"command":["git","push"]}}`, runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"rawInput":{"command":["git","push"]},"title":"Push it"}`}}},
		{"", `{"kind":"execute","title":"Push it"}`, runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"title":"Push it"}`}}},
		{"", `{"kind":"execute","title":"ls",` + explained + `[current working directory /w]"}}]}`,
			runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{` + explained + `[current working directory /w]"}}],"title":"ls"}`}}}, // not Gemini
		{"", `{"kind":"edit","title":"Edit a.go","rawInput":{"path":"a.go"}}`, runtime.Call{Permission: parley.Permission{Tool: "edit", Input: `{"rawInput":{"path":"a.go"},"title":"Edit a.go"}`}}},
		{"", `{"kind":"execute","title":"x","rawInput":{"command":"ls","command":"rm"}}`, runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"rawInput":{"command":"ls","command":"rm"},"title":"x"}`}}},
		{"", `{"kind":"edit","title":"Edit a","content":[{"type":"diff","path":"/a"}]}`, runtime.Call{Permission: parley.Permission{Tool: "edit", Input: `{"content":[{"type":"diff","path":"/a"}],"title":"Edit a"}`}}},
		{"", `{"kind":"edit","content":[{"type":"diff","path":"/a"}],"rawInput":{"path":"/a"}}`, runtime.Call{Permission: parley.Permission{Tool: "edit", Input: `{"content":[{"type":"diff","path":"/a"}],"rawInput":{"path":"/a"}}`}}},
		{"", `{"kind":"edit","title":"Edit a","content":[{"type":"content"}]}`, runtime.Call{Permission: parley.Permission{Tool: "edit", Input: `{"content":[{"type":"content"}],"title":"Edit a"}`}}},
		{"", `{"kind":"other","title":"Use it","rawInput":{"a":1}}`, runtime.Call{Permission: parley.Permission{Tool: "Use it", Input: `{"a":1}`}}},
		{"", `{"kind":"read","title":"Read a","locations":[{"path":"/a","line":3}]}`, runtime.Call{Permission: parley.Permission{Tool: "read", Input: `{"locations":[{"path":"/a"}],"title":"Read a"}`}}},
		{"", `{"kind":"read","title":"Read a","rawInput":{"path":"/a"},"locations":[{"path":"/a"}]}`, runtime.Call{Permission: parley.Permission{Tool: "read", Input: `{"rawInput":{"path":"/a"},"title":"Read a"}`}}},
		{"", `{"kind":"think"}`, runtime.Call{Permission: parley.Permission{Tool: "think", Input: `{}`}}},
		{"", `{}`, runtime.Call{Permission: parley.Permission{Tool: "tool", Input: `{}`}}},

		// Codex has the changes of a patch in its event too.
		{codexName, patch(`{"/w/a":{"type":"update","unified_diff":"@@","move_path":null},"/w/b":{"type":"add","content":"x"}}`, `,"reason":"to fix","grant_root":null`),
			runtime.Call{Permission: parley.Permission{Tool: "edit", Input: `{` + diffs + `,"title":"Edit /w/a, /w/b"}`, Reason: "to fix"}}},
		{codexName, patch(`{"/w/a":{"type":"update","unified_diff":"@@"}}`, ``), runtime.Call{Permission: parley.Permission{Tool: "edit", Input: `{` + diffs + `,"rawInput":{"call_id":"1","changes":{"/w/a":{"type":"update","unified_diff":"@@"}}},"title":"Edit /w/a, /w/b"}`}}},
		{codexName, patch(`{"/w/a":{"type":"update","unified_diff":"@@","move_path":"/w/b"},"/w/b":{"type":"delete","content":""}}`, ``),
			runtime.Call{Permission: parley.Permission{Tool: "edit", Input: `{` + diffs + `,"rawInput":{"call_id":"1","changes":{"/w/a":{"type":"update","unified_diff":"@@","move_path":"/w/b"},"/w/b":{"type":"delete","content":""}}},"title":"Edit /w/a, /w/b"}`}}},
		{codexName, patch(`{"/w/a":{"type":"add","content":""},"/w/b":{"type":"delete","content":""}}`, `,"grant_root":"/w"`),
			runtime.Call{Permission: parley.Permission{Tool: "edit", Input: `{` + diffs + `,"rawInput":{"call_id":"1","changes":{"/w/a":{"type":"add","content":""},"/w/b":{"type":"delete","content":""}},"grant_root":"/w"},"title":"Edit /w/a, /w/b"}`}}},
		{"", patch(`{"/w/a":{"type":"add","content":""},"/w/b":{"type":"delete","content":""}}`, ``),
			runtime.Call{Permission: parley.Permission{Tool: "edit", Input: `{` + diffs + `,"rawInput":{"call_id":"1","changes":{"/w/a":{"type":"add","content":""},"/w/b":{"type":"delete","content":""}}},"title":"Edit /w/a, /w/b"}`}}},

		// Claude Code repeats the description of a command as content.
		{"", `{"kind":"execute","title":"git status","rawInput":{"command":"git status","description":"Look"},` + explained + `Look"}}]}`,
			runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"git status","description":"Look"}`}}},
		{"", `{"kind":"execute","rawInput":{"command":"git status","description":"Look"},` + explained + `More"}}]}`,
			runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{` + explained + `More"}}],"rawInput":{"command":"git status","description":"Look"}}`}}},

		// Gemini has the command in its title alone.
		{geminiName, `{"kind":"execute","title":"git status",` + explained + `[current working directory /w]"}}]}`, runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"git status"}`}}},
		{geminiName, `{"kind":"execute","title":"git status",` + explained + `[current working directory /w] (Looks (twice))"}}]}`,
			runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"git status"}`, Reason: "Looks (twice)"}}},
		{geminiName, `{"kind":"execute","title":"git status",` + explained + `[in src] (Looks)"}}]}`,
			runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"git status",` + explained + `[in src] (Looks)"}}]}`}}},
		{geminiName, `{"kind":"execute","title":"git status",` + explained + `[current working directory /w] (Looks) [background]"}}]}`,
			runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"git status",` + explained + `[current working directory /w] (Looks) [background]"}}]}`}}},
		{geminiName, `{"kind":"execute","title":"git status (Looks)","content":[]}`, runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"content":[],"title":"git status (Looks)"}`}}},
		{geminiName, `{"kind":"other","title":"db",` + explained + `{}"}}]}`, runtime.Call{Permission: parley.Permission{Tool: "db", Input: `{` + explained + `{}"}}]}`}}},

		// Codex sends an event whose IDs differ from call to call.
		{codexName, codex(`,"command":["/bin/bash","-lc","ls -l"],"reason":"to see"`), runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"ls -l","title":"List /w"}`, Reason: "to see"}}},
		{codexName, codex(`,"command":["bash","-lc","ls"],"additional_permissions":null,"proposed_execpolicy_amendment":["ls"]`),
			runtime.Call{Permission: parley.Permission{Tool: "execute", Input: `{"command":"ls","title":"List /w"}`}}},
	} {
		var call toolCall
		if err := json.Unmarshal([]byte(c.call), &call); err != nil {
			t.Fatal(err)
		}
		if got := callOf(call, agentInfo{c.agent, []string{"/w"}}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: is %+v, want %+v", c.call, got, c.want)
		}
	}
	for _, rest := range []string{
		`,"command":["bash","-lc","ls"],"additional_permissions":{"network":{"enabled":true}}`, `,"command":["python","-c","1"]`, `,"command":["ls"]`, `,"command":"ls"`,
		`,"command":["bash","-lc","ls"],"call_id":"twice"`, `,"command":["bash","-lc","ls"],"newer":1`,
	} {
		var call toolCall
		if err := json.Unmarshal([]byte(codex(rest)), &call); err != nil {
			t.Fatal(err)
		}
		if got := callOf(call, agentInfo{codexName, []string{"/w"}}); got.Tool != "search" || !strings.Contains(got.Input, `"rawInput":{"call_id":"1"`) {
			t.Errorf("%s: is %+v", rest, got)
		}
	}
	var elsewhere toolCall
	if err := json.Unmarshal([]byte(codex(`,"command":["bash","-lc","ls"]`)), &elsewhere); err != nil {
		t.Fatal(err)
	}
	if got := callOf(elsewhere, agentInfo{codexName, []string{"/v"}}); got.Input != `{"command":"ls","cwd":"/w","title":"List /w"}` {
		t.Errorf("in another folder it is %+v", got)
	}
}

// TestKeptCallsAreBounded notes more large calls than are kept. The newest are whole, and the oldest cannot be shown.
func TestKeptCallsAreBounded(t *testing.T) {
	c := calls{byID: map[string]toolCall{}}
	const noted = 40
	for i := range noted {
		c.note([]byte(`{"toolCallId":"` + strconv.Itoa(i) + `","title":"t","rawInput":"` + strings.Repeat("x", 256<<10) + `"}`))
	}
	size := 0
	for _, call := range c.byID {
		size += call.size()
	}
	if size > keptSize {
		t.Errorf("%d bytes are kept", size)
	}
	first, last := c.complete(toolCall{ID: "0"}), c.complete(toolCall{ID: strconv.Itoa(noted - 1)})
	if first.isShowable() || !last.isShowable() || last.size() < 256<<10 {
		t.Errorf("the first is shown %v, the last %v with %d bytes", first.isShowable(), last.isShowable(), last.size())
	}
}

// TestLostPartsStayLost notes parts that are too long, and then short ones. A call is shown again only once each lost
// part was given anew.
func TestLostPartsStayLost(t *testing.T) {
	long := `"` + strings.Repeat("x", keptCallSize+1) + `"`
	for _, part := range []string{"title", "rawInput", "content"} {
		c := calls{byID: map[string]toolCall{}}
		note := func(members string) { c.note([]byte(`{"toolCallId":"c",` + members + `}`)) }
		note(`"title":"t","rawInput":{"command":"ls"},"content":["a"]`)
		note(`"` + part + `":` + long)
		for _, other := range []string{"title", "rawInput", "content", "status"} {
			if other != part {
				note(`"` + other + `":"short"`)
			}
		}
		if c.complete(toolCall{ID: "c"}).isShowable() {
			t.Errorf("without its %s the call is shown", part)
		}
		note(`"` + part + `":"short"`)
		if !c.complete(toolCall{ID: "c"}).isShowable() {
			t.Errorf("with a new %s the call is not shown", part)
		}
	}
}

func TestCallInOneLine(t *testing.T) {
	by := agentInfo{geminiName, []string{"/w"}}
	c := calls{by: by, byID: map[string]toolCall{}}
	for _, step := range []struct{ update, want string }{
		{`{"toolCallId":"a","kind":"execute","title":"Look","status":"pending","rawInput":{"command":"git\nstatus"}}`, "execute git status · pending"},
		{`{"toolCallId":"a","status":"in_progress"}`, "execute git status · in progress"},
		{`{"toolCallId":"a","content":[]}`, ""},
		{`{"toolCallId":"a","status":"completed"}`, "execute git status · completed"},
		{`{"toolCallId":"b","kind":"edit","title":"Edit","content":[{"type":"diff","path":"/w/a.go","oldText":"1\n2\n","newText":"1\n3\n4\n"}]}`, "edit a.go +2 −1"},
		{`{"toolCallId":"b","status":"completed","content":[{"type":"content","content":{"type":"text","text":"ok"}}]}`, "edit a.go +2 −1 · completed"},
		{`{"toolCallId":"c","kind":"read","title":"Read it","locations":[{"path":"/v/a"},{"path":"/w/b"},{"path":"c"},{"path":"d"}]}`, "read /v/a b c and 1 more"},
		{`{"toolCallId":"d","kind":"other","title":"Use it","status":"failed"}`, "Use it · failed"},
		{`{"toolCallId":"e"}`, "tool"},
	} {
		if got := c.note([]byte(step.update)); got != step.want {
			t.Errorf("%s is %q, want %q", step.update, got, step.want)
		}
	}
}

// TestDeniedAgentIsToldWhy denies a call with a reason. The agent is prompted with it, once, in the same run.
func TestDeniedAgentIsToldWhy(t *testing.T) {
	for _, stop := range []string{"end_turn", "cancelled"} {
		ask := `call session/request_permission {"sessionId":"SESSION","toolCall":{"toolCallId":"c","kind":"execute","rawInput":{"command":"git push"}},"options":` + permissionOptions + `}`
		run := runtimetest.Begin(t, agent(t), runtimetest.NewHost(t), prompted(ask, ask, "stop "+stop))
		for range 2 {
			run.NextCall().Decide <- runtime.Decision{Reason: "\nsay not on Fridays"} // the agent does as its prompt says
		}
		got := run.Result()
		if got.Err != nil || strings.Count(run.Text(runtime.Output), "not on Fridays") != 1+2 { // and each answer has the reason
			t.Errorf("%s: %v %q", stop, got.Err, run.Text(runtime.Output))
		}
		if !strings.Contains(run.Text(runtime.Notice), `The call \"git push\" was denied: \nsay not on Fridays`) {
			t.Errorf("%s: the run has the notices %q", stop, run.Text(runtime.Notice))
		}
	}
}
