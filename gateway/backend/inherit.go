package backend

import (
	"context"
	"strings"

	"parley"
	"parley/actors"
	"parley/gateway/api"
)

// referring is a request that names a message.
type referring interface{ Reference() *api.FormRef }

// reaching is a request that names whom it is for.
type reaching interface{ Reached() *string }

// actorOf returns the agent that a principal acts for with a request. A session reads and answers what its address has, by
// its ID or the number that read_mail shows, as the address. Whom it does not know by itself, it knows by its address: that
// lends it the reference. A title is a name where no name is.
func (b *Backend) actorOf(ctx context.Context, p *principal, req any, as string) (*actors.Agent, error) {
	agent, err := b.agent(ctx, p, as)
	if err != nil {
		return nil, err
	}
	session := p.inSession()
	if session != nil && session.ID() != agent.ID() {
		session = nil // it acts for the address by name
	}
	if r, ok := req.(referring); ok && session != nil {
		if agent, err = holderOf(ctx, session, p.agent, r.Reference()); err != nil {
			return nil, err
		}
	}
	if r, ok := req.(reaching); ok && *r.Reached() != "" {
		err = b.reach(ctx, agent, session, p.agent, r.Reached())
	}
	return agent, err
}

// holderOf returns the one of a session and its address that has a message.
func holderOf(ctx context.Context, session, address *actors.Agent, ref *api.FormRef) (*actors.Agent, error) {
	for _, text := range []*api.RefText{&ref.Number, &ref.ID} {
		if number, ok := strings.CutPrefix(string(*text), ofAddress); ok && number != "" && strings.Trim(number, "0123456789") == "" {
			*ref = api.RefTo(number)
			return address, nil
		}
	}
	at, err := ref.Parse()
	if err != nil || ref.ID == "" {
		return session, nil //nolint:nilerr // the operation refuses it
	}
	for _, one := range []*actors.Agent{session, address} {
		if has, err := one.Has(ctx, at); has || err != nil {
			return one, err
		}
	}
	return session, nil
}

// reach has an agent hold whom a request is for, if it can. Session is the agent itself, of an address, or nil.
func (b *Backend) reach(ctx context.Context, agent, session, address *actors.Agent, to *string) error {
	if session == nil && !strings.Contains(*to, titleMark) {
		return nil // most are names, and cost nothing more
	}
	has, err := agent.Holds(ctx, *to)
	if has || err != nil {
		return nil // or the operation says why not
	}
	if session == nil {
		return b.titled(ctx, agent, to)
	}
	err = address.Sessions().Lend(ctx, agent, *to)
	if code := parley.CodeOf(err); code != parley.UnknownRecipient && code != parley.NotPermitted {
		return err
	}
	wanted, err := b.sibling(ctx, address, *to)
	if err != nil || wanted == "" {
		return err
	}
	*to = wanted
	if has, err := agent.Holds(ctx, *to); has || err != nil {
		return err
	}
	return address.Sessions().Lend(ctx, agent, *to)
}

// titleMark is in the title of each coding agent and each session.
const titleMark = " · "

// titled replaces a title by the ID of the agent with it, if the agent sees one. It refuses with AMBIGUOUS one of several.
func (b *Backend) titled(ctx context.Context, agent *actors.Agent, to *string) error {
	id, err := agent.Agents().Titled(ctx, *to)
	switch parley.CodeOf(err) {
	case "":
		*to = id.String()
		return nil
	case parley.Ambiguous:
		return err
	}
	return nil // the operation says that it is not known
}

// sibling returns the ID of the address of a session, or of another session of that, by the name or the title that people
// read; "" if there is none.
func (b *Backend) sibling(ctx context.Context, address *actors.Agent, to string) (string, error) {
	all, err := address.Sessions().List(ctx)
	if err != nil {
		return "", err
	}
	some := []*actors.Agent{address}
	for _, s := range all {
		some = append(some, b.node.Agent(s.Agent))
	}
	for _, one := range some {
		seen, err := b.statusForHost(ctx, one)
		if err != nil {
			return "", err
		}
		if to == seen.Title || to == seen.Name || to == seen.ID.String() {
			return seen.ID.String(), nil
		}
	}
	return "", nil
}
