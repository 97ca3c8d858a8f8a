//go:build unix

package exec

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley"
	"parley/actors/runtime"
	"parley/actors/runtime/proctest"
	"parley/actors/runtime/runtimetest"
	"parley/events"
	"parley/internal/eventually"
)

var hello = runtime.Prompt{Run: "r1", Agent: "a1", Message: "m1", From: "f1", Text: "hello \"there\""}

func TestCommandGetsPrompt(t *testing.T) {
	d, r := run(t, runtimetest.Script(`read -r line; printf '> %s\n' "$line"; echo "$PARLEY_AGENT $PARLEY_RUN $PARLEY_MESSAGE $PARLEY_PROMPT $MINE"; echo oops >&2`), hello)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	line, rest, _ := strings.Cut(d.Text(runtime.Output), "\n")
	if want := `> {"type":"prompt","id":"m1","run":"r1","agent":"a1","from":"f1","text":"hello \"there\""}`; line != want {
		t.Errorf("the prompt: %s", line)
	}
	if rest != "a1 r1 m1 hello \"there\" \n" {
		t.Errorf("the environment: %q", rest)
	}
	if got := d.Text(runtime.Errors); got != "oops\n" {
		t.Errorf("standard error: %q", got)
	}
	if !strings.HasSuffix(strings.ReplaceAll(r.Tail, "oops\n", ""), rest) || !strings.Contains(r.Tail, "oops\n") {
		t.Errorf("the tail: %q", r.Tail)
	}
}

func TestRunResults(t *testing.T) {
	for name, c := range map[string]struct {
		spec   runtime.Spec
		err    string
		output string
		tail   string
	}{
		"status 0":                         {spec: runtimetest.Script(`printf 'no end'`), output: "no end", tail: "no end"},
		"done":                             {spec: runtimetest.Script(`echo '{"type":"done","text":"bye"}'; exit 3`), output: "bye", tail: "bye"},
		"done without a newline":           {spec: runtimetest.Script(`printf '{"type":"done","text":"bye"}'; exit 3`), output: "bye", tail: "bye"},
		"done badly":                       {spec: runtimetest.Script(`echo '{"type":"done","error":"no luck"}'`), err: "INTERNAL: no luck"},
		"an error":                         {spec: runtimetest.Script(`echo '{"type":"error","message":"no luck"}'; exit 2`), err: "INTERNAL: no luck"},
		"an error, and no more":            {spec: runtimetest.Script(`echo '{"type":"error","message":"no luck"}'; echo`), err: "INTERNAL: no luck", output: "\n", tail: "\n"},
		"a passing error":                  {spec: runtimetest.Script(`echo '{"type":"error","message":"again"}'; echo '{"type":"item.completed"}'`), output: "{\"type\":\"item.completed\"}\n", tail: "again\n{\"type\":\"item.completed\"}\n"},
		"an error that passes and returns": {spec: runtimetest.Script(`echo '{"type":"error","message":"again"}'; echo on; echo '{"type":"error","message":"no luck"}'`), err: "INTERNAL: no luck", output: "on\n", tail: "again\non\n"},
		"an error, done":                   {spec: runtimetest.Script(`echo '{"type":"error","message":"no luck"}'; echo '{"type":"done","text":"bye"}'`), err: "INTERNAL: no luck", output: "bye", tail: "bye"},
		"a passing error, done":            {spec: runtimetest.Script(`echo '{"type":"error","message":"again"}'; echo on; echo '{"type":"done","text":"bye"}'`), output: "on\nbye", tail: "again\non\nbye"},
		"an error of others":               {spec: runtimetest.Script(`echo '{"type":"error","error":{"name":"no luck"}}'; echo on`), output: "{\"type\":\"error\",\"error\":{\"name\":\"no luck\"}}\non\n", tail: "{\"type\":\"error\",\"error\":{\"name\":\"no luck\"}}\non\n"},
		"a failed turn":                    {spec: runtimetest.Script(`echo '{"type":"error","message":"no luck"}'; echo '{"type":"turn.failed"}'; exit 1`), err: "INTERNAL: no luck", output: "{\"type\":\"turn.failed\"}\n", tail: "no luck\n{\"type\":\"turn.failed\"}\n"},
		"a status":                         {spec: runtimetest.Script(`echo out; exit 3`), err: "INTERNAL: the program ended: exit status 3", output: "out\n", tail: "out\n"},
		"a signal":                         {spec: runtimetest.Script(`echo out; kill -9 $$`), err: "INTERNAL: the program ended: killed by SIGKILL", output: "out\n", tail: "out\n"},
		"not JSON":                         {spec: runtimetest.Script(`echo '{"type":"done"'; echo '"done"'; echo '{}'`), output: "{\"type\":\"done\"\n\"done\"\n{}\n", tail: "{\"type\":\"done\"\n\"done\"\n{}\n"},
		"output":                           {spec: runtimetest.Script(`echo '{"type":"output","text":"a\u0000"}'; echo '{"type":"output"}'; echo b`), output: "a\x00b\n", tail: "a\x00b\n"},
		"closed pipes":                     {spec: runtimetest.Script(`exec <&- >&- 2>&-; exit 4`), err: "INTERNAL: the program ended: exit status 4"},
		"another run's end":                {spec: runtimetest.Script(`echo '{"type":"done","run":"other"}'; echo out`), output: "out\n", tail: "out\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d, r := run(t, c.spec, hello)
			if (r.Err == nil) != (c.err == "") || r.Err != nil && r.Err.Error() != c.err {
				t.Errorf("ended with %v", r.Err)
			}
			if got := d.Text(runtime.Output); got != c.output || r.Tail != c.tail {
				t.Errorf("put out %q, tail %q", got, r.Tail)
			}
		})
	}
}

func TestInvalidProgramsAreRefused(t *testing.T) {
	for _, command := range [][]string{nil, {"/there/is/no/such/program"}, {os.TempDir()}} {
		for _, keep := range []bool{false, true} {
			r := New(runtime.Spec{Command: command, Keep: keep})
			got := r.Run(t.Context(), hello, runtimetest.NewHost(t), func() { t.Error("taken") })
			if parley.CodeOf(got.Err) != parley.InvalidArgument {
				t.Errorf("%q: %v", command, got.Err)
			}
			if err := r.Prepare(t.Context()); keep && err == nil {
				t.Errorf("%q was prepared", command)
			}
			r.Close()
		}
	}
}

func TestLongPromptIsCutInEnvironmentOnly(t *testing.T) {
	p := hello
	p.Text = strings.Repeat("é", 1<<20) + "\x00"
	d, r := run(t, runtimetest.Script(`printf '%s' "$PARLEY_PROMPT" | wc -c; read -r line; printf '%s' "$line" | wc -c`), p)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	var environment, line int
	if _, err := fmt.Sscan(d.Text(runtime.Output), &environment, &line); err != nil {
		t.Fatal(err)
	}
	if environment < 130_000 || environment > 128<<10 || line < 2<<20 {
		t.Errorf("%d bytes in the environment, %d in the line", environment, line)
	}
}

// receivedLines returns the JSON lines that a program has received and printed.
func receivedLines(t testing.TB, output string) map[string]map[string]any {
	t.Helper()
	lines := map[string]map[string]any{}
	for l := range strings.Lines(output) {
		var v map[string]any
		if text, ok := strings.CutPrefix(l, "> "); ok && json.Unmarshal([]byte(text), &v) == nil {
			id, _ := v["id"].(string)
			lines[id] = v
		}
	}
	return lines
}

func TestAnswersComeInAnyOrder(t *testing.T) {
	s := runtimetest.Script(`read prompt
		echo '{"type":"ask","id":"a","prompt":"a?","widgets":[{"type":"checkbox","label":"l","options":["x","y"],"default":"x"},{"type":"buttons","options":["z"]}],"to":"bob","title":"t","timeoutMs":1500}'
		echo '{"type":"ask_user","id":"b","title":"b?","fields":[{"name":"n","type":"number"}]}'
		echo '{"type":"approval","id":"c","tool":"shell","input":{ "command" : "ls" }}'
		echo '{"type":"ask","id":"d","prompt":"d?"}'
		echo '{"type":"approval","id":"e","tool":"shell"}'
		echo '{"type":"ask","id":"f","prompt":"f?","widgets":[{"type":"options","multiSelect":true,"options":["x",{"label":"y","description":"why"}]}]}'
		for i in 1 2 3 4 5 6; do read line; echo "> $line"; done`)
	run := runtimetest.Begin(t, New(s), runtimetest.NewHost(t), hello)
	questions, calls := map[string]*runtimetest.OpenQuestion{}, map[string]*runtimetest.OpenCall{}
	for range 4 {
		q := run.NextQuestion()
		questions[q.ID] = q
	}
	for range 2 {
		c := run.NextCall()
		calls[c.Input] = c
	}
	a := questions["a"]
	if a.To != "bob" || a.Title != "t" || a.Timeout != 1500*time.Millisecond || len(a.Fields) != 2 || a.Fields[0].Name != "value" || a.Fields[1].Name != "value2" || a.Fields[0].Required {
		t.Errorf("a is %+v", a.Question)
	}
	if b := questions["b"]; b.Title != "b?" || b.Description != "b?" || b.Fields[0].Name != "n" {
		t.Errorf("b is %+v", b.Question)
	}
	if d := questions["d"]; d.Fields[0].Type != events.Confirm || d.Fields[0].Options[0].Value != "Yes" || !d.Fields[0].Required {
		t.Errorf("d is %+v", d.Question)
	}
	if f := questions["f"]; len(f.Fields) != 2 || f.Fields[0].Type != events.Checkbox || f.Fields[0].Options[1].Description != "why" {
		t.Errorf("f is %+v", f.Question)
	}
	calls["null"].Decide <- runtime.Decision{Ended: true, Allowed: true}
	questions["d"].Reply <- runtime.Answer{Status: "expired"}
	calls[`{"command":"ls"}`].Decide <- runtime.Decision{Allowed: true, Always: true, Reason: "fine"}
	questions["b"].Reply <- runtime.Answer{Status: "declined", By: "bob", Note: "no"}
	a.Reply <- runtime.Answer{Status: "answered", Values: []byte(`{"value2":"z","value":null}`)}
	questions["f"].Reply <- runtime.Answer{Status: "answered", Values: []byte(`{"value":["x","Other"],"value_other":"z"}`)}
	if r := run.Result(); r.Err != nil {
		t.Fatal(r.Err)
	}
	got := run.Text(runtime.Output)
	for _, want := range []string{
		`{"type":"answer","id":"a","status":"answered","value":"z","values":{"value2":"z","value":null}}`,
		`{"type":"answer","id":"f","status":"answered","value":["x","z"],"values":{"value":["x","Other"],"value_other":"z"}}`,
		`{"type":"answer","id":"b","status":"declined","by":"bob","note":"no"}`,
		`{"type":"decision","id":"c","approved":true,"always":true,"reason":"fine"}`,
		`{"type":"answer","id":"d","status":"expired"}`,
		`{"type":"decision","id":"e","approved":false,"always":false}`,
	} {
		if !strings.Contains(got, "> "+want+"\n") {
			t.Errorf("missing %s in %s", want, got)
		}
	}
}

func TestInvalidLinesAreReported(t *testing.T) {
	lines := []string{
		`{"type":"ask","id":"no prompt"}`,
		`{"type":"ask","prompt":"no id"}`,
		`{"type":"ask","id":"number","prompt":5}`,
		`{"type":"ask","id":"widget","prompt":"?","widgets":[{"type":"slider"}]}`,
		`{"type":"ask","id":"options","prompt":"?","widgets":[{"type":"checkbox"}]}`,
		`{"type":"ask","id":"timeout","prompt":"?","timeoutMs":-1}`,
		`{"type":"ask","id":"` + strings.Repeat("i", runtime.MaxID+1) + `","prompt":"?"}`,
		`{"type":"ask_user","id":"no fields","title":"?"}`,
		`{"type":"ask_user","id":"no title","fields":[{"name":"n"}]}`,
		`{"type":"approval","id":"no tool"}`,
		`{"type":"send","id":"nobody","text":"t"}`,
		`{"type":"send","id":"unknown","to":"unknown","text":"t"}`,
		`{"type":"send","id":"known","to":"known","text":"t"}`,
		`{"type":"error","id":"no message"}`,
		`{"type":"dance","id":"unknown type"}`,
		`{"type":"ask","id":"deep","prompt":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`,
	}
	s := runtimetest.Script("read prompt\ncat <<'END'\n" + strings.Join(lines, "\n") + "\nEND\nfor i in " + strings.Repeat("1 ", len(lines)) + `; do read -r line; printf '> %s\n' "$line"; done; echo '{"type":"done"}'`)
	d := runtimetest.NewHost(t)
	d.SendFunc = func(to, _ string) error {
		if to == "unknown" {
			return parley.Refuse(parley.UnknownName, "there is no %s", to)
		}
		return nil
	}
	run := runtimetest.Begin(t, New(s), d, hello)
	if r := run.Result(); r.Err != nil {
		t.Fatal(r.Err)
	}
	got := receivedLines(t, d.Text(runtime.Output))
	for id, want := range map[string]parley.Code{
		"no prompt": parley.InvalidArgument, "": parley.InvalidArgument, "number": parley.InvalidArgument, "widget": parley.InvalidForm, "options": parley.InvalidForm,
		"timeout": parley.InvalidArgument, "no fields": parley.InvalidArgument, "no title": parley.InvalidArgument, "no tool": parley.InvalidArgument,
		"nobody": parley.InvalidArgument, "unknown": parley.UnknownName, "no message": parley.InvalidArgument, "unknown type": parley.InvalidArgument,
	} {
		if l := got[id]; l["type"] != "error" || l["code"] != string(want) || l["message"] == "" {
			t.Errorf("%q: %v", id, l)
		}
	}
	if got["known"]["type"] != "sent" {
		t.Errorf("sent: %v", got["known"])
	}
	if !strings.Contains(d.Text(runtime.Output), lines[14]+"\n") {
		t.Error("a line of an unknown type is plain output too")
	}
}

func TestOpenQuestionsAreLimited(t *testing.T) {
	run := runtimetest.Begin(t, New(runtimetest.Playing("many")), runtimetest.NewHost(t), hello)
	var open []*runtimetest.OpenQuestion
	for range runtime.MaxOpen {
		open = append(open, run.NextQuestion())
	}
	eventually.Holds(t, "the others are refused", func() bool { return strings.Count(run.Text(runtime.Output), "RATE_LIMITED") == 100-runtime.MaxOpen })
	for _, q := range open {
		q.Reply <- runtime.Answer{Status: "cancelled"}
	}
	if r := run.Result(); r.Err != nil {
		t.Fatal(r.Err)
	}
	if got := run.Text(runtime.Output); strings.Count(got, `"status":"cancelled"`) != runtime.MaxOpen {
		t.Errorf("%s", got)
	}
}

func TestQuestionOutlivesProgram(t *testing.T) {
	for _, keep := range []bool{false, true} {
		s := runtimetest.Playing("echo")
		s.Keep = keep
		r := New(s)
		d := runtimetest.NewHost(t)
		p := runtime.Prompt{Run: "r1", Text: "ask which"}
		run := runtimetest.Begin(t, r, d, p)
		first := run.NextQuestion()
		pids := proctest.Programs(t)
		if len(pids) != 1 {
			t.Fatalf("there are %v", pids)
		}
		if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if got := run.Result(); got.Err == nil || !strings.HasSuffix(got.Err.Error(), "killed by SIGKILL") {
			t.Fatalf("ended with %v", got.Err)
		}
		p.Run = "r2"
		run = runtimetest.Begin(t, r, d, p)
		again := run.NextQuestion()
		if again.ID != first.ID {
			t.Errorf("asked %q, and then %q", first.ID, again.ID)
		}
		again.Reply <- runtime.Answer{Status: "answered", Values: []byte(`{"value":"Yes"}`)}
		if got := run.Result(); got.Err != nil || d.Text(runtime.Output) != "which answered\n" {
			t.Errorf("%v %q", got.Err, d.Text(runtime.Output))
		}
		r.Close()
	}
}

// run runs a prompt on a new runtime to its end.
func run(t testing.TB, s runtime.Spec, p runtime.Prompt) (*runtimetest.Host, runtime.Result) {
	t.Helper()
	r := New(s)
	defer r.Close()
	d := runtimetest.NewHost(t)
	return d, runtimetest.Begin(t, r, d, p).Result()
}

func TestProgramConforms(t *testing.T) {
	runtimetest.Conforms(t, runtimetest.Kind{
		New: func(testing.TB) runtime.Program {
			s := runtimetest.Playing("echo")
			s.Keep = true
			return New(s)
		},
		Who:  runtime.Prompt{Run: "who", Text: "text"},
		Wait: runtime.Prompt{Run: "wait", Text: "wait"},
		Hang: runtime.Prompt{Run: "hang", Text: "hang"},
		Die:  runtime.Prompt{Run: "die", Text: "die"},
	})
}
