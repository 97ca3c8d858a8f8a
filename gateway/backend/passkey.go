package backend

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/mailbox/passkey"
)

// The acts that are signed with a passkey beside answers. What they are for follows, after a space.
const (
	actAdd     = "add"
	actRemove  = "remove"
	actRequire = "require"
)

func listPasskeys(ctx context.Context, a *actors.Agent, _ api.ListPasskeysRequest) (api.ListPasskeysResponse, error) {
	keys, needs, err := actors.PasskeysOf(a).List(ctx)
	return api.ListPasskeysResponse{Passkeys: keys, Needs: needs}, err
}

func beginPasskey(ctx context.Context, b *Backend, p *principal, r api.BeginPasskeyRequest) (api.BeginPasskeyResponse, error) {
	a, err := b.agent(ctx, p, r.Actor())
	if err != nil {
		return api.BeginPasskeyResponse{}, err
	}
	if strings.TrimSpace(r.Name) == "" || len(r.Name) > 80 {
		return api.BeginPasskeyResponse{}, parley.Refuse(parley.InvalidArgument, "a passkey needs a name, of 80 bytes at most")
	}
	known, err := actors.PasskeysOf(a).Credentials(ctx, r.Origin)
	if err != nil {
		return api.BeginPasskeyResponse{}, err
	}
	options, err := b.challenges.Begin(a.ID(), r.Name, r.Origin, known)
	return api.BeginPasskeyResponse{Options: options}, err
}

func addPasskey(ctx context.Context, b *Backend, p *principal, r api.AddPasskeyRequest) (view.Passkey, error) {
	a, err := b.agent(ctx, p, r.Actor())
	if err != nil {
		return view.Passkey{}, err
	}
	keys, _, err := actors.PasskeysOf(a).List(ctx)
	if err != nil {
		return view.Passkey{}, err
	}
	if len(keys) > 0 {
		if err := b.signed(ctx, p, a, actAdd, r.Passkey); err != nil {
			return view.Passkey{}, err
		}
	}
	made, err := b.challenges.Finish(a.ID(), r.Credential)
	if err != nil {
		return view.Passkey{}, err
	}
	return actors.PasskeysOf(a).Add(ctx, made)
}

func removePasskey(ctx context.Context, b *Backend, p *principal, r api.RemovePasskeyRequest) (api.Done, error) {
	a, err := b.agent(ctx, p, r.Actor())
	if err != nil {
		return api.Done{}, err
	}
	key, err := actors.PasskeysOf(a).Find(ctx, r.Name)
	if err != nil {
		return api.Done{}, err
	}
	if err := b.signed(ctx, p, a, actRemove+" "+key.Passkey.String(), r.Passkey); err != nil {
		return api.Done{}, err
	}
	return api.Done{}, actors.PasskeysOf(a).Remove(ctx, key.Passkey.String())
}

func requirePasskey(ctx context.Context, b *Backend, p *principal, r api.RequirePasskeyRequest) (api.Done, error) {
	a, err := b.agent(ctx, p, r.Actor())
	if err != nil {
		return api.Done{}, err
	}
	var of capabilities.ID
	act := actRequire + " " + string(r.Need)
	if r.Agent != "" {
		agent, err := a.Agents().Find(ctx, r.Agent)
		if err != nil {
			return api.Done{}, err
		}
		of = agent.ID()
		act += " " + of.String()
	}
	loosens, err := actors.PasskeysOf(a).Loosens(ctx, of, r.Need)
	if err != nil {
		return api.Done{}, err
	}
	if loosens {
		if err := b.signed(ctx, p, a, act, r.Passkey); err != nil {
			return api.Done{}, err
		}
	}
	return api.Done{}, actors.PasskeysOf(a).Require(ctx, of, r.Need)
}

// signed refuses with PASSKEY_REQUIRED an act that weakens what passkeys are for and is not signed with one. The host on the node's own
// machine may do without: its only passkey may be lost, and it could change the node's files all the same.
func (b *Backend) signed(ctx context.Context, p *principal, a *actors.Agent, act string, sent *parley.PasskeySignature) error {
	switch {
	case p.local && !p.below && sent == nil:
		return nil
	case sent == nil:
		e := parley.Refuse(parley.PasskeyRequired, "this has to be signed with a passkey that is registered").
			WithHint("the page asks for it, where its script can; without one, use parley on the node's own machine")
		e.Fields = map[string]string{"act": act}
		return e
	}
	return actors.PasskeysOf(a).Sign(ctx, act, sent)
}

// signedLeave refuses with PASSKEY_REQUIRED what lets calls of an agent run that nobody decides on, where decisions on its calls want a
// passkey and the request is not signed with one. The request has no signature in it: that is of the operation, and of all that it says.
func (b *Backend) signedLeave(ctx context.Context, p *principal, by, agent *actors.Agent, operation string, request any, sent *parley.PasskeySignature) error {
	need, err := actors.PasskeysOf(by).Need(ctx, agent.ID())
	if err != nil || need == events.PasskeyNever {
		return err
	}
	text, err := json.Marshal(request)
	if err != nil {
		return err
	}
	return b.signed(ctx, p, by, fmt.Sprintf("%s %s %x", operation, agent.ID(), sha256.Sum256(text)), sent)
}

func askPasskey(ctx context.Context, b *Backend, p *principal, r api.AskPasskeyRequest) (resp api.AskPasskeyResponse, err error) {
	a, err := b.agent(ctx, p, r.Actor())
	if err != nil {
		return resp, err
	}
	keys := actors.PasskeysOf(a)
	if resp.Host, err = passkey.HostOf(r.Origin); err != nil {
		return resp, err
	}
	s := passkey.Statement{Act: r.Act}
	switch {
	case len(r.Act) > 200:
		return resp, parley.Refuse(parley.InvalidArgument, "an act has 200 bytes at most")
	case r.Act != "" && r.FormRef != (api.FormRef{}):
		return resp, parley.Refuse(parley.InvalidArgument, "a passkey signs an answer to a form or an act, not both")
	case r.Act == "":
		ref, err := r.FormRef.Parse()
		if err != nil {
			return resp, err
		}
		if s, resp.Wanted, err = keys.Statement(ctx, ref, r.Answer); err != nil {
			return resp, err
		}
		resp.Form = s.Form
	default:
		resp.Wanted = true
	}
	if resp.Credentials, err = keys.Credentials(ctx, r.Origin); err != nil {
		return resp, err
	}
	if len(resp.Credentials) == 0 {
		return resp, noPasskeyHere(ctx, keys, r.Origin)
	}
	resp.Statement = b.challenges.Ask(a.ID(), s)
	resp.Challenge = passkey.Challenge(resp.Statement)
	return resp, nil
}

// noPasskeyHere returns the error for a page on which no passkey is good.
func noPasskeyHere(ctx context.Context, keys actors.Passkeys, origin string) error {
	all, _, err := keys.List(ctx)
	if err != nil {
		return err
	}
	var others []string
	for _, k := range all {
		others = append(others, k.Name+" at "+k.Origin)
	}
	e := parley.Refuse(parley.PasskeyRequired, "no passkey is registered for the page at %s", origin)
	if len(others) > 0 {
		return e.WithHint("a passkey is good at one address: %s", strings.Join(others, ", "))
	}
	return e.WithHint("register one: Settings, Passkeys")
}
