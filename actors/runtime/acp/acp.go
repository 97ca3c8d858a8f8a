package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
)

// New returns a program that speaks the Agent Client Protocol on its input and output.
//
// When its process has ended, the next prompt starts it again. It loads its last session if it can, and opens a new
// session otherwise.
func New(s runtime.Spec) runtime.Program { return &program{spec: s} }

// program is one agent of the protocol.
type program struct {
	spec    runtime.Spec
	peer    *peer
	idle    *idleErrors
	session acp.SessionId // the last that there was
}

// Prepare starts the agent and opens its session.
func (a *program) Prepare(ctx context.Context) error {
	if a.peer != nil && !a.peer.HasExited() {
		return nil
	}
	p, _, err := a.ready(ctx)
	if err == nil {
		a.keep(p)
	}
	return err
}

// Run has the agent work on a prompt. Taken is called once the prompt was written to it, or at the first that it tells.
func (a *program) Run(ctx context.Context, p runtime.Prompt, d runtime.Host, taken func()) runtime.Result {
	for {
		peer, used, err := a.ready(ctx)
		if f, ok := errors.AsType[failedStart](err); ok {
			return runtime.Result{Err: f.error, Tail: f.wrote}
		}
		if err != nil {
			return runtime.Result{Err: err}
		}
		t := newTurn(peer, d, taken)
		r := t.run(ctx, a.spec, p.Text)
		if t.stays {
			a.keep(peer)
		} else {
			peer.leave()
		}
		if !used || !t.missed() {
			return r
		}
	}
}

// ready returns the connected agent. used reports whether it has served other prompts.
func (a *program) ready(ctx context.Context) (*peer, bool, error) {
	if p := a.release(); p != nil {
		if !p.HasExited() && !p.lost() {
			return p, true, nil
		}
		p.leave()
	}
	p, err := connect(ctx, a.spec, a.session)
	if err != nil {
		return nil, false, err
	}
	a.session = p.session
	return p, false, nil
}

func (a *program) keep(p *peer) { a.peer, a.idle = p, startIdleErrors(p) }

func (a *program) release() *peer {
	p := a.peer
	if p != nil {
		a.idle.stop()
		a.peer, a.idle = nil, nil
	}
	return p
}

// Close ends the agent.
func (a *program) Close() {
	if p := a.release(); p != nil {
		p.leave()
	}
}

// failureIn returns the error in an agent's response, in the agent's own words.
func failureIn(err error) error {
	if _, ok := errors.AsType[*parley.Error](err); ok {
		return err
	}
	answer, ok := errors.AsType[*acp.RequestError](err)
	if !ok {
		return err
	}
	text := answer.Message
	if answer.Data != nil {
		if data, err := json.Marshal(answer.Data); err == nil {
			text += ": " + string(data)
		}
	}
	failure := runtime.ProgramError(text)
	if answer.Code == acp.NewAuthRequired(nil).Code {
		return parley.AsError(failure).WithHint("sign in with the program itself first")
	}
	return failure
}

// requestError returns the protocol's error for a failed request.
func requestError(err error) *acp.RequestError {
	if e, ok := errors.AsType[*acp.RequestError](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) {
		return acp.NewRequestCancelled(nil)
	}
	e := parley.AsError(err)
	if e.Code == parley.Internal {
		return acp.NewInternalError(e)
	}
	return acp.NewInvalidParams(e)
}
