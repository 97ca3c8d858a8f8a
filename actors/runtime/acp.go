package runtime

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/coder/acp-go-sdk"

	"parley"
)

// NewACP makes the runtime of a program that speaks the Agent Client Protocol on its input and output: acp. The node is the
// protocol's client. One process with one session serves one prompt after the other. When it has ended, the next prompt
// starts it again, with the session before if it can load that and a new one otherwise.
//
// What the agent says is output; what it thinks, plans and does are notices; what it wants to be permitted is approved at the
// desk, and what it elicits is asked there. It reads files if it has read access, writes them if it has write access, in
// its folder only, and runs commands if it has terminal access.
func NewACP(s Spec) Runtime { return &agents{spec: s} }

// agents is the acp runtime.
type agents struct {
	spec    Spec
	peer    *peer
	idle    *idlingErrors
	session acp.SessionId // the last that there was
}

// Prepare starts the agent and opens its session.
func (a *agents) Prepare(ctx context.Context) error {
	if a.peer != nil && !a.peer.hasExited() {
		return nil
	}
	p, _, err := a.ready(ctx)
	if err == nil {
		a.keep(p)
	}
	return err
}

// Run has the agent work on a prompt. Taken is called once the prompt was written to it, or at the first that it tells.
func (a *agents) Run(ctx context.Context, p Prompt, d Desk, taken func()) Result {
	for {
		peer, used, err := a.ready(ctx)
		if f, ok := errors.AsType[failedStart](err); ok {
			return Result{Err: f.error, Tail: f.wrote}
		}
		if err != nil {
			return Result{Err: err}
		}
		t := newTurn(peer, d, taken)
		r := t.run(ctx, a.spec, p.Text)
		if t.stays {
			a.keep(peer)
		} else {
			peer.leave()
		}
		if !used || !t.unheard() {
			return r
		}
	}
}

// ready gives the agent, and whether it has been there before.
func (a *agents) ready(ctx context.Context) (*peer, bool, error) {
	if p := a.release(); p != nil {
		if !p.hasExited() && !p.lost() {
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

func (a *agents) keep(p *peer) { a.peer, a.idle = p, idleErrors(p) }

func (a *agents) release() *peer {
	p := a.peer
	if p != nil {
		a.idle.stop()
		a.peer, a.idle = nil, nil
	}
	return p
}

// Close ends the agent.
func (a *agents) Close() {
	if p := a.release(); p != nil {
		p.leave()
	}
}

// failureIn says what an agent has answered a request with instead of a result.
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
	failure := failureOf(text)
	if answer.Code == acp.NewAuthRequired(nil).Code {
		return parley.AsError(failure).WithHint("sign in with the program itself first")
	}
	return failure
}

// requestError is what an agent gets for a request that failed.
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
