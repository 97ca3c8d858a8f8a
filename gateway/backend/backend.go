package backend

import (
	"context"
	"log/slog"
	"time"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/coding"
	"parley/gateway/passkeys"
)

// Server gives a Backend access to the server whose edges call it.
type Server interface {
	// Describe sets the members of a status that are about the server: its version, and where and how it listens.
	Describe(*api.StatusResponse)
	// SignInURL returns the address at which a browser uses the code of a link. It refuses with INVALID_ARGUMENT if there is
	// none.
	SignInURL(code string) (string, error)
	// SessionsEnd is called before sessions and tokens are revoked.
	SessionsEnd([]capabilities.ID) error
	// Connections returns how much is used of the limits of connections.
	Connections() []api.LimitState
	// Stop begins to stop the process. It returns at once.
	Stop()
}

// Options configure a Backend.
type Options struct {
	Server Server
	Limits api.Limits // nil: the defaults
	Log    *slog.Logger
	Look   time.Duration // between two checks whether tokens in use have expired
	Coding *coding.Sessions
}

// Backend performs operations on a node. It implements api.Backend.
type Backend struct {
	node       *actors.Node
	server     Server
	log        *slog.Logger
	look       time.Duration
	operations map[string]api.Operation
	handlers   map[string]handler
	ledger     *ledger
	local      *principal
	uses       uses
	links      links
	challenges passkeys.Challenges
	sessions   *coding.Sessions
}

// New returns a Backend of a node.
func New(node *actors.Node, o Options) *Backend {
	b := &Backend{
		node: node, server: o.Server, log: o.Log, look: o.Look,
		operations: map[string]api.Operation{}, handlers: map[string]handler{}, ledger: newLedger(o.Limits),
		uses: uses{open: map[*use]bool{}, look: make(chan struct{}, 1)}, links: links{open: map[string]link{}}, sessions: o.Coding,
	}
	for _, op := range api.Operations() {
		b.operations[op.Name] = op
	}
	for _, h := range handlers() {
		b.handlers[h.operation] = h
	}
	b.local = &principal{agent: node.Host(), account: b.ledger.socket, local: true}
	actors.SetRisk(node, riskOf)
	actors.SetLeased(node, leasedByCall)
	actors.SetChallenges(node, b.challenges.Answer)
	return b
}

// Add adds an operation to those of the table, or replaces one. It must not be called once operations are performed.
func Add[Req acting, Resp any](b *Backend, o api.Operation, perform func(context.Context, Req) (Resp, error)) {
	b.operations[o.Name] = o
	b.handlers[o.Name] = ofBackend(api.Op[Req, Resp](o.Name), func(ctx context.Context, _ *Backend, _ *principal, req Req) (Resp, error) { return perform(ctx, req) })
}

// Operations implements api.Backend.
func (b *Backend) Operations() map[string]api.Operation { return b.operations }

// Call implements api.Caller. It cuts an operation that waits short when the token of its call ends, and then returns no
// response.
func (b *Backend) Call(ctx context.Context, p api.Principal, operation string, r api.Request) (any, error) {
	h, known := b.handlers[operation]
	if !known {
		return nil, parley.Refuse(parley.InvalidArgument, "there is no operation %.80q", operation)
	}
	own := p.(*principal)
	if own.local || !b.operations[operation].Waits {
		resp, err := h.perform(ctx, b, own, r)
		return resp, own.fromBelow(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer b.WhileGood(p, cancel)()
	resp, err := h.perform(ctx, b, own, r)
	if ended := b.Check(context.WithoutCancel(ctx), p); ended != nil {
		return nil, ended
	}
	return resp, err
}

// Lister implements api.Caller. A request that cannot be read, and one for an agent that there is not, are refused by Call.
func (b *Backend) Lister(ctx context.Context, p api.Principal, r api.Request) api.Account {
	own := p.(*principal)
	if !own.agent.IsHost() {
		return own.account
	}
	var as string
	if t, typed := r.(api.Typed); !typed {
		var acting api.Acting
		if err := r.Read(&acting); err != nil {
			return own.account
		}
		as = acting.As
	} else if acting, ok := t.Value.(acting); ok {
		as = acting.Actor()
	}
	agent, err := b.agent(ctx, own, as)
	if err != nil || agent.IsHost() {
		return own.account
	}
	return b.ledger.of(agent)
}

// Limits returns how much is used of all limits.
func (b *Backend) Limits() []api.LimitState {
	all := append(b.ledger.state(), b.server.Connections()...)
	if b.node.PeerAddress() != "" {
		now, each, most, refused := b.node.Unproved()
		all = append(all, api.LimitState{Name: api.LimitConnections, For: "peers", Now: int64(now), Limit: int64(most), Each: int64(each), Refused: refused})
	}
	return all
}
