package backend

import (
	"context"

	"parley/actors"
	"parley/gateway/api"
	"parley/gateway/coding"
)

// referring is a request that names a message.
type referring interface{ Reference() *api.FormRef }

// reaching is a request that names whom it is for.
type reaching interface{ Reached() []*string }

// actorOf returns the agent that a principal acts for with a request. A session reads and answers what its address has, by
// its ID or the number that read_mail shows, as the address. Whom it does not know by itself, it knows by its address: that
// lends it the reference. A title is a name where no name is.
func actorOf(ctx context.Context, b *Backend, p *principal, req any, as string) (*actors.Agent, error) {
	agent, err := b.agent(ctx, p, as)
	if err != nil {
		return nil, err
	}
	session := p.inSession()
	if session != nil && session.ID() != agent.ID() {
		session = nil // it acts for the address by name
	}
	if r, ok := req.(referring); ok && session != nil {
		if agent, err = coding.Holder(ctx, session, p.agent, r.Reference()); err != nil {
			return nil, err
		}
	}
	if r, ok := req.(reaching); ok {
		for _, to := range r.Reached() {
			if *to == "" {
				continue
			}
			if err := b.sessions.Reach(ctx, agent, session, p.agent, to); err != nil {
				return nil, err
			}
		}
	}
	return agent, nil
}
