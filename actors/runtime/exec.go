package runtime

import (
	"context"
	"strings"
)

// NewExec makes the runtime of a command that speaks lines of JSON, or none: exec.
//
// A run begins with a prompt line on the command's input. A line that it puts out is plain output, or an object with a
// type: output, ask, ask_user, approval, send, error, done. Answers come on its input, in the order in which they are given.
//
// Without Keep each run is a process, whose environment has PARLEY_AGENT, PARLEY_RUN, PARLEY_MESSAGE and PARLEY_PROMPT, the
// text. It is over with the process: well if it has said done or its exit status is 0. With Keep one process, without these
// variables, serves one prompt after the other, each until it says done; what it puts out between them is dropped.
func NewExec(s Spec) Runtime { return &commands{spec: s} }

// maxPromptText is how much of a prompt stands in the environment: with its name, what systems take of one variable.
const maxPromptText = 128<<10 - len(promptVariable) - 2

const promptVariable = "PARLEY_PROMPT"

// commands is the exec runtime. Between runs, a worker that is kept is idle.
type commands struct {
	spec Spec
	kept *worker
	idle *idling
}

// Prepare starts the process, if one is to serve all prompts.
func (c *commands) Prepare(context.Context) error {
	if !c.spec.Keep || c.kept != nil {
		return nil
	}
	w, err := hire(c.spec, nil, true)
	if err != nil {
		return err
	}
	c.keep(w)
	return nil
}

// Run runs the command for a prompt, or has the one that is kept work on it. Taken is called once the prompt was written to
// it, or at the first that it says.
func (c *commands) Run(ctx context.Context, p Prompt, d Desk, taken func()) Result {
	for {
		w, used, err := c.worker(p)
		if err != nil {
			return Result{Err: err}
		}
		t := newTalk(c.spec, w, used, p, d, taken)
		r := t.run(ctx)
		if t.stays {
			c.keep(w)
		} else {
			w.dismiss()
		}
		if !t.unheard() {
			return r
		}
	}
}

// worker gives the process for a prompt, and whether it has served others before.
func (c *commands) worker(p Prompt) (w *worker, used bool, err error) {
	if !c.spec.Keep {
		w, err = hire(c.spec, variablesOf(p), true)
		return w, false, err
	}
	if w = c.release(); w != nil {
		if !w.hasExited() {
			return w, true, nil
		}
		w.dismiss()
	}
	w, err = hire(c.spec, nil, true)
	return w, false, err
}

func (c *commands) keep(w *worker) { c.kept, c.idle = w, idle(w) }

// release takes the process that is kept from its idling; nil if none is.
func (c *commands) release() *worker {
	w := c.kept
	if w != nil {
		c.idle.stop()
		c.kept, c.idle = nil, nil
	}
	return w
}

// Close ends the process that is kept.
func (c *commands) Close() {
	if c.kept == nil {
		return
	}
	c.kept.in.close()
	c.kept.end()
	c.release().dismiss()
}

// variablesOf gives the environment for a prompt.
func variablesOf(p Prompt) []string {
	text := strings.ReplaceAll(p.Text, "\x00", "")
	if len(text) > maxPromptText {
		text = text[:cutAt(text, maxPromptText)]
	}
	return []string{"PARLEY_AGENT=" + p.Agent, "PARLEY_RUN=" + p.Run, "PARLEY_MESSAGE=" + p.Message, promptVariable + "=" + text}
}
