package editor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sync"

	"github.com/coder/acp-go-sdk"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/client"
)

// Options are the parts of a server. The client repeats no calls: its Patience is negative.
type Options struct {
	Node    *client.Client
	Agent   string // the agent that prompts are for; "" for none
	Version string
	Log     *slog.Logger
}

// Run serves an editor until its connection ends or ctx does.
func Run(ctx context.Context, o Options, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	s := &server{
		Options: o, ctx: ctx, prompts: map[acp.SessionId]context.CancelFunc{}, open: map[capabilities.ID]*question{}, left: map[capabilities.ID]bool{},
		waiting: map[uint64]view.Message{}, changed: make(chan struct{}),
	}
	ready := make(chan struct{})
	s.conn = acp.NewConnection(func(ctx context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
		<-ready
		return s.handle(ctx, method, params)
	}, out, in)
	s.conn.SetLogger(o.Log)
	close(ready)
	select {
	case <-s.conn.Done():
	case <-ctx.Done():
	}
	s.mu.Lock() // no work begins after this
	stop()
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// server is one connection of an editor.
type server struct {
	Options
	conn *acp.Connection
	ctx  context.Context //nolint:containedctx // of the connection
	work sync.WaitGroup

	mu       sync.Mutex
	session  acp.SessionId // the newest, which shows the questions
	sessions int
	elicits  bool // the editor shows forms
	prompts  map[acp.SessionId]context.CancelFunc
	waiting  map[uint64]view.Message // what waits for the mailbox, by number
	open     map[capabilities.ID]*question
	left     map[capabilities.ID]bool // questions that were left without an answer, until they are asked for again
	changed  chan struct{}            // closed, and replaced, when a message changes
}

// handle serves a request or a notification of the editor.
func (s *server) handle(ctx context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	switch method {
	case acp.AgentMethodInitialize:
		return serve(params, s.initialize)
	case acp.AgentMethodAuthenticate:
		return acp.AuthenticateResponse{}, nil
	case acp.AgentMethodSessionNew:
		return serve(params, s.newSession)
	case acp.AgentMethodSessionPrompt:
		return serve(params, func(r acp.PromptRequest) (acp.PromptResponse, error) { return s.prompt(ctx, r) })
	case acp.AgentMethodSessionCancel:
		return serve(params, s.cancel)
	}
	return nil, acp.NewMethodNotFound(method)
}

// serve reads the parameters of a request, and returns its result.
func serve[In, Out any](params json.RawMessage, do func(In) (Out, error)) (any, *acp.RequestError) {
	var in In
	if err := json.Unmarshal(params, &in); err != nil {
		return nil, acp.NewInvalidParams(err.Error())
	}
	out, err := do(in)
	if err != nil {
		e := parley.AsError(err)
		if e.Code == parley.Internal {
			return nil, acp.NewInternalError(e)
		}
		return nil, acp.NewInvalidParams(e)
	}
	return out, nil
}

func (s *server) initialize(r acp.InitializeRequest) (acp.InitializeResponse, error) {
	s.mu.Lock()
	s.elicits = r.ClientCapabilities.Elicitation != nil && r.ClientCapabilities.Elicitation.Form != nil
	s.mu.Unlock()
	title := "Parley"
	return acp.InitializeResponse{
		ProtocolVersion:   acp.ProtocolVersionNumber,
		AgentInfo:         &acp.Implementation{Name: "parley", Title: &title, Version: s.Version},
		AgentCapabilities: acp.AgentCapabilities{PromptCapabilities: acp.PromptCapabilities{EmbeddedContext: true}},
		AuthMethods:       []acp.AuthMethod{},
	}, nil
}

// newSession opens a session, which shows the questions from now on. The first one begins to follow the mailbox.
func (s *server) newSession(acp.NewSessionRequest) (acp.NewSessionResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	s.session = acp.SessionId(fmt.Sprintf("parley-%d", s.sessions))
	session, first := s.session, s.sessions == 1
	if s.ctx.Err() != nil {
		return acp.NewSessionResponse{}, s.ctx.Err()
	}
	s.work.Go(func() {
		s.update(session, map[string]any{"sessionUpdate": "available_commands_update", "availableCommands": commands()})
		if first {
			s.follow()
		}
	})
	return acp.NewSessionResponse{SessionId: session}, nil
}

func (s *server) cancel(r acp.CancelNotification) (struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if stop := s.prompts[r.SessionId]; stop != nil {
		stop()
	}
	return struct{}{}, nil
}

// update sends an update of a session. On an error the connection is about to end.
func (s *server) update(session acp.SessionId, update any) {
	_ = s.conn.SendNotification(s.ctx, acp.ClientMethodSessionUpdate, map[string]any{"sessionId": session, "update": update})
}

// say sends text to a session.
func (s *server) say(session acp.SessionId, text string) {
	s.chunk(session, "agent_message_chunk", text)
}

func (s *server) chunk(session acp.SessionId, kind, text string) {
	if text != "" {
		s.update(session, map[string]any{"sessionUpdate": kind, "content": acp.TextBlock(text)})
	}
}
