package backend

import (
	"context"
	"sync/atomic"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// principal is a caller: the agent that its token or session is for, acting by that. On the node's own socket it is the
// node's host, which needs neither.
type principal struct {
	agent   *actors.Agent
	token   actors.Token // none for a local one
	account *account
	key     string // of a browser's session
	local   bool
	below   bool                 // of a process below a coding agent, on the node's own socket
	session func() *actors.Agent // of such a process: the agent of the session that it belongs to now, nil for none; agent is that one's address

	mayChange func(view.Message) error // of such a process: refuses a form that one of another session waits for
	epoch     uint64                   // of the node's tokens, before the token was identified
	checked   atomic.Uint64            // the same, before it was last found good
}

// ID implements api.Principal.
func (p *principal) ID() capabilities.ID { return p.own().ID() }

// own returns the agent that the principal acts for where it names none. It may be another at each call: a coding agent begins
// sessions and ends them.
func (p *principal) own() *actors.Agent {
	if s := p.inSession(); s != nil {
		return s
	}
	return p.agent
}

// inSession returns the agent of the session that the principal belongs to, or nil.
func (p *principal) inSession() *actors.Agent {
	if p.session == nil {
		return nil
	}
	return p.session()
}

// IsHost implements api.Principal.
func (p *principal) IsHost() bool { return p.agent.IsHost() }

// IsLocal implements api.Principal.
func (p *principal) IsLocal() bool { return p.local }

// Account implements api.Principal.
func (p *principal) Account() api.Account { return p.account }

// SessionKey implements api.Principal.
func (p *principal) SessionKey() string { return p.key }

// May implements api.Principal.
func (p *principal) May(o api.Operation) error {
	switch {
	case p.below && !o.Below && (o.Scope == api.ScopeAdmin || o.OfNode):
		return NotHost()
	case p.local:
		return nil
	case !p.token.May(string(o.Scope)):
		return parley.Refuse(parley.NotPermitted, "the token is not good for %s: it lacks the scope %s", o.Name, o.Scope)
	case o.OfNode && !p.agent.IsHost():
		return parley.Refuse(parley.NotPermitted, "%s is for the node's host", o.Name)
	}
	return nil
}

// Local returns the principal of the node's own socket: the node's host.
func (b *Backend) Local() api.Principal { return b.local }

// Person returns the principal of a person who is reached as an agent of the node: of the host for the zero ID. It acts as nobody else, and
// not as the node's host: what it answers is that agent's.
func (b *Backend) Person(id capabilities.ID) api.Principal {
	if id.IsZero() || id == b.local.ID() {
		return b.local
	}
	return b.Below(id, nil, func(view.Message) error { return nil })
}

// Identify returns the principal of a token. It refuses with UNAUTHENTICATED.
func (b *Backend) Identify(ctx context.Context, token string) (api.Principal, error) {
	if token == "" {
		return nil, parley.Refuse(parley.Unauthenticated, "nothing but /healthz answers without a token").
			WithHint("parley token create makes one; parley open signs a browser in")
	}
	epoch := b.node.Credentials().Epoch()
	agent, t, err := b.node.Credentials().Authenticate(ctx, token)
	if err != nil {
		return nil, err
	}
	return b.principal(agent, t, "", epoch), nil
}

// Resume returns a principal of a token that was identified before. A zero token is the node's own socket. It refuses with
// UNAUTHENTICATED a token that has ended.
func (b *Backend) Resume(ctx context.Context, of events.TokenRef) (api.Principal, error) {
	if of.Token.IsZero() && (of.Agent.IsZero() || of.Agent == b.local.ID()) {
		return b.local, nil
	}
	epoch := b.node.Credentials().Epoch()
	agent, t, err := b.node.Credentials().Resume(ctx, of)
	if err != nil {
		return nil, err
	}
	return b.principal(agent, t, "", epoch), nil
}

// principal returns the principal of a token that was found good in an epoch. It also returns that of a session with a
// key.
func (b *Backend) principal(agent *actors.Agent, t actors.Token, key string, epoch uint64) *principal {
	p := &principal{agent: agent, token: t, account: b.ledger.of(agent), key: key, epoch: epoch}
	p.checked.Store(epoch)
	return p
}

// agent returns the agent that a principal acts for. Only the node's host acts for others, which it holds; by a token it
// can do no more as one of them.
func (b *Backend) agent(ctx context.Context, p *principal, as string) (*actors.Agent, error) {
	if capabilities.Special(as) == capabilities.NameSelf {
		as = ""
	}
	if p.below && as != "" {
		named, err := b.node.ActAs(ctx, as)
		if err == nil && (named.ID() == p.agent.ID() || named.ID() == p.own().ID()) {
			return named, nil
		}
		return nil, NotHost()
	}
	if p.local && !p.below {
		agent, err := b.node.ActAs(ctx, as)
		if err != nil {
			return nil, err
		}
		return actors.ActingFor(b.node.Host().ID(), agent), nil
	}
	if as == "" {
		return p.own(), nil
	}
	if !p.agent.IsHost() {
		return nil, parley.Refuse(parley.NotPermitted, "the token is for one agent, which acts for no other")
	}
	if capabilities.Special(as) == capabilities.NameHost {
		return p.agent, nil
	}
	agent, err := b.node.ActAs(ctx, as)
	if err != nil {
		return nil, err
	}
	return actors.ActingFor(p.agent.ID(), agent.Under(&p.token)), nil
}
