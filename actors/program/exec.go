package program

import (
	"context"
	"strings"

	"parley"
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
	w, err := hire(c.spec, nil)
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
		w, err = hire(c.spec, variablesOf(p))
		return w, false, err
	}
	if w = c.release(); w != nil {
		if !w.hasExited() {
			return w, true, nil
		}
		w.dismiss()
	}
	w, err = hire(c.spec, nil)
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

// worker is a process with those who read and write its pipes.
type worker struct {
	*process
	in   *sink
	out  *source
	errs *source
}

func hire(s Spec, environment []string) (*worker, error) {
	p, err := start(s, environment)
	if err != nil {
		return nil, err
	}
	w := &worker{
		process: p, in: newSink(p.input),
		out: newSource(p.output, p.exited, true, MaxLine), errs: newSource(p.errors, p.exited, false, MaxText),
	}
	go w.in.write()
	go w.out.read()
	go w.errs.read()
	return w, nil
}

// hasExited reports whether the process has ended.
func (w *worker) hasExited() bool {
	select {
	case <-w.exited:
		return true
	default:
		return false
	}
}

// dismiss ends the process if it has not ended, and waits for all that belongs to it.
func (w *worker) dismiss() {
	w.in.close()
	w.end()
	w.out.abandon()
	w.errs.abandon()
	<-w.in.ended
	for range w.out.pieces {
	}
	for range w.errs.pieces {
	}
}

// idling drops what a process puts out between runs.
type idling struct {
	quit, done chan struct{}
}

func idle(w *worker) *idling {
	i := &idling{quit: make(chan struct{}), done: make(chan struct{})}
	go i.drop(w)
	return i
}

func (i *idling) drop(w *worker) {
	defer close(i.done)
	out, errs := w.out.pieces, w.errs.pieces
	for {
		select {
		case p, ok := <-out:
			if !ok {
				out = nil
			} else if l, plain, _ := parseLine(p.text); !plain && l.ID != "" {
				w.in.offer(refusal(l.ID, parley.Refuse(parley.InvalidArgument, "there is no run that this is for")))
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

func (i *idling) stop() {
	close(i.quit)
	<-i.done
}
