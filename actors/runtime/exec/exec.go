package exec

import (
	"context"
	"strings"

	"parley/actors/runtime"
)

// New makes the runtime of a command that speaks lines of JSON, or none: exec.
//
// A run begins with a prompt line on the command's input. A line that it puts out is plain output, or an object with a
// type: output, ask, ask_user, approval, send, error, done. Answers come on its input, in the order in which they are given.
//
// Without Keep each run is a process, whose environment has PARLEY_AGENT, PARLEY_RUN, PARLEY_MESSAGE and PARLEY_PROMPT, the
// text. It is over with the process: well if it has said done or its ExitStatus status is 0. With Keep one process, without these
// variables, serves one prompt after the other, each until it says done; what it puts out between them is dropped.
func New(s runtime.Spec) runtime.Program { return &program{spec: s} }

// maxPromptText is how much of a prompt stands in the environment: with its name, what systems take of one variable.
const maxPromptText = 128<<10 - len(promptVariable) - 2

const promptVariable = "PARLEY_PROMPT"

// program is one command. Between runs a kept worker is idle.
type program struct {
	spec runtime.Spec
	kept *runtime.Worker
	idle *idleOutput
}

// Prepare starts the process, if one is to serve all prompts.
func (c *program) Prepare(context.Context) error {
	if !c.spec.Keep || c.kept != nil {
		return nil
	}
	w, err := runtime.StartWorker(c.spec, nil, true)
	if err != nil {
		return err
	}
	c.keep(w)
	return nil
}

// Run runs the command for a prompt, or has the one that is kept work on it. Taken is called once the prompt was written to
// it, or at the first that it says.
func (c *program) Run(ctx context.Context, p runtime.Prompt, d runtime.Host, taken func()) runtime.Result {
	for {
		w, used, err := c.worker(p)
		if err != nil {
			return runtime.Result{Err: err}
		}
		t := newSession(c.spec, w, used, p, d, taken)
		r := t.run(ctx)
		if t.stays {
			c.keep(w)
		} else {
			w.Shutdown()
		}
		if !t.unheard() {
			return r
		}
	}
}

// worker gives the process for a prompt, and whether it has served others before.
func (c *program) worker(p runtime.Prompt) (w *runtime.Worker, used bool, err error) {
	if !c.spec.Keep {
		w, err = runtime.StartWorker(c.spec, variablesOf(p), true)
		return w, false, err
	}
	if w = c.release(); w != nil {
		if !w.HasExited() {
			return w, true, nil
		}
		w.Shutdown()
	}
	w, err = runtime.StartWorker(c.spec, nil, true)
	return w, false, err
}

func (c *program) keep(w *runtime.Worker) { c.kept, c.idle = w, startIdle(w) }

// release takes the process that is kept from its idling; nil if none is.
func (c *program) release() *runtime.Worker {
	w := c.kept
	if w != nil {
		c.idle.stop()
		c.kept, c.idle = nil, nil
	}
	return w
}

// Close ends the process that is kept.
func (c *program) Close() {
	if c.kept == nil {
		return
	}
	c.kept.In.Close()
	c.kept.End()
	c.release().Shutdown()
}

// variablesOf gives the environment for a prompt.
func variablesOf(p runtime.Prompt) []string {
	text := strings.ReplaceAll(p.Text, "\x00", "")
	if len(text) > maxPromptText {
		text = text[:runtime.CutAt(text, maxPromptText)]
	}
	return []string{"PARLEY_AGENT=" + p.Agent, "PARLEY_RUN=" + p.Run, "PARLEY_MESSAGE=" + p.Message, promptVariable + "=" + text}
}
