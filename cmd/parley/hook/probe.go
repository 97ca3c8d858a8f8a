package hook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"

	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

// ProbeVariable is the environment variable by which "parley doctor" tells hooks that it has a coding agent try a call. A
// hook that has it asks nobody and allows nothing.
const ProbeVariable = "PARLEY_PROBE"

// ProbeDies is the token with which a hook kills itself in place of an answer.
const ProbeDies = "dies"

const maxToken = 64 // bytes of a probe's token that are repeated

// ProbeReason is the reason for which a hook denies a call that is tried. The token tells the hook that was called now
// from any other, and the state folder its node from others.
func ProbeReason(token, state string) string {
	if real, err := filepath.EvalSymlinks(state); err == nil {
		state = real
	}
	return fmt.Sprintf("a call to try the hook: %.*s of %s%s", maxToken, token, state, probeWords)
}

// probeWords say why a call is denied to who has not tried it: a repository's settings can give the variable to all hooks.
const probeWords = "; hooks deny each call while " + ProbeVariable + " is in their environment, which parley doctor sets for its own call alone: " +
	"where it is not yours, take it out of env in the settings of the coding agent"

// ProbeDied is what a hook says as it kills itself.
const ProbeDied = "parley: this hook ends itself, as " + ProbeVariable + " in its environment says" + probeWords

const noteTime = 5 * time.Second // for a node to note a program

// NoteProgram tells the node, where one runs, which file the agent runs: so what its sessions start before their hooks acts for nobody. It
// registers no session.
func (a Agent) NoteProgram(ctx context.Context, o Options) {
	ctx, cancel := context.WithTimeout(ctx, noteTime)
	defer cancel()
	wanted := api.Register{Program: a.Name, Title: a.Title, Probe: true}
	wanted.Process, _ = a.Process(o.Env)
	_, _ = o.exchange(ctx, http.MethodPost, api.RegisterPath, wanted) // the first session tells it too
}

// RefuseProbe reads a request of the agent, and returns the response that denies the call for a reason. It returns none
// where the event asks about no call.
func (a Agent) RefuseProbe(in io.Reader, reason string) (*Response, error) {
	text, err := terminal.Read(in, "the request", maxRequest)
	if err != nil {
		return nil, err
	}
	call, err := a.readCall(text)
	if err != nil || call.ends() {
		return nil, err
	}
	return a.answer(call, Decision{Decided: true, Reason: reason}), nil
}
