package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"parley"
	"parley/actors"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/httpd"
	"parley/gateway/mcp"
)

// toolsPath is the path of the Model Context Protocol, by which an agent's operations are tools.
const toolsPath = "/mcp"

// serveTools serves a client of the protocol.
func (s *Server) serveTools(w http.ResponseWriter, r *http.Request) {
	leave, admitted := s.admit(w, r)
	if !admitted {
		return
	}
	defer leave()
	defer httpd.Survive(w, s.monitor, "mcp")
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	p := s.caller(ctx)
	if r.Method == http.MethodGet { // a stream, which lasts as long as its session
		defer s.backend.WhileGood(p, cancel)()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
		defer context.AfterFunc(s.draining, cancel)()
	}
	if err := s.tools.ServeAgent(w, r.WithContext(ctx), &toolUser{s, p}); err != nil {
		httpd.Refuse(w, err, 0)
	}
}

// newTools creates the server of the protocol.
func newTools(node *actors.Node, version string, log *slog.Logger) (*mcp.HTTP, error) {
	key, err := node.DeriveKey("parley mcp request state 1")
	if err != nil {
		return nil, err
	}
	return mcp.NewHTTP(mcp.Options{Version: version, Key: key, Log: log})
}

// toolUser is the agent of a client of the protocol. It implements mcp.Client.
type toolUser struct {
	server    *Server
	principal api.Principal
}

// Identity implements mcp.Agent.
func (u *toolUser) Identity() string { return u.principal.ID().String() }

// Credential implements a2a.Client.
func (u *toolUser) Credential() events.TokenRef {
	return events.TokenRef{Agent: u.principal.ID(), Token: u.server.backend.SessionID(u.principal)}
}

// IsHost implements mcp.Client.
func (u *toolUser) IsHost() bool { return u.principal.IsHost() }

// Enter implements mcp.Client. A call that outlasts its request takes a place of its own.
func (u *toolUser) Enter() error { return u.principal.Account().Take(api.KindWaits, 1) }

// Leave implements mcp.Client.
func (u *toolUser) Leave() { u.principal.Account().Give(api.KindWaits, 1) }

// May implements mcp.Agent.
func (u *toolUser) May(name string) error {
	o, err := u.operation(name)
	if err != nil {
		return err
	}
	return u.principal.May(o)
}

func (u *toolUser) operation(name string) (api.Operation, error) {
	o, known := u.server.backend.Operations()[name]
	if !known {
		return o, parley.Refuse(parley.InvalidArgument, "there is no operation %.80q", name)
	}
	return o, nil
}

// Call implements mcp.Agent. It checks the token again, which may have ended while a person was asked.
func (u *toolUser) Call(ctx context.Context, name string, request, response any) (err error) {
	s := u.server
	o, err := u.operation(name)
	if err != nil {
		return err
	}
	started := time.Now()
	defer func() { s.monitor.Ended(ctx, name, err, started) }()
	if err := s.backend.Check(ctx, u.principal); err != nil {
		return err
	}
	if err := u.principal.May(o); err != nil {
		return err
	}
	if o.Waits {
		var cancel context.CancelFunc
		ctx, cancel = api.UntilStopping(ctx, s.draining)
		defer cancel()
	}
	return u.perform(ctx, o, request, response)
}

// perform performs an operation with a typed request and response. Nothing is encoded.
func (u *toolUser) perform(ctx context.Context, o api.Operation, request, response any) error {
	held := api.ChargeOf(u.principal.Account())
	defer held.Release()
	return parley.Survive(func() error {
		return api.Serve(ctx, u.server.backend, u.principal, o, api.Typed{Value: request}, held, func(got any) (int, error) {
			if response == nil {
				return 0, nil
			}
			return 0, api.Typed{Value: got}.Read(response)
		})
	})
}

// Link implements mcp.Agent.
func (u *toolUser) Link(ctx context.Context, form string) string {
	s := u.server
	if s.public == nil {
		return ""
	}
	name, ok := s.site.NameOf(ctx, s.backend.Local(), u.principal.ID()) // the host signs in
	if !ok {
		return ""
	}
	return api.FormLink(s.tls.scheme()+"://"+s.Address(), name, form)
}
