//go:build unix

package program

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley"
	"parley/events"
)

// agent makes the runtime of the test agent, and closes it at the end.
func agent(t testing.TB, change ...func(*Spec)) *agents {
	t.Helper()
	s := playing("agent")
	s.Folder = t.TempDir()
	for _, c := range change {
		c(&s)
	}
	r := NewACP(s).(*agents)
	t.Cleanup(r.Close)
	return r
}

func with(variable string) func(*Spec) {
	return func(s *Spec) { s.Environment = append(s.Environment, variable) }
}

func granted(access ...string) func(*Spec) { return func(s *Spec) { s.Access = access } }

// prompted is a prompt of some lines.
func prompted(lines ...string) Prompt { return Prompt{Run: "r", Text: strings.Join(lines, "\n")} }

func TestAnAgentSaysWhatItSays(t *testing.T) {
	d := newTestDesk(t)
	r := agent(t)
	run := begin(t, r, d, prompted(
		"say one", "say two",
		`update {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"I "}}`,
		`update {"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"think"}}`,
		`update { "sessionUpdate": "tool_call","toolCallId":"c1","title":"ls","kind":"execute","content":[]}`,
		`update {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`,
		`update {"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"}]}`,
		`update {"sessionUpdate":"available_commands_update","availableCommands":[]}`,
		`update {"sessionUpdate":"something_new"}`,
		`update {"sessionUpdate":"tool_call","toolCallId":"c2","title":"big","rawInput":"`+strings.Repeat("x", 20<<10)+`"}`,
		`update {"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}`,
		"garbage", "raw not a message", "errors beside",
		`raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"another","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"not mine"}}}}`,
		`raw {"jsonrpc":"2.0","method":"_extension","params":{}}`,
		`raw {"jsonrpc":"2.0","method":"session/request_permission","params":{}}`,
		`raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":5}}`,
		`call _extension {}`, `call nothing/such {}`,
		"say three",
	))
	result := run.result()
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	var got []string
	for _, w := range d.written {
		switch said := string(w.stream) + ": "; {
		case w.stream == Errors:
		case w.stream == Output && len(got) > 0 && strings.HasPrefix(got[len(got)-1], said):
			got[len(got)-1] += w.text
		default:
			got = append(got, said+w.text)
		}
	}
	want := []string{
		"output: onetwo",
		`notice: {"sessionUpdate":"agent_thought_chunk","text":"I think"}`,
		`notice: {"sessionUpdate":"tool_call","toolCallId":"c1","title":"ls","kind":"execute","content":[]}`,
		`notice: {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`,
		`notice: {"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"}]}`,
		`notice: {"cut":true,"sessionUpdate":"tool_call","title":"big","toolCallId":"c2"}`,
		`notice: {"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}`,
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("written: %s", strings.Join(got, "\n"))
	}
	if rest := d.output(Output); !strings.HasSuffix(rest, "three") || strings.Count(rest, "Method not found") != 2 || strings.Contains(rest, "not mine") {
		t.Errorf("put out: %s", rest)
	}
	beside := d.output(Errors)
	for _, want := range []string{"starting\n", "\ufffd\x00{\n", "not a message\n", "beside\n"} {
		if !strings.Contains(beside, want) {
			t.Errorf("no %q beside: %s", want, beside)
		}
	}
	if strings.Contains(beside, "terminal") {
		t.Errorf("it was told of terminals: %s", beside)
	}
	for _, want := range []string{`"protocolVersion":1`, `"fs":{}`, `"form":{}`} {
		if !strings.Contains(beside, want) {
			t.Errorf("it was not told %s: %s", want, beside)
		}
	}
}

func TestAnAgentStaysForTheNextPrompt(t *testing.T) {
	r := agent(t)
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	who := ""
	for range 20 {
		d := newTestDesk(t)
		if got := begin(t, r, d, prompted("pid", "errors beside")).result(); got.Err != nil {
			t.Fatal(got.Err)
		}
		if who == "" {
			who = d.output(Output)
		}
		if d.output(Output) != who || !strings.HasSuffix(d.output(Errors), "beside\n") {
			t.Fatalf("it was %q and is %q; %q", who, d.output(Output), d.output(Errors))
		}
	}
	r.Close()
	wantGone(t, strings.Fields(who)[0])
}

func TestHowATurnEnds(t *testing.T) {
	for line, want := range map[string]string{
		"stop end_turn":          "",
		"stop max_tokens":        "",
		"stop max_turn_requests": "",
		"stop refusal":           "refuses",
		"stop cancelled":         "cancelled",
		"stop fail":              `Authentication required: {"why":"no key"}`,
		"exit":                   "exit status 4",
		"long":                   "TOO_LARGE",
		"deep":                   "TOO_LARGE",
		"shut":                   "killed by SIGTERM",
	} {
		t.Run(line, func(t *testing.T) {
			d := newTestDesk(t)
			r := agent(t)
			got := begin(t, r, d, prompted("say said", line)).result()
			if (got.Err == nil) != (want == "") || got.Err != nil && !strings.Contains(got.Err.Error(), want) {
				t.Errorf("ended with %v", got.Err)
			}
			if d.output(Output) != "said" {
				t.Errorf("put out %q", d.output(Output))
			}
			if reason, stopped := strings.CutPrefix(line, "stop "); stopped && reason != "end_turn" && reason != "cancelled" && reason != "fail" {
				if d.output(Notice) != `{"stopReason":"`+reason+`"}` {
					t.Errorf("noticed %q", d.output(Notice))
				}
			}
			if !strings.Contains(got.Tail, "starting\n") || !strings.Contains(got.Tail, "said") {
				t.Errorf("the tail is %q", got.Tail)
			}
			d = newTestDesk(t)
			if got := begin(t, r, d, prompted("say again")).result(); got.Err != nil || d.output(Output) != "again" {
				t.Errorf("and then: %v, %q", got.Err, d.output(Output))
			}
		})
	}
}

func TestAnAgentThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		r    *agents
		want string
	}{
		"exits":   {agent(t, with("AGENT_FAILS=1")), "exit status 3"},
		"version": {agent(t, with("AGENT_VERSION=7")), "version 7"},
		"missing": {NewACP(Spec{Command: []string{"/there/is/none"}}).(*agents), "cannot be started"},
		"no such": {NewACP(Spec{Command: []string{"sh", "-c", "echo usage; exit 2"}}).(*agents), "exit status 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.r.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("prepared with %v", err)
			}
			got := c.r.Run(t.Context(), prompted("say hello"), newTestDesk(t), func() { t.Error("taken") })
			if got.Err == nil || !strings.Contains(got.Err.Error(), c.want) {
				t.Errorf("ran with %v", got.Err)
			}
			if name == "exits" && !strings.Contains(got.Tail, "no key") || name == "no such" && !strings.Contains(got.Tail, "usage") {
				t.Errorf("the tail is %q", got.Tail)
			}
			c.r.Close()
		})
	}
}

func TestTheSessionBeforeIsLoadedIfItCanBe(t *testing.T) {
	for _, loads := range []bool{false, true} {
		r := agent(t)
		if loads {
			r = agent(t, with("AGENT_LOADS=1"))
		}
		d := newTestDesk(t)
		if got := begin(t, r, d, prompted("pid", "exit")).result(); got.Err == nil {
			t.Fatal("it did not exit")
		}
		first := strings.Fields(d.output(Output))
		d = newTestDesk(t)
		if got := begin(t, r, d, prompted("pid")).result(); got.Err != nil {
			t.Fatal(got.Err)
		}
		second := strings.Fields(d.output(Output))
		if len(second) != 2 || first[0] == second[0] || (first[1] == second[1]) != loads {
			t.Errorf("loads %t: %q, then %q", loads, first, second)
		}
	}
}

const permissionOptions = `[{"optionId":"1","name":"a","kind":"allow_once"},{"optionId":"2","name":"b","kind":"allow_always"},{"optionId":"3","name":"c","kind":"reject_once"},{"optionId":"4","name":"d","kind":"reject_always"}]`

func TestAPermissionIsDecidedAsShown(t *testing.T) {
	all := permissionOptions
	onlyAlways := `[{"optionId":"2","name":"b","kind":"allow_always"},{"optionId":"4","name":"d","kind":"reject_always"}]`
	onlyOnce := `[{"optionId":"1","name":"a","kind":"allow_once"},{"optionId":"3","name":"c","kind":"reject_once"}]`
	onlyAllow := `[{"optionId":"1","name":"a","kind":"allow_once"},{"optionId":"2","name":"b","kind":"allow_always"}]`
	selected := func(option string) string { return `{"outcome":{"optionId":"` + option + `","outcome":"selected"}}` }
	const cancelled = `{"outcome":{"outcome":"cancelled"}}`
	for name, c := range map[string]struct {
		options string
		d       Decision
		want    string
	}{
		"allow once":             {all, Decision{Allowed: true}, selected("1")},
		"allow always":           {all, Decision{Allowed: true, Always: true}, selected("2")},
		"reject once":            {all, Decision{}, selected("3")},
		"reject always":          {all, Decision{Always: true}, selected("4")},
		"ended":                  {all, Decision{Ended: true, Allowed: true}, cancelled},
		"always, of once":        {onlyOnce, Decision{Allowed: true, Always: true}, selected("1")},
		"reject always, of once": {onlyOnce, Decision{Always: true}, selected("3")},
		"once, of always":        {onlyAlways, Decision{Allowed: true}, cancelled},
		"reject, of always":      {onlyAlways, Decision{}, selected("4")},
		"reject, of none":        {onlyAllow, Decision{}, cancelled},
		"no options":             {`[]`, Decision{Allowed: true}, cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			run := begin(t, agent(t), newTestDesk(t), prompted("say before",
				`call session/request_permission {"sessionId":"SESSION","toolCall":{"toolCallId":"c","title":"git push","rawInput":{"command": "git push"}},"options":`+c.options+`}`))
			call := run.call()
			if call.Tool != "git push" || call.Input != `{"command":"git push"}` {
				t.Errorf("shown %+v", call.Call)
			}
			if got := run.output(Output); got != "before" {
				t.Errorf("asked before what came before was written: %q", got)
			}
			call.decide <- c.d
			if got := run.result(); got.Err != nil || run.output(Output) != "beforeresult "+c.want+"\n" {
				t.Errorf("%v %q", got.Err, run.output(Output))
			}
		})
	}
}

func TestACallIsShownWhole(t *testing.T) {
	long := strings.Repeat("long ", 100)
	for call, want := range map[string]Call{
		`{"toolCallId":"c","kind":"edit","content":[{"type":"diff","path":"/a","newText":"x"}]}`: {"edit", `{"content":[{"type":"diff","path":"/a","newText":"x"}]}`},
		`{"toolCallId":"c","title":"t","rawInput":1,"content":[]}`:                               {"t", `{"content":[],"rawInput":1}`},
		`{"toolCallId":"c"}`:                        {"tool", `{}`},
		`{"toolCallId":"c","title":"a\nb"}`:         {"a b", `{"title":"a\nb"}`},
		`{"toolCallId":"c","title":"` + long + `"}`: {long[:maxTool], `{"title":"` + long + `"}`},
		`{"toolCallId":"known","status":"pending"}`: {"known call", `{"command":"rm"}`},
	} {
		run := begin(t, agent(t), newTestDesk(t), prompted(
			`update {"sessionUpdate":"tool_call","toolCallId":"known","title":"known call","rawInput":{"command":"ls"}}`,
			`update {"sessionUpdate":"tool_call_update","toolCallId":"known","rawInput":{"command":"rm"}}`,
			`call session/request_permission {"sessionId":"SESSION","toolCall":`+call+`,"options":`+permissionOptions+`}`))
		shown := run.call()
		if shown.Call != want {
			t.Errorf("%s is shown as %+v", call, shown.Call)
		}
		shown.decide <- Decision{}
		if got := run.result(); got.Err != nil {
			t.Error(got.Err)
		}
	}
}

const elicitation = `{"sessionId":"SESSION","mode":"form","message":"How?","requestedSchema":{"type":"object","title":"Settings","required":["name"],"properties":{
	"name":{"type":"string","title":"Name","description":"yours","minLength":2,"default":"me"},"size":{"type":"integer","minimum":1},"ratio":{"type":"number"},"sure":{"type":"boolean"},
	"colour":{"type":"string","enum":["r","g"],"enumNames":["red","green"]},"shape":{"type":"string","oneOf":[{"const":"c","title":"circle"}]},"many":{"type":"array","items":{"anyOf":[{"const":"x"},{"const":"y"}]},"maxItems":2},
	"day":{"type":"string","format":"date"}}}}`

func TestAnElicitationIsAForm(t *testing.T) {
	oneLine := strings.NewReplacer("\n", "", "\t", "").Replace(elicitation)
	for status, want := range map[string]string{
		"answered":  `result {"action":"accept","content":{"name":"you","size":12345678901234567890}}`,
		"declined":  `result {"action":"decline"}`,
		"cancelled": `result {"action":"cancel"}`,
		"expired":   `result {"action":"cancel"}`,
	} {
		run := begin(t, agent(t), newTestDesk(t), prompted("call elicitation/create "+oneLine))
		q := run.question()
		if q.Title != "Settings" || q.Description != "How?" || q.To != "" {
			t.Errorf("asked %+v", q.Question)
		}
		var shape []string
		for _, f := range q.Fields {
			shape = append(shape, fmt.Sprintf("%s:%s:%t:%d:%s", f.Name, f.Type, f.Required, len(f.Options), f.Pattern))
		}
		if got := strings.Join(shape, " "); got != `name:text:true:0:{"minLength":2} size:number:false:0:{"minimum":1,"type":"integer"} ratio:number:false:0: sure:checkbox:false:0: colour:select:false:2: shape:select:false:1: many:multiselect:false:2:{"maxItems":2} day:date:false:0:` {
			t.Errorf("fields: %s", got)
		}
		if f := q.Fields[0]; f.Label != "Name" || f.Help != "yours" || f.Default.Text() == "" {
			t.Errorf("the name is %+v", f)
		}
		if o := q.Fields[4].Options[0]; o != (events.Option{Value: "r", Label: "red"}) {
			t.Errorf("an option is %+v", o)
		}
		answer := Answer{Status: status}
		if status == "answered" {
			answer.Values = []byte(`{"name":"you","size":12345678901234567890,"ratio":null}`)
		}
		q.answer <- answer
		if got := run.result(); got.Err != nil || run.output(Output) != want+"\n" {
			t.Errorf("%v %q", got.Err, run.output(Output))
		}
	}
}

func TestAnElicitationIsTheSameAfterACrash(t *testing.T) {
	ask := `ask elicitation/create {"sessionId":"SESSION","mode":"form","message":"How?","requestedSchema":{"properties":{"n":{"type":"number"}}}}`
	r, d := agent(t), newTestDesk(t)
	var ids [2][]string
	for round := range ids {
		run := begin(t, r, d, prompted(ask, ask, strings.Replace(ask, "How?", "Why?", 1), "pid", "hear"))
		for range 3 {
			ids[round] = append(ids[round], run.question().ID)
		}
		slices.Sort(ids[round])
		until(t, "it says who it is", func() bool { return strings.Count(d.output(Output), "\n") == round+1 })
		lines := strings.Split(strings.TrimSpace(d.output(Output)), "\n")
		pid, err := strconv.Atoi(strings.Fields(lines[round])[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if got := run.result(); got.Err == nil || !strings.HasSuffix(got.Err.Error(), "killed by SIGKILL") {
			t.Errorf("ended with %v", got.Err)
		}
	}
	if !slices.Equal(ids[0], ids[1]) || len(slices.Compact(ids[0])) != 3 {
		t.Errorf("asked %q, and then %q", ids[0], ids[1])
	}
}

func TestWhatAnAgentAsksWronglyIsRefused(t *testing.T) {
	d := newTestDesk(t)
	got := begin(t, agent(t), d, prompted(
		`call elicitation/create {"sessionId":"SESSION","mode":"url","message":"?","url":"https://example.org","elicitationId":"e"}`,
		`call elicitation/create {"sessionId":"SESSION","mode":"form","message":"?","requestedSchema":{"properties":{"a":{"type":"object"}}}}`,
		`call elicitation/create {"sessionId":"SESSION","mode":"form","message":"?","requestedSchema":{"properties":[]}}`,
		`call elicitation/create {"sessionId":"other","mode":"form","message":"?","requestedSchema":{"properties":{"a":{"type":"string"}}}}`,
		`call session/request_permission {"sessionId":"other"}`,
		`call session/request_permission {"sessionId":"SESSION","toolCall":{"title":5}}`,
		`call fs/read_text_file {"sessionId":"SESSION","path":"/etc/passwd"}`,
		`call fs/write_text_file {"sessionId":"SESSION","path":"/tmp/x","content":"x"}`,
		`call terminal/create {"sessionId":"SESSION","command":"true"}`,
		`call terminal/output {"sessionId":"SESSION","terminalId":"terminal-1"}`,
		"say end",
	)).result()
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	if out := d.output(Output); strings.Count(out, "error {") != 10 || strings.Contains(out, "result") || strings.Count(out, string(parley.NotPermitted)) != 4 {
		t.Errorf("%s", out)
	}
}

func TestAnAgentReadsAndWritesInItsFolderOnly(t *testing.T) {
	r := agent(t, granted(accessRead, accessWrite))
	folder := r.spec.Folder
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"a": "one\ntwo\nthree\n", "big": strings.Repeat("line\n", 1<<20), "garbage": "\xff\x00"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(folder, "linked")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func(path, more string) string {
		return fmt.Sprintf(`call fs/read_text_file {"sessionId":"SESSION","path":%q%s}`, path, more)
	}
	write := func(path string) string {
		return fmt.Sprintf(`call fs/write_text_file {"sessionId":"SESSION","path":%q,"content":"new"}`, path)
	}
	in := func(name string) string { return filepath.Join(folder, name) }
	for _, c := range []struct{ line, want string }{
		{read(in("a"), ""), `result {"content":"one\ntwo\nthree\n"}`},
		{read(in("a"), `,"line":2`), `result {"content":"two\nthree\n"}`},
		{read(in("a"), `,"line":2,"limit":1`), `result {"content":"two\n"}`},
		{read(in("a"), `,"limit":0`), `result {"content":""}`},
		{read(in("a"), `,"line":-5,"limit":1`), `result {"content":"one\n"}`},
		{read(in("a"), `,"line":50`), `result {"content":""}`},
		{read(in("garbage"), ""), "result {\"content\":\"\ufffd\\u0000\"}"},
		{read(in("big"), ""), "error "},
		{read(in("big"), `,"line":1048576`), `result {"content":"line\n"}`},
		{read(in("none"), ""), "error "},
		{read(in("link"), ""), "error "},
		{read(in("linked/secret"), ""), "error "},
		{read(in("pipe"), ""), "error "},
		{read(folder, ""), "error "},
		{read("a", ""), "error "},
		{read(outside, ""), "error "},
		{read(in("../"+filepath.Base(filepath.Dir(outside))+"/secret"), ""), "error "},
		{write(in("a")), "result {}"},
		{read(in("a"), ""), `result {"content":"new"}`},
		{write(in("deep/er/b")), "result {}"},
		{write(in("link")), "error "},
		{write(in("linked/new")), "error "},
		{write(in("pipe")), "error "},
		{write(folder), "error "},
		{write(outside), "error "},
	} {
		d := newTestDesk(t)
		if got := begin(t, r, d, prompted(c.line)).result(); got.Err != nil {
			t.Fatal(got.Err)
		}
		if out := d.output(Output); !strings.HasPrefix(out, c.want) || c.want != "error " && out != c.want+"\n" || strings.Contains(out, "secret\"") {
			t.Errorf("%s: %.300s", c.line, out)
		}
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "secret" {
		t.Errorf("outside there is %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(outside), "new")); !errors.Is(err, os.ErrNotExist) {
		t.Error("something was written outside")
	}
}

func TestAnAgentRunsCommandsIfItMay(t *testing.T) {
	r := agent(t, granted(accessTerminal))
	terminal := func(method, id string) string {
		return fmt.Sprintf(`call terminal/%s {"sessionId":"SESSION","terminalId":"terminal-%s"}`, method, id)
	}
	d := newTestDesk(t)
	got := begin(t, r, d, prompted(
		`call terminal/create {"sessionId":"SESSION","command":"sh","args":["-c","echo $MINE; echo err >&2; pwd; exit 3"],"env":[{"name":"MINE","value":"v"}]}`,
		terminal("wait_for_exit", "1"), terminal("output", "1"), terminal("release", "1"), terminal("output", "1"),
		`call terminal/create {"sessionId":"SESSION","command":"sh","args":["-c","printf 0123456789; exec sleep 60"],"outputByteLimit":4}`,
		terminal("kill", "2"), terminal("wait_for_exit", "2"), terminal("output", "2"),
		`call terminal/create {"sessionId":"SESSION","command":"/there/is/none"}`,
		`call terminal/create {"sessionId":"SESSION","command":"sh","args":["-c","echo $$ > pid; sleep 60 & sleep 60"]}`,
	)).result()
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	lines := strings.Split(strings.TrimSpace(d.output(Output)), "\n")
	for i, want := range []string{
		`result {"terminalId":"terminal-1"}`, `result {"exitCode":3}`, `result {"exitStatus":{"exitCode":3},"output":"v\n`, `result {}`, `error {`,
		`result {"terminalId":"terminal-2"}`, `result {}`, `result {"signal":"SIGTERM"}`, `result {"exitStatus":{"signal":"SIGTERM"},"output":"`, `error {`,
		`result {"terminalId":"terminal-3"}`,
	} {
		if len(lines) <= i || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d is not %s: %s", i, want, d.output(Output))
		}
	}
	if !strings.Contains(lines[2], r.spec.Folder) || !strings.Contains(lines[2], "err") {
		t.Errorf("the output is %s", lines[2])
	}
	var leader []byte
	until(t, "the command runs", func() bool {
		leader, _ = os.ReadFile(filepath.Join(r.spec.Folder, "pid"))
		return len(leader) > 0
	})
	r.Close()
	wantGone(t, string(leader))
}

func TestATurnCanBeEnded(t *testing.T) {
	t.Run("an agent that hears", func(t *testing.T) {
		r := agent(t)
		run := begin(t, r, newTestDesk(t), prompted("pid", "until"))
		until(t, "waiting", func() bool { return strings.HasSuffix(run.output(Output), "waiting") })
		run.cancel(errEnough)
		if got := run.result(); got.Err != errEnough || !strings.HasSuffix(run.output(Output), "waiting cancelled") {
			t.Errorf("%v %q", got.Err, run.output(Output))
		}
		who, _, _ := strings.Cut(run.output(Output), "\n")
		d := newTestDesk(t)
		if got := begin(t, r, d, prompted("pid")).result(); got.Err != nil || d.output(Output) != who+"\n" {
			t.Errorf("%v: it is another one: %q", got.Err, d.output(Output))
		}
	})
	t.Run("an agent that asks", func(t *testing.T) {
		r := agent(t)
		run := begin(t, r, newTestDesk(t), prompted(
			`ask session/request_permission {"sessionId":"SESSION","toolCall":{"toolCallId":"c"},"options":`+permissionOptions+`}`,
			`ask elicitation/create {"sessionId":"SESSION","mode":"form","message":"?","requestedSchema":{"properties":{"a":{"type":"string"}}}}`, "hear", "hear"))
		run.call()
		run.question()
		run.cancel(errEnough)
		if got := run.result(); got.Err != errEnough {
			t.Error(got.Err)
		}
		if out := run.output(Output); !strings.Contains(out, `heard {"outcome":{"outcome":"cancelled"}}`) || !strings.Contains(out, `heard {"action":"cancel"}`) {
			t.Errorf("it heard %s", out)
		}
	})
	t.Run("an agent that hangs", func(t *testing.T) {
		r := agent(t)
		run := begin(t, r, newTestDesk(t), prompted("pid", "hang"))
		until(t, "hanging", func() bool { return strings.HasSuffix(run.output(Output), "hanging") })
		run.cancel(errEnough)
		if got := run.result(); got.Err != errEnough {
			t.Error(got.Err)
		}
		wantGone(t, strings.Fields(run.output(Output))[0])
	})
	t.Run("its time is over", func(t *testing.T) {
		run := begin(t, agent(t, func(s *Spec) { s.RunTime = 200 * time.Millisecond }), newTestDesk(t), prompted("until"))
		if got := run.result(); parley.CodeOf(got.Err) != parley.Timeout {
			t.Error(got.Err)
		}
	})
	t.Run("before it is ready", func(t *testing.T) {
		r := NewACP(script("exec sleep 60"))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(errEnough) })
		if got := r.Run(ctx, prompted(), newTestDesk(t), func() { t.Error("taken") }); got.Err != errEnough {
			t.Error(got.Err)
		}
		r.Close()
	})
}

func TestAFloodOfUpdatesWaitsForTheDesk(t *testing.T) {
	d := newTestDesk(t)
	var mu sync.Mutex
	var all strings.Builder
	d.write = func(stream Stream, text string) error {
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if stream == Output {
			all.WriteString(text)
		}
		return nil
	}
	if got := begin(t, agent(t), d, prompted("flood")).result(); got.Err != nil {
		t.Fatal(got.Err)
	}
	var want strings.Builder
	for i := range 5000 {
		fmt.Fprintln(&want, i)
	}
	if all.String() != want.String() {
		t.Errorf("%d bytes were written, not %d", all.Len(), want.Len())
	}
}

func TestTheExampleAgentOfTheLibraryRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("it is built first")
	}
	binary := filepath.Join(t.TempDir(), "agent")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := NewACP(Spec{Command: []string{binary}, Folder: t.TempDir()})
	defer r.Close()
	for _, d := range []Decision{{Allowed: true}, {}} {
		run := begin(t, r, newTestDesk(t), prompted("hello"))
		c := run.call()
		if c.Tool == "" || !json.Valid([]byte(c.Input)) {
			t.Errorf("called %+v", c.Call)
		}
		c.decide <- d
		if got := run.result(); got.Err != nil || run.output(Output) == "" || !strings.Contains(run.output(Notice), "tool_call") {
			t.Errorf("%v: %q %q", got.Err, run.output(Output), run.output(Notice))
		}
	}
}
