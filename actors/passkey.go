package actors

import (
	"context"
	"encoding/base64"
	"slices"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/passkey"
)

// SetChallenges sets what ends the challenge for which an agent has signed a statement. It refuses with PASSKEY_REFUSED a statement that the
// agent was not asked to sign, or has signed before. Until it is set, nothing that was signed is accepted.
func SetChallenges(n *Node, answer func(of capabilities.ID, statement string) error) {
	n.challenges.Store(&answer)
}

// answerChallenge ends the challenge of what a passkey has signed. Each way by which that comes in passes here.
func answerChallenge(b *mailboxActor, sent *parley.PasskeySignature) error {
	answer := b.node.challenges.Load()
	if answer == nil {
		return parley.Refuse(parley.PasskeyRefused, "the node has asked for no signature of a passkey")
	}
	return (*answer)(b.reg.id, sent.Statement)
}

// Passkeys are the passkeys of an agent that decides.
type Passkeys struct{ agent *Agent }

// PasskeysOf returns the passkeys of an agent.
func PasskeysOf(a *Agent) Passkeys { return Passkeys{a} }

// List returns the passkeys, oldest first, and which decisions want one.
func (p Passkeys) List(ctx context.Context) (keys []view.Passkey, needs []view.PasskeyNeed, err error) {
	keys, err = query(ctx, p.agent, func(s *mailbox.State, _ capabilities.Time) ([]view.Passkey, error) {
		list := []view.Passkey{}
		needs = []view.PasskeyNeed{}
		for _, k := range s.Passkeys.All() {
			list = append(list, passkeyOf(k))
		}
		for _, n := range s.Passkeys.Needs() {
			name := ""
			if !n.Agent.IsZero() {
				var err error
				if name, err = s.Names.Of(n.Agent); err != nil {
					return nil, err
				}
			}
			needs = append(needs, view.PasskeyNeed{Agent: n.Agent, Name: name, Need: n.Need})
		}
		return list, nil
	})
	return keys, needs, err
}

func passkeyOf(k mailbox.Passkey) view.Passkey {
	return view.Passkey{
		Passkey: k.Passkey, Name: k.Name, Origin: k.Origin, Key: slices.Clone(k.Key), Fingerprint: passkey.Fingerprint(k.Key), Added: k.Date, Used: k.Used,
	}
}

// Credentials returns the devices' IDs of the passkeys that are good on pages of an origin, in base64url.
func (p Passkeys) Credentials(ctx context.Context, origin string) ([]string, error) {
	return query(ctx, p.agent, func(s *mailbox.State, _ capabilities.Time) (ids []string, err error) {
		for _, k := range s.Passkeys.All() {
			if k.Origin == origin {
				ids = append(ids, base64.RawURLEncoding.EncodeToString(k.Credential))
			}
		}
		return ids, nil
	})
}

// Add registers a passkey that a browser has returned, and was checked.
func (p Passkeys) Add(ctx context.Context, made events.PasskeyAdded) (view.Passkey, error) {
	evs, err := call(ctx, p.agent, decide{mailbox.AddPasskey{PasskeyAdded: made}})
	if err != nil {
		return view.Passkey{}, err
	}
	return passkeyOf(mailbox.Passkey{PasskeyAdded: *evs[0].(*events.PasskeyAdded)}), nil
}

// Find returns a passkey by its name or ID.
func (p Passkeys) Find(ctx context.Context, which string) (view.Passkey, error) {
	return query(ctx, p.agent, func(s *mailbox.State, _ capabilities.Time) (view.Passkey, error) {
		k, err := s.Passkeys.Named(which)
		if err != nil {
			return view.Passkey{}, err
		}
		return passkeyOf(*k), nil
	})
}

// Remove removes a passkey, by its name or ID.
func (p Passkeys) Remove(ctx context.Context, which string) error {
	return p.agent.do(ctx, mailbox.RemovePasskey{Which: which})
}

// Require says which decisions on calls of an agent want a passkey: those of all agents if it is zero. No need ends what was said of an agent.
func (p Passkeys) Require(ctx context.Context, agent capabilities.ID, need events.PasskeyNeed) error {
	return p.agent.do(ctx, mailbox.RequirePasskey{PasskeyRequired: events.PasskeyRequired{Agent: agent, Need: need}})
}

// Loosens reports whether Require would end or lessen what is required now.
func (p Passkeys) Loosens(ctx context.Context, agent capabilities.ID, need events.PasskeyNeed) (bool, error) {
	return query(ctx, p.agent, func(s *mailbox.State, _ capabilities.Time) (bool, error) {
		return mailbox.RequirePasskey{PasskeyRequired: events.PasskeyRequired{Agent: agent, Need: need}}.Loosens(&s.Passkeys), nil
	})
}

// Need returns which decisions on calls of an agent want a passkey.
func (p Passkeys) Need(ctx context.Context, agent capabilities.ID) (events.PasskeyNeed, error) {
	return query(ctx, p.agent, func(s *mailbox.State, _ capabilities.Time) (events.PasskeyNeed, error) {
		return s.Passkeys.Need(agent), nil
	})
}

// Statement returns what a passkey signs of an answer to a form, but for the nonce, and whether the answer wants it.
func (p Passkeys) Statement(ctx context.Context, ref capabilities.FormRef, ans parley.Answer) (passkey.Statement, bool, error) {
	d, err := call(ctx, p.agent, draftStatement{replyOf(p.agent, ref, ans)})
	return d.statement, d.wants, err
}

// Sign takes what a passkey has signed of something else than an answer. It refuses with PASSKEY_REFUSED.
func (p Passkeys) Sign(ctx context.Context, act string, sent *parley.PasskeySignature) error {
	_, err := call(ctx, p.agent, signAct{act, sent})
	return err
}

type signAct struct {
	act  string
	sent *parley.PasskeySignature
}

func (m signAct) handle(b *mailboxActor) (none, error) {
	if err := answerChallenge(b, m.sent); err != nil {
		return none{}, err
	}
	_, use, err := b.state.Passkeys.Signature(m.sent, passkey.Statement{Act: m.act})
	if err != nil {
		return none{}, err
	}
	_, err = b.decide(use)
	return none{}, err
}

// draftStatement drafts an answer for what a passkey would sign of it.
type draftStatement struct{ draft mailbox.Reply }

type draftedStatement struct {
	statement passkey.Statement
	wants     bool
}

func (m draftStatement) handle(b *mailboxActor) (d draftedStatement, err error) {
	r, now := m.draft, b.node.now()
	if err := prepareReply(b, &r); err != nil {
		return d, err
	}
	return recalled(b.old, func() (d draftedStatement, err error) {
		d.statement, d.wants, err = mailbox.DraftStatement(b.state, r, now, b.node.newID)
		return d, err
	})
}
