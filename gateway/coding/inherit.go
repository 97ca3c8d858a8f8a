package coding

import (
	"context"
	"strings"

	"parley"
	"parley/actors"
	"parley/gateway/api"
)

// Holder returns the one of a session and its address that has a message.
func Holder(ctx context.Context, session, address *actors.Agent, ref *api.FormRef) (*actors.Agent, error) {
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
		if has, err := actors.HasMessage(ctx, one, at); has || err != nil {
			return one, err
		}
	}
	return session, nil
}

// Reach has an agent hold whom a request is for, if it can. Session is the agent itself, of an address, or nil.
func (l *Sessions) Reach(ctx context.Context, agent, session, address *actors.Agent, to *string) error {
	if session == nil && !strings.Contains(*to, titleMark) {
		return nil // most are names, and cost nothing more
	}
	has, err := actors.Holds(ctx, agent, *to)
	if has || err != nil {
		return nil // or the operation says why not
	}
	if session == nil {
		return titled(ctx, l, agent, to)
	}
	err = actors.SessionsOf(address).ShareWith(ctx, agent, *to)
	if code := parley.CodeOf(err); code != parley.UnknownRecipient && code != parley.NotPermitted {
		return err
	}
	wanted, err := sibling(ctx, l, address, *to)
	if err != nil || wanted == "" {
		return err
	}
	*to = wanted
	if has, err := actors.Holds(ctx, agent, *to); has || err != nil {
		return err
	}
	return actors.SessionsOf(address).ShareWith(ctx, agent, *to)
}

// titleMark is in the title of each coding agent and each session.
const titleMark = " · "

// titled replaces a title by the ID of the agent with it, if the agent sees one. It refuses with AMBIGUOUS one of several.
func titled(ctx context.Context, l *Sessions, agent *actors.Agent, to *string) error {
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
func sibling(ctx context.Context, l *Sessions, address *actors.Agent, to string) (string, error) {
	all, err := actors.SessionsOf(address).List(ctx)
	if err != nil {
		return "", err
	}
	some := []*actors.Agent{address}
	for _, s := range all {
		some = append(some, l.agent(s.Agent))
	}
	for _, one := range some {
		seen, err := one.Status(ctx)
		if err == nil {
			seen.Name, err = nameOf(ctx, l, seen.ID)
		}
		if err != nil {
			return "", err
		}
		if to == seen.Title || to == seen.Name || to == seen.ID.String() {
			return seen.ID.String(), nil
		}
	}
	return "", nil
}
