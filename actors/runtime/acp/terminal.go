package acp

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
)

// Bounds of an agent's terminals.
const (
	maxTerminals      = 16
	maxTerminalOutput = 256 << 10 // bytes that are kept of the output of one
)

// terminals are the commands that an agent runs through the node.
type terminals struct {
	agent runtime.Spec // whose they are: they run as it does

	mu   sync.Mutex
	made int
	byID map[string]*terminal
	gone bool
}

// terminal is one command with the end of its output.
type terminal struct {
	*runtime.Worker
	id     string
	limit  int
	closer sync.Once
	kept   chan struct{} // closed when all of its output is

	mu   sync.Mutex
	text []byte
	cut  bool
}

func newTerminals(agent runtime.Spec) *terminals {
	return &terminals{agent: agent, byID: map[string]*terminal{}}
}

// start runs a command.
func (ts *terminals) start(s runtime.Spec, limit int) (string, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if ts.gone {
		return "", parley.Refuse(parley.Cancelled, "the agent is about to end")
	}
	if len(ts.byID) >= maxTerminals {
		return "", parley.Refuse(parley.RateLimited, "%d terminals are there already", maxTerminals).WithHint("release one")
	}
	s.Inherit, s.User, s.Wrap, s.Launcher = ts.agent.Inherit, ts.agent.User, ts.agent.Wrap, ts.agent.Launcher
	w, err := runtime.StartWorker(s, nil, false)
	if err != nil {
		return "", err
	}
	w.In.Close()
	ts.made++
	t := &terminal{Worker: w, kept: make(chan struct{}), id: "terminal-" + strconv.Itoa(ts.made), limit: limit}
	go t.keep()
	ts.byID[t.id] = t
	return t.id, nil
}

func (ts *terminals) get(id string) (*terminal, error) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t, ok := ts.byID[id]
	if !ok {
		return nil, parley.Refuse(parley.InvalidArgument, "there is no terminal %.80q", id)
	}
	return t, nil
}

// release ends a command and forgets it.
func (ts *terminals) release(t *terminal) {
	t.close()
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.byID, t.id)
}

// close ends all commands. No more can be started.
func (ts *terminals) close() {
	ts.mu.Lock()
	ts.gone = true
	left := ts.byID
	ts.byID = map[string]*terminal{}
	ts.mu.Unlock()
	var ending sync.WaitGroup
	for _, t := range left {
		ending.Go(t.close)
	}
	ending.Wait()
}

// keep collects the end of a command's output.
func (t *terminal) keep() {
	defer close(t.kept)
	for p := range t.Out.Pieces {
		t.mu.Lock()
		t.text = append(t.text, p.Text...)
		if over := len(t.text) - t.limit; over > 0 {
			t.cut = true
			t.text = append(t.text[:0], t.text[over:]...)
		}
		t.mu.Unlock()
	}
}

// output returns the kept output. cut reports whether its beginning was dropped.
func (t *terminal) output() (text string, cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.text), ""), t.cut
}

func (t *terminal) close() {
	t.closer.Do(func() {
		t.Shutdown()
		<-t.kept
	})
}

// status returns the exit status of the command, nil if it still runs.
func (t *terminal) status() *acp.TerminalExitStatus {
	if !t.HasExited() {
		return nil
	}
	code, signal := t.Exit.Status()
	return &acp.TerminalExitStatus{ExitCode: code, Signal: signal}
}

// terminalRequest names a terminal.
type terminalRequest struct {
	SessionID  string `json:"sessionId"`
	TerminalID string `json:"terminalId"`
}

func (t *turn) terminal(params json.RawMessage) (*terminal, error) {
	var r terminalRequest
	if err := t.parse(params, &r, &r.SessionID); err != nil {
		return nil, err
	}
	if !t.peer.access.terminal {
		return nil, refuseAccess(accessTerminal)
	}
	return t.peer.terminals.get(r.TerminalID)
}

func createTerminal(ctx context.Context, t *turn, params json.RawMessage) (any, error) {
	var r acp.CreateTerminalRequest
	if err := t.parse(params, &r, (*string)(&r.SessionId)); err != nil {
		return nil, err
	}
	if !t.peer.access.terminal {
		return nil, refuseAccess(accessTerminal)
	}
	s := runtime.Spec{Command: append([]string{r.Command}, r.Args...), Folder: t.peer.folder}
	if r.Cwd != nil && *r.Cwd != "" {
		s.Folder = *r.Cwd
	}
	if err := t.host.MayRun(ctx, s.Command, s.Folder); err != nil {
		return nil, err
	}
	for _, v := range r.Env {
		s.Environment = append(s.Environment, v.Name+"="+v.Value)
	}
	limit := maxTerminalOutput
	if r.OutputByteLimit != nil {
		limit = min(max(*r.OutputByteLimit, 0), limit)
	}
	id, err := t.peer.terminals.start(s, limit)
	return acp.CreateTerminalResponse{TerminalId: id}, err
}

func terminalOutput(_ context.Context, t *turn, params json.RawMessage) (any, error) {
	command, err := t.terminal(params)
	if err != nil {
		return nil, err
	}
	status := command.status() // before the output, so that what has ended is whole
	if status != nil {
		<-command.kept
	} else {
		<-command.Out.WhenQuiet()
	}
	text, cut := command.output()
	return acp.TerminalOutputResponse{Output: text, Truncated: cut, ExitStatus: status}, nil
}

func waitForTerminal(ctx context.Context, t *turn, params json.RawMessage) (any, error) {
	command, err := t.terminal(params)
	if err != nil {
		return nil, err
	}
	select {
	case <-command.Exited:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	status := command.status()
	return acp.WaitForTerminalExitResponse{ExitCode: status.ExitCode, Signal: status.Signal}, nil
}

func killTerminal(_ context.Context, t *turn, params json.RawMessage) (any, error) {
	command, err := t.terminal(params)
	if err != nil {
		return nil, err
	}
	command.End()
	return acp.KillTerminalResponse{}, nil
}

func releaseTerminal(_ context.Context, t *turn, params json.RawMessage) (any, error) {
	command, err := t.terminal(params)
	if err != nil {
		return nil, err
	}
	t.peer.terminals.release(command)
	return acp.ReleaseTerminalResponse{}, nil
}
