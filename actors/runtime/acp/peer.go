package acp

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/runtime"
)

// startTime bounds the start of an agent, which may have to be downloaded first.
const startTime = 2 * time.Minute

// peer is a process that speaks the Agent Client Protocol, with its session.
type peer struct {
	*runtime.Worker
	folder    string // absolute
	access    access
	reader    *reader
	conn      *acp.Connection
	terminals *terminals
	mayLoad   bool
	session   acp.SessionId
	agent     agentInfo

	mu       sync.Mutex
	turn     *turn          // nil between turns
	early    runtime.Tail   // what it wrote to standard error between turns
	broken   bool           // it does not read any more
	leaving  bool           // nothing more is done for it
	handlers sync.WaitGroup // of what it asks for
}

// connect starts an agent and opens a session. It loads the session before if there is one and the agent can. After an
// error the agent has ended.
func connect(ctx context.Context, s runtime.Spec, before acp.SessionId) (*peer, error) {
	folder, err := filepath.Abs(s.Folder)
	if err != nil {
		return nil, parley.Refuse(parley.InvalidArgument, "the folder: %v", err)
	}
	w, err := runtime.StartWorker(s, nil, true)
	if err != nil {
		return nil, err
	}
	p := &peer{Worker: w, folder: folder, access: accessOf(s.Access, folder)}
	p.terminals = newTerminals(s)
	p.reader = newReader(w.Out.Pieces, p.stray)
	ready := make(chan struct{})
	p.conn = acp.NewConnection(p.handle, writer{p}, held{p.reader, ready})
	p.conn.SetLogger(slog.New(slog.DiscardHandler)) // what is wrong with an agent is told by what it does
	close(ready)
	idle := startIdleErrors(p)
	err = p.open(ctx, before)
	if err != nil {
		err = p.explain(err)
	}
	idle.stop()
	if err != nil {
		p.leave()
		return nil, failedStart{err, p.takeEarly()}
	}
	return p, nil
}

// failedStart is the error of an agent that did not start, with what it wrote.
type failedStart struct {
	error
	wrote string
}

func (f failedStart) Unwrap() error { return f.error }

// held is a reader that blocks until it is ready.
type held struct {
	io.Reader
	ready <-chan struct{}
}

func (h held) Read(b []byte) (int, error) {
	<-h.ready
	return h.Reader.Read(b)
}

// open initializes the connection and opens the session.
func (p *peer) open(ctx context.Context, before acp.SessionId) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, parley.Refuse(parley.Timeout, "the program was not ready in %v", startTime))
	defer cancel()
	agent, err := acp.SendRequest[acp.InitializeResponse](p.conn, ctx, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion:    acp.ProtocolVersionNumber,
		ClientInfo:         &acp.Implementation{Name: "parley", Version: "1"},
		ClientCapabilities: p.access.capabilities(),
	})
	if err != nil {
		return runtime.CauseOf(ctx, err)
	}
	if agent.ProtocolVersion != acp.ProtocolVersionNumber {
		return parley.Refuse(parley.Internal, "the program speaks version %d of the Agent Client Protocol, and the node %d", agent.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	p.mayLoad = agent.AgentCapabilities.LoadSession
	p.agent.folders = []string{p.folder}
	if real, err := filepath.EvalSymlinks(p.folder); err == nil && real != p.folder {
		p.agent.folders = append(p.agent.folders, real)
	}
	if agent.AgentInfo != nil {
		p.agent.name = agent.AgentInfo.Name
	}
	if before != "" && p.mayLoad {
		_, err := acp.SendRequest[acp.LoadSessionResponse](p.conn, ctx, acp.AgentMethodSessionLoad, acp.LoadSessionRequest{
			SessionId: before, Cwd: p.folder, McpServers: []acp.McpServer{},
		})
		if err == nil {
			p.session = before
			return nil
		}
	}
	made, err := acp.SendRequest[acp.NewSessionResponse](p.conn, ctx, acp.AgentMethodSessionNew, acp.NewSessionRequest{Cwd: p.folder, McpServers: []acp.McpServer{}})
	if err != nil {
		return runtime.CauseOf(ctx, err)
	}
	p.session = made.SessionId
	return nil
}

// lost reports whether the connection is gone.
func (p *peer) lost() bool {
	select {
	case <-p.conn.Done():
		return true
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// explain returns the reason of a failed request for the user. It ends a process whose connection is gone.
func (p *peer) explain(err error) error {
	if !p.lost() {
		return failureIn(err)
	}
	p.End()
	<-p.conn.Done()
	<-p.Errs.WhenQuiet()
	return p.ended()
}

// ended returns the reason of the process's end.
func (p *peer) ended() error {
	switch {
	case p.reader.err() != nil:
		return p.reader.err()
	case p.Err != nil:
		return p.Err
	}
	return parley.Refuse(parley.Internal, "the program ended before it was done")
}

// leave ends the agent and all its terminals.
func (p *peer) leave() {
	close(p.reader.closed)
	p.terminals.close()
	p.Shutdown()
	<-p.conn.Done()
	p.mu.Lock()
	p.leaving = true
	p.mu.Unlock()
	p.handlers.Wait()
}

// serve counts a handler. It reports false if the agent is about to end.
func (p *peer) serve() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving {
		return false
	}
	p.handlers.Add(1)
	return true
}

// stray treats output that is no message as standard error.
func (p *peer) stray(text string) {
	t, done := p.enter()
	if t == nil {
		p.note(text)
		return
	}
	defer done()
	select {
	case t.strays <- text:
	case <-t.over:
	}
}

// note keeps the end of standard error between turns.
func (p *peer) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.early.Add(text)
}

// takeEarly returns the noted text and removes it.
func (p *peer) takeEarly() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.early.String()
	p.early = runtime.Tail{}
	return text
}

// enter joins the present turn, which waits for done. It returns nil between turns.
func (p *peer) enter() (t *turn, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn == nil {
		return nil, nil
	}
	p.turn.joined.Add(1)
	return p.turn, p.turn.joined.Done
}

func (p *peer) setTurn(t *turn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn = t
}

// handle is called by the library: for requests in a goroutine each, for notifications in their order.
func (p *peer) handle(ctx context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	update := method == acp.ClientMethodSessionUpdate
	defer p.reader.handle(update, params)
	if !p.serve() {
		return nil, acp.NewInternalError("the node is about to end the program")
	}
	defer p.handlers.Done()
	if update {
		p.update(params)
		return nil, nil
	}
	serve, known := services[method]
	if !known {
		return nil, acp.NewMethodNotFound(method)
	}
	t, done := p.enter()
	if t == nil {
		return nil, acp.NewInvalidRequest("there is no turn that this is for")
	}
	defer done()
	select {
	case t.slots <- struct{}{}:
		defer func() { <-t.slots }()
	default:
		return nil, acp.NewInvalidRequest("too many requests are open already")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	p.reader.catchUp(ctx)
	result, err := serve(ctx, t, params)
	if err != nil {
		return nil, requestError(err)
	}
	return result, nil
}

// update passes a notification to the turn. It drops notifications between turns, for example of a loaded session.
func (p *peer) update(params json.RawMessage) {
	t, done := p.enter()
	if t == nil {
		return
	}
	defer done()
	var n notification
	if json.Unmarshal(params, &n) != nil || n.SessionID != string(p.session) {
		return
	}
	select {
	case t.updates <- n.Update:
	case <-t.over:
	}
}

// idleErrors keeps the end of standard error between turns.
type idleErrors struct{ quit, done chan struct{} }

func startIdleErrors(p *peer) *idleErrors {
	i := &idleErrors{quit: make(chan struct{}), done: make(chan struct{})}
	go i.keep(p)
	return i
}

func (i *idleErrors) keep(p *peer) {
	defer close(i.done)
	errs := p.Errs.Pieces
	for {
		select {
		case piece, ok := <-errs:
			if !ok {
				errs = nil
			}
			p.note(piece.Text)
		case <-i.quit:
			return
		}
	}
}

func (i *idleErrors) stop() {
	close(i.quit)
	<-i.done
}

// services are the requests that an agent may make during a turn.
var services = map[string]func(context.Context, *turn, json.RawMessage) (any, error){
	acp.ClientMethodSessionRequestPermission: permit,
	acp.ClientMethodElicitationCreate:        elicit,
	acp.ClientMethodFsReadTextFile:           readFile,
	acp.ClientMethodFsWriteTextFile:          writeFile,
	acp.ClientMethodTerminalCreate:           createTerminal,
	acp.ClientMethodTerminalOutput:           terminalOutput,
	acp.ClientMethodTerminalWaitForExit:      waitForTerminal,
	acp.ClientMethodTerminalKill:             killTerminal,
	acp.ClientMethodTerminalRelease:          releaseTerminal,
}

// parse reads the parameters of a request. If they name a session, it is the turn's.
func (t *turn) parse(params json.RawMessage, into any, session *string) error {
	if err := json.Unmarshal(params, into); err != nil {
		return acp.NewInvalidParams(err.Error())
	}
	if *session != "" && *session != string(t.peer.session) {
		return acp.NewInvalidParams("there is no such session")
	}
	return nil
}
