//go:build unix

package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/actors/runtime"
	"parley/actors/runtime/proctest"
	"parley/actors/runtime/runtimetest"
	"parley/internal/eventually"
)

// agent returns the runtime of the test agent, and closes it after the test.
func agent(t testing.TB, change ...func(*runtime.Spec)) *program {
	t.Helper()
	s := runtimetest.Playing("agent")
	s.Folder = t.TempDir()
	for _, c := range change {
		c(&s)
	}
	r := New(s).(*program)
	t.Cleanup(r.Close)
	return r
}

func with(variable string) func(*runtime.Spec) {
	return func(s *runtime.Spec) { s.Environment = append(s.Environment, variable) }
}

func granted(access ...string) func(*runtime.Spec) {
	return func(s *runtime.Spec) { s.Access = access }
}

// prompted returns a prompt of some lines.
func prompted(lines ...string) runtime.Prompt {
	return runtime.Prompt{Run: "r", Text: strings.Join(lines, "\n")}
}

func TestOutputOfAgent(t *testing.T) {
	d := runtimetest.NewHost(t)
	r := agent(t)
	run := runtimetest.Begin(t, r, d, prompted(
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
	result := run.Result()
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	var got []string
	for _, w := range d.Written {
		switch said := string(w.Stream) + ": "; {
		case w.Stream == runtime.Errors:
		case w.Stream == runtime.Output && len(got) > 0 && strings.HasPrefix(got[len(got)-1], said):
			got[len(got)-1] += w.Text
		default:
			got = append(got, said+w.Text)
		}
	}
	want := []string{
		"output: onetwo",
		`notice: {"sessionUpdate":"agent_thought_chunk","text":"I think"}`,
		`notice: {"sessionUpdate":"tool_call","toolCallId":"c1","title":"ls","kind":"execute","content":[],"parley/line":"execute ls"}`,
		`notice: {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","parley/line":"execute ls · completed"}`,
		`notice: {"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"}]}`,
		`notice: {"cut":true,"parley/line":"big","sessionUpdate":"tool_call","title":"big","toolCallId":"c2"}`,
		`notice: {"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"AAAA","mimeType":"image/png"}}`,
	}
	if len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
		t.Errorf("written: %s", strings.Join(got, "\n"))
	}
	if rest := d.Text(runtime.Output); !strings.HasSuffix(rest, "three") || strings.Count(rest, "Method not found") != 2 || strings.Contains(rest, "not mine") {
		t.Errorf("put out: %s", rest)
	}
	beside := d.Text(runtime.Errors)
	for _, want := range []string{"starting\n", "\ufffd\x00{\n", "not a message\n", "beside\n"} {
		if !strings.Contains(beside, want) {
			t.Errorf("no %q beside: %s", want, beside)
		}
	}
	if strings.Contains(beside, "terminal") {
		t.Errorf("it received terminals: %s", beside)
	}
	for _, want := range []string{`"protocolVersion":1`, `"fs":{}`, `"form":{}`} {
		if !strings.Contains(beside, want) {
			t.Errorf("it did not receive %s: %s", want, beside)
		}
	}
}

func TestTurnResults(t *testing.T) {
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
			d := runtimetest.NewHost(t)
			r := agent(t)
			got := runtimetest.Begin(t, r, d, prompted("say said", line)).Result()
			if (got.Err == nil) != (want == "") || got.Err != nil && !strings.Contains(got.Err.Error(), want) {
				t.Errorf("ended with %v", got.Err)
			}
			if d.Text(runtime.Output) != "said" {
				t.Errorf("put out %q", d.Text(runtime.Output))
			}
			if reason, stopped := strings.CutPrefix(line, "stop "); stopped && reason != "end_turn" && reason != "cancelled" && reason != "fail" {
				if d.Text(runtime.Notice) != `{"stopReason":"`+reason+`"}` {
					t.Errorf("the notice is %q", d.Text(runtime.Notice))
				}
			}
			if !strings.Contains(got.Tail, "starting\n") || !strings.Contains(got.Tail, "said") {
				t.Errorf("the tail is %q", got.Tail)
			}
			d = runtimetest.NewHost(t)
			if got := runtimetest.Begin(t, r, d, prompted("say again")).Result(); got.Err != nil || d.Text(runtime.Output) != "again" {
				t.Errorf("and then: %v, %q", got.Err, d.Text(runtime.Output))
			}
		})
	}
}

func TestAgentThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		r    *program
		want string
	}{
		"exits":   {agent(t, with("AGENT_FAILS=1")), "exit status 3"},
		"version": {agent(t, with("AGENT_VERSION=7")), "version 7"},
		"missing": {New(runtime.Spec{Command: []string{"/there/is/none"}}).(*program), "cannot be started"},
		"no such": {New(runtime.Spec{Command: []string{"sh", "-c", "echo usage; exit 2"}}).(*program), "exit status 2"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.r.Prepare(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("prepared with %v", err)
			}
			got := c.r.Run(t.Context(), prompted("say hello"), runtimetest.NewHost(t), func() { t.Error("taken") })
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

func TestEarlierSessionIsLoaded(t *testing.T) {
	for _, loads := range []bool{false, true} {
		r := agent(t)
		if loads {
			r = agent(t, with("AGENT_LOADS=1"))
		}
		d := runtimetest.NewHost(t)
		if got := runtimetest.Begin(t, r, d, prompted("pid", "exit")).Result(); got.Err == nil {
			t.Fatal("it did not exit")
		}
		first := strings.Fields(d.Text(runtime.Output))
		d = runtimetest.NewHost(t)
		if got := runtimetest.Begin(t, r, d, prompted("pid")).Result(); got.Err != nil {
			t.Fatal(got.Err)
		}
		second := strings.Fields(d.Text(runtime.Output))
		if len(second) != 2 || first[0] == second[0] || (first[1] == second[1]) != loads {
			t.Errorf("loads %t: %q, then %q", loads, first, second)
		}
	}
}

func TestTurnCanBeEnded(t *testing.T) {
	t.Run("an agent that asks", func(t *testing.T) {
		r := agent(t)
		run := runtimetest.Begin(t, r, runtimetest.NewHost(t), prompted(
			`ask session/request_permission {"sessionId":"SESSION","toolCall":{"toolCallId":"c"},"options":`+permissionOptions+`}`,
			`ask elicitation/create {"sessionId":"SESSION","mode":"form","message":"?","requestedSchema":{"properties":{"a":{"type":"string"}}}}`, "receive", "receive"))
		run.NextCall()
		run.NextQuestion()
		run.Cancel(proctest.ErrEnough)
		if got := run.Result(); got.Err != proctest.ErrEnough {
			t.Error(got.Err)
		}
		if out := run.Text(runtime.Output); !strings.Contains(out, `received {"outcome":{"outcome":"cancelled"}}`) || !strings.Contains(out, `received {"action":"cancel"}`) {
			t.Errorf("it received %s", out)
		}
	})
	t.Run("its time is over", func(t *testing.T) {
		run := runtimetest.Begin(t, agent(t, func(s *runtime.Spec) { s.RunTime = 200 * time.Millisecond }), runtimetest.NewHost(t), prompted("until"))
		if got := run.Result(); parley.CodeOf(got.Err) != parley.Timeout {
			t.Error(got.Err)
		}
	})
	t.Run("before it is ready", func(t *testing.T) {
		r := New(runtimetest.Script("exec sleep 60"))
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(50*time.Millisecond, func() { cancel(proctest.ErrEnough) })
		if got := r.Run(ctx, prompted(), runtimetest.NewHost(t), func() { t.Error("taken") }); got.Err != proctest.ErrEnough {
			t.Error(got.Err)
		}
		r.Close()
	})
}

func TestManyUpdatesWaitForHost(t *testing.T) {
	d := runtimetest.NewHost(t)
	var mu sync.Mutex
	var all strings.Builder
	first, room := make(chan struct{}, 1<<16), make(chan struct{})
	d.WriteFunc = func(stream runtime.Stream, text string) error {
		if stream == runtime.Output {
			first <- struct{}{}
			<-room
			mu.Lock()
			defer mu.Unlock()
			all.WriteString(text)
		}
		return nil
	}
	run := runtimetest.Begin(t, agent(t), d, prompted("flood"))
	proctest.Next(t, first)
	eventually.Holds(t, "it waits", func() bool { return proctest.IsWaiting(t) })
	close(room)
	if got := run.Result(); got.Err != nil {
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

func TestExampleAgentOfLibrary(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "agent")
	if out, err := exec.Command("go", "build", "-o", binary, "github.com/coder/acp-go-sdk/example/agent").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := New(runtime.Spec{Command: []string{binary}, Folder: t.TempDir()})
	defer r.Close()
	for _, d := range []runtime.Decision{{Allowed: true}, {}} {
		run := runtimetest.Begin(t, r, runtimetest.NewHost(t), prompted("hello"))
		c := run.NextCall()
		if c.Tool == "" || !json.Valid([]byte(c.Input)) {
			t.Errorf("called %+v", c.Call)
		}
		c.Decide <- d
		if got := run.Result(); got.Err != nil || run.Text(runtime.Output) == "" || !strings.Contains(run.Text(runtime.Notice), "tool_call") {
			t.Errorf("%v: %q %q", got.Err, run.Text(runtime.Output), run.Text(runtime.Notice))
		}
	}
}

func TestAgentConforms(t *testing.T) {
	runtimetest.Conforms(t, runtimetest.Kind{
		New:  func(t testing.TB) runtime.Program { return agent(t) },
		Who:  prompted("pid", "errors beside"),
		Wait: prompted("pid", "until"),
		Hang: prompted("pid", "hang"),
		Die:  prompted("pid", "exit"),
	})
}
