//go:build unix

package acp

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"parley"
	"parley/actors/runtime"
	"parley/actors/runtime/runtimetest"
	"parley/events"
	"parley/internal/eventually"
)

const permissionOptions = `[{"optionId":"1","name":"a","kind":"allow_once"},{"optionId":"2","name":"b","kind":"allow_always"},{"optionId":"3","name":"c","kind":"reject_once"},{"optionId":"4","name":"d","kind":"reject_always"}]`

func TestPermissionIsDecidedAsShown(t *testing.T) {
	all := permissionOptions
	onlyAlways := `[{"optionId":"2","name":"b","kind":"allow_always"},{"optionId":"4","name":"d","kind":"reject_always"}]`
	onlyOnce := `[{"optionId":"1","name":"a","kind":"allow_once"},{"optionId":"3","name":"c","kind":"reject_once"}]`
	onlyAllow := `[{"optionId":"1","name":"a","kind":"allow_once"},{"optionId":"2","name":"b","kind":"allow_always"}]`
	selected := func(option string) string { return `{"outcome":{"optionId":"` + option + `","outcome":"selected"}}` }
	const cancelled = `{"outcome":{"outcome":"cancelled"}}`
	for name, c := range map[string]struct {
		options string
		d       runtime.Decision
		want    string
	}{
		"allow once":             {all, runtime.Decision{Allowed: true}, selected("1")},
		"allow always":           {all, runtime.Decision{Allowed: true, Always: true}, selected("1")}, // the rule decides the next call, and not the agent
		"reject once":            {all, runtime.Decision{}, selected("3")},
		"reject always":          {all, runtime.Decision{Always: true}, selected("3")},
		"ended":                  {all, runtime.Decision{Ended: true, Allowed: true}, cancelled},
		"always, of once":        {onlyOnce, runtime.Decision{Allowed: true, Always: true}, selected("1")},
		"reject always, of once": {onlyOnce, runtime.Decision{Always: true}, selected("3")},
		"reject, of always":      {onlyAlways, runtime.Decision{}, selected("4")},
		"reject, of none":        {onlyAllow, runtime.Decision{}, cancelled},
		"no options":             {`[]`, runtime.Decision{}, cancelled},
		"one ID for both":        {`[{"optionId":"1","name":"a","kind":"allow_once"},{"optionId":"1","name":"b","kind":"reject_once"}]`, runtime.Decision{}, cancelled},
		"an ID twice":            {`[{"optionId":"1","name":"a","kind":"allow_once"},{"optionId":"1","name":"b","kind":"reject_once"},{"optionId":"2","name":"c","kind":"reject_always"}]`, runtime.Decision{}, selected("2")},
		"an unknown kind":        {`[{"optionId":"1","name":"a","kind":"allow_session"},{"optionId":"2","name":"b","kind":"reject_once"}]`, runtime.Decision{}, selected("2")},
		"an empty ID":            {`[{"optionId":"","name":"a","kind":"reject_once"},{"optionId":"2","name":"b","kind":"allow_once"}]`, runtime.Decision{}, cancelled},
	} {
		t.Run(name, func(t *testing.T) {
			run := runtimetest.Begin(t, agent(t), runtimetest.NewHost(t), prompted("say before",
				`call session/request_permission {"sessionId":"SESSION","toolCall":{"toolCallId":"c","title":"git push","rawInput":{"command": "git push"}},"options":`+c.options+`}`))
			call := run.NextCall()
			if call.Tool != "git push" || call.Input != `{"command":"git push"}` {
				t.Errorf("shown %+v", call.Call)
			}
			if may := strings.Contains(c.options, `"allow_once"`) && name != "one ID for both" && name != "an ID twice"; call.DenyOnly == may {
				t.Errorf("it can only be denied: %t", call.DenyOnly)
			}
			if got := run.Text(runtime.Output); got != "before" {
				t.Errorf("asked before what came before was written: %q", got)
			}
			call.Decide <- c.d
			if got := run.Result(); got.Err != nil || run.Text(runtime.Output) != "beforeresult "+c.want+"\n" {
				t.Errorf("%v %q", got.Err, run.Text(runtime.Output))
			}
		})
	}
}

func TestCallIsShownInFull(t *testing.T) {
	long := strings.Repeat("long ", 100)
	for call, want := range map[string]parley.Permission{
		`{"toolCallId":"c","kind":"edit","content":[{"type":"diff","path":"/a","newText":"x"}]}`: {Tool: "edit", Input: `{"content":[{"type":"diff","path":"/a","newText":"x"}]}`},
		`{"toolCallId":"c","title":"t","rawInput":1,"content":[]}`:                               {Tool: "t", Input: `{"content":[],"rawInput":1}`},
		`{"toolCallId":"c"}`:                        {Tool: "tool", Input: `{}`},
		`{"toolCallId":"c","title":"a\nb"}`:         {Tool: "a b", Input: `{"title":"a\nb"}`},
		`{"toolCallId":"c","title":"` + long + `"}`: {Tool: long[:maxTool], Input: `{"title":"` + long + `"}`},
		`{"toolCallId":"known","status":"pending"}`: {Tool: "known call", Input: `{"command":"rm"}`},
	} {
		run := runtimetest.Begin(t, agent(t), runtimetest.NewHost(t), prompted(
			`update {"sessionUpdate":"tool_call","toolCallId":"known","title":"known call","rawInput":{"command":"ls"}}`,
			`update {"sessionUpdate":"tool_call_update","toolCallId":"known","rawInput":{"command":"rm"}}`,
			`call session/request_permission {"sessionId":"SESSION","toolCall":`+call+`,"options":`+permissionOptions+`}`))
		shown := run.NextCall()
		if !reflect.DeepEqual(shown.Permission, want) {
			t.Errorf("%s is shown as %+v", call, shown.Call)
		}
		shown.Decide <- runtime.Decision{}
		if got := run.Result(); got.Err != nil {
			t.Error(got.Err)
		}
	}
}

func TestUndisplayableCallIsRefused(t *testing.T) {
	for name, line := range map[string]string{
		"told before": `update {"sessionUpdate":"tool_call","toolCallId":"c","title":"t","rawInput":"` + strings.Repeat("x", keptCallSize) + `"}`,
		"refused":     "say nothing",
	} {
		d := runtimetest.NewHost(t)
		d.ApproveFunc = func(runtime.Call) (runtime.Decision, error) {
			if name == "told before" {
				t.Error("the host was asked")
			}
			return runtime.Decision{Allowed: true}, parley.Refuse(parley.TooLarge, "it is too long")
		}
		got := runtimetest.Begin(t, agent(t), d, prompted(line, `call session/request_permission {"sessionId":"SESSION","toolCall":{"toolCallId":"c"},"options":`+permissionOptions+`}`)).Result()
		if got.Err != nil || !strings.HasSuffix(d.Text(runtime.Output), `result {"outcome":{"optionId":"3","outcome":"selected"}}`+"\n") {
			t.Errorf("%s: %v %q", name, got.Err, d.Text(runtime.Output))
		}
		if !strings.Contains(d.Text(runtime.Errors), "TOO_LARGE") {
			t.Errorf("%s: nobody is told why: %q", name, d.Text(runtime.Errors))
		}
	}
}

const askedForm = `{"sessionId":"SESSION","mode":"form","message":"How?","requestedSchema":{"type":"object","title":"Settings","required":["name"],"properties":{
	"name":{"type":"string","title":"Name","description":"yours","minLength":2,"default":"me"},"size":{"type":"integer","minimum":1},"ratio":{"type":"number"},"sure":{"type":"boolean"},
	"colour":{"type":"string","enum":["r","g"],"enumNames":["red","green"]},"shape":{"type":"string","oneOf":[{"const":"c","title":"circle"}]},"many":{"type":"array","items":{"anyOf":[{"const":"x"},{"const":"y"}]},"maxItems":2},
	"day":{"type":"string","format":"date"}}}}`

func TestElicitationBecomesForm(t *testing.T) {
	oneLine := strings.NewReplacer("\n", "", "\t", "").Replace(askedForm)
	for status, want := range map[string]string{
		"answered":  `result {"action":"accept","content":{"name":"you","size":12345678901234567890}}`,
		"declined":  `result {"action":"decline"}`,
		"cancelled": `result {"action":"cancel"}`,
		"expired":   `result {"action":"cancel"}`,
	} {
		run := runtimetest.Begin(t, agent(t), runtimetest.NewHost(t), prompted("call elicitation/create "+oneLine))
		q := run.NextQuestion()
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
		answer := runtime.Answer{Status: status}
		if status == "answered" {
			answer.Values = []byte(`{"name":"you","size":12345678901234567890,"ratio":null}`)
		}
		q.Reply <- answer
		if got := run.Result(); got.Err != nil || run.Text(runtime.Output) != want+"\n" {
			t.Errorf("%v %q", got.Err, run.Text(runtime.Output))
		}
	}
}

func TestElicitationIsFoundAfterCrash(t *testing.T) {
	ask := `ask elicitation/create {"sessionId":"SESSION","mode":"form","message":"How?","requestedSchema":{"properties":{"n":{"type":"number"}}}}`
	r, d := agent(t), runtimetest.NewHost(t)
	var ids [2][]string
	for round := range ids {
		run := runtimetest.Begin(t, r, d, prompted(ask, ask, strings.Replace(ask, "How?", "Why?", 1), "pid", "receive"))
		for range 3 {
			ids[round] = append(ids[round], run.NextQuestion().ID)
		}
		slices.Sort(ids[round])
		eventually.Holds(t, "it says who it is", func() bool { return strings.Count(d.Text(runtime.Output), "\n") == round+1 })
		lines := strings.Split(strings.TrimSpace(d.Text(runtime.Output)), "\n")
		pid, err := strconv.Atoi(strings.Fields(lines[round])[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if got := run.Result(); got.Err == nil || !strings.HasSuffix(got.Err.Error(), "killed by SIGKILL") {
			t.Errorf("ended with %v", got.Err)
		}
	}
	if !slices.Equal(ids[0], ids[1]) || len(slices.Compact(ids[0])) != 3 {
		t.Errorf("asked %q, and then %q", ids[0], ids[1])
	}
}

func TestInvalidRequestsAreRefused(t *testing.T) {
	d := runtimetest.NewHost(t)
	got := runtimetest.Begin(t, agent(t), d, prompted(
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
	)).Result()
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	if out := d.Text(runtime.Output); strings.Count(out, "error {") != 10 || strings.Contains(out, "result") || strings.Count(out, string(parley.NotPermitted)) != 4 {
		t.Errorf("%s", out)
	}
}
