package exec

import (
	"context"
	"strings"

	"parley"
	"parley/actors/runtime"
)

// New returns a program that exchanges lines of JSON with the node, or prints text.
//
// Without Keep each run is a process, with the variables PARLEY_AGENT, PARLEY_RUN, PARLEY_MESSAGE and PARLEY_PROMPT.
// The run ends with the process: well if it has sent done, or if its exit status is 0. With Keep one process,
// without these variables, serves one prompt after another, each until done. Its output between runs is dropped.
func New(s runtime.Spec) runtime.Program { return &program{spec: s} }

// maxPromptText bounds the prompt in the environment, to the size that systems allow for one variable.
const maxPromptText = 128<<10 - len(promptVariable) - 2

const promptVariable = "PARLEY_PROMPT"

// program is one command. Between runs a kept worker is idle.
type program struct {
	spec runtime.Spec
	kept *runtime.Worker
	idle *idleOutput
}

// Prepare starts the process if it is kept for all prompts.
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

// Run starts the command for a prompt, or gives the prompt to the kept process. It calls taken when the prompt was
// written, or at the first output.
func (c *program) Run(ctx context.Context, p runtime.Prompt, d runtime.Host, taken func()) runtime.Result {
	for {
		w, used, err := c.worker(p)
		if err != nil {
			return runtime.Result{Err: err}
		}
		t := newSession(c.spec, w, used, p, d, taken)
		r := t.run(ctx)
		if t.idle {
			c.keep(w)
		} else {
			w.Shutdown()
		}
		if !t.missed() {
			return r
		}
	}
}

// worker returns the process for a prompt. used reports whether it has served other prompts.
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

// release returns the kept process and stops dropping its output. It returns nil if there is none.
func (c *program) release() *runtime.Worker {
	w := c.kept
	if w != nil {
		c.idle.stop()
		c.kept, c.idle = nil, nil
	}
	return w
}

// Close ends the kept process.
func (c *program) Close() {
	if c.kept == nil {
		return
	}
	c.kept.In.Close()
	c.kept.End()
	c.release().Shutdown()
}

// variablesOf returns the environment variables of a prompt.
func variablesOf(p runtime.Prompt) []string {
	text := strings.ReplaceAll(p.Text, "\x00", "")
	if len(text) > maxPromptText {
		text = text[:runtime.CutAt(text, maxPromptText)]
	}
	return []string{"PARLEY_AGENT=" + p.Agent, "PARLEY_RUN=" + p.Run, "PARLEY_MESSAGE=" + p.Message, promptVariable + "=" + text}
}

// idleOutput drops the output of a process between runs.
type idleOutput struct {
	quit, done chan struct{}
}

func startIdle(w *runtime.Worker) *idleOutput {
	i := &idleOutput{quit: make(chan struct{}), done: make(chan struct{})}
	go i.drop(w)
	return i
}

func (i *idleOutput) drop(w *runtime.Worker) {
	defer close(i.done)
	out, errs := w.Out.Pieces, w.Errs.Pieces
	for {
		select {
		case p, ok := <-out:
			if !ok {
				out = nil
			} else if l, plain, _ := parseLine(p.Text); !plain && l.ID != "" {
				w.In.Offer(refusal(l.ID, parley.Refuse(parley.InvalidArgument, "there is no run that this is for")))
			}
		case _, ok := <-errs:
			if !ok {
				errs = nil
			}
		case <-i.quit:
			return
		}
	}
}

func (i *idleOutput) stop() {
	close(i.quit)
	<-i.done
}
