//go:build unix

package exec

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"parley/actors/runtime"
	"parley/actors/runtime/runtimetest"
	"parley/events"
)

func TestExamplesRun(t *testing.T) {
	t.Run("sh", func(t *testing.T) {
		r := New(runtime.Spec{Command: []string{"sh", "testdata/agent.sh"}})
		run := runtimetest.Begin(t, r, runtimetest.NewHost(t), hello)
		q := run.NextQuestion()
		if q.ID != "port" || q.Description != "Which port?" || len(q.Fields) != 1 || q.Fields[0].Type != events.Select || len(q.Fields[0].Options) != 2 {
			t.Errorf("asked %+v", q.Question)
		}
		q.Reply <- runtime.Answer{Status: "answered", Values: []byte(`{"value":"443"}`), By: "host"}
		c := run.NextCall()
		if c.Tool != "listen" || c.Input != `{"port":"443"}` {
			t.Errorf("called %+v", c.Call)
		}
		c.Decide <- runtime.Decision{Allowed: true}
		if got := run.Result(); got.Err != nil || run.Text(runtime.Output) != "working on: hello \"there\"\nlistening on 443" {
			t.Errorf("%v %q", got.Err, run.Text(runtime.Output))
		}
	})
	t.Run("python", func(t *testing.T) {
		if _, err := exec.LookPath("python3"); err != nil {
			t.Skip("there is no python3")
		}
		r := New(runtime.Spec{Command: []string{"python3", "testdata/agent.py"}, Keep: true})
		defer r.Close()
		d := runtimetest.NewHost(t)
		run := runtimetest.Begin(t, r, d, hello)
		q := run.NextQuestion()
		if q.ID != "settings" || q.Title != "Settings" || len(q.Fields) != 2 || q.Fields[0].Type != events.Number || !q.Fields[0].Required {
			t.Errorf("asked %+v", q.Question)
		}
		q.Reply <- runtime.Answer{Status: "answered", Values: []byte(`{"port":443}`)}
		c := run.NextCall()
		if c.Input != `{"port":443}` && c.Input != `{"port": 443}` {
			t.Errorf("called %+v", c.Call)
		}
		c.Decide <- runtime.Decision{Reason: "not today"}
		if got := run.Result(); got.Err != nil || d.Text(runtime.Output) != "working on: hello \"there\"\nnot deployed\n" {
			t.Errorf("%v %q", got.Err, d.Text(runtime.Output))
		}
		again := runtimetest.Begin(t, r, d, hello)
		again.NextQuestion().Reply <- runtime.Answer{Status: "declined"}
		if got := again.Result(); got.Err == nil || got.Err.Error() != "INTERNAL: no settings: declined" {
			t.Errorf("%v", got.Err)
		}
	})
}

func TestExamplesAreInGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, language := range map[string]string{"testdata/agent.sh": "sh", "testdata/agent.py": "python"} {
		example, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(guide), "```"+language+"\n"+string(example)+"```\n") {
			t.Errorf("%s is not in docs/agents.md as it is", file)
		}
		if n := strings.Count(string(example), "\n"); n > 20 {
			t.Errorf("%s has %d lines", file, n)
		}
	}
}
