package backend

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/mailbox"
)

func createToken(ctx context.Context, a *actors.Agent, r api.CreateTokenRequest) (view.Token, error) {
	return a.Tokens().Make(ctx, actors.NewToken{Scopes: r.Scopes, Until: r.Until, Note: r.Note})
}

func listTokens(ctx context.Context, a *actors.Agent, r api.ListTokensRequest) (api.ListTokensResponse, error) {
	all, err := a.Tokens().List(ctx)
	if err != nil {
		return api.ListTokensResponse{}, err
	}
	tokens, paged, err := api.PageOf(all, r.Paging, func(t view.Token) string { return t.ID.String() })
	return api.ListTokensResponse{Tokens: tokens, Paged: paged}, err
}

func revokeToken(ctx context.Context, b *Backend, p *principal, r api.RevokeTokenRequest) (api.Done, error) {
	agent, err := b.agent(ctx, p, r.Actor())
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, b.endToken(ctx, agent, r.Token)
}

// endToken ends a token or session of an agent, and those made by it. The server is told before: if that fails they last.
func (b *Backend) endToken(ctx context.Context, a *actors.Agent, id capabilities.ID) error {
	made, err := a.Tokens().List(ctx)
	if err != nil {
		return err
	}
	if err := b.server.SessionsEnd(withDerived(made, id)); err != nil {
		return err
	}
	return a.Tokens().Revoke(ctx, id)
}

// withDerived returns the IDs of a token and of those made by it; none if it is not one of made.
func withDerived(made []view.Token, id capabilities.ID) (all []capabilities.ID) {
	if slices.ContainsFunc(made, func(t view.Token) bool { return t.ID == id }) {
		all = append(all, id)
	}
	for i := 0; i < len(all); i++ {
		for _, t := range made {
			if t.By == all[i] && !slices.Contains(all, t.ID) {
				all = append(all, t.ID)
			}
		}
	}
	return all
}

// SessionTime is how long an unused session of a browser lasts.
const SessionTime = mailbox.SessionTime

// Session is a new session of a browser. Neither half of it is of use alone.
type Session struct {
	Secret string // for the cookie
	Key    string // for the addresses of pages
}

// IdentifySession returns the principal of a session by its secret and its key. It refuses with UNAUTHENTICATED.
func (b *Backend) IdentifySession(ctx context.Context, secret, key string) (api.Principal, error) {
	epoch := b.node.Credentials().Epoch()
	agent, t, err := b.node.Credentials().AuthenticateSession(ctx, secret, key)
	if err != nil {
		return nil, err
	}
	return b.principal(agent, t, key, epoch), nil
}

// Renew returns the next secret of a principal's session, or "" if it keeps the one it has.
func (b *Backend) Renew(ctx context.Context, p api.Principal) (string, error) {
	return b.node.Credentials().Renew(ctx, p.(*principal).token)
}

// EndSession ends the session of a principal, and all other sessions of its agent if that is wanted.
func (b *Backend) EndSession(ctx context.Context, p api.Principal, all bool) error {
	own := p.(*principal)
	if all {
		made, err := own.agent.Tokens().List(ctx)
		if err != nil {
			return err
		}
		for _, t := range made {
			if !t.Session || t.ID == own.token.ID {
				continue
			}
			if err := b.endToken(ctx, own.agent, t.ID); err != nil && parley.CodeOf(err) != parley.NotPermitted { // it has ended meanwhile
				return err
			}
		}
	}
	return b.endToken(ctx, own.agent, own.token.ID)
}

// SessionID returns the ID under which the session or token of a principal is listed; the zero ID for the node's own
// socket.
func (b *Backend) SessionID(p api.Principal) capabilities.ID { return p.(*principal).token.ID }

// links holds the one-time links that sign a browser in. They are only in memory, and end with the process.
type links struct {
	mu   sync.Mutex
	open map[string]link
}

// link signs a browser in as an agent, with the authority of the token that asked for the link.
type link struct {
	agent *actors.Agent
	until time.Time
}

const (
	linkTime    = 2 * time.Minute
	MaxLinks    = 16   // of one agent, and of one token, that wait
	maxLinksAll = 1024 // of all; the host's are never refused for those of others
)

// make returns the code of a new link for an agent.
func (l *links) make(a *actors.Agent) (code string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now, own := time.Now(), 0
	for c, k := range l.open {
		switch {
		case now.After(k.until):
			delete(l.open, c)
		case k.agent.ID() == a.ID() && k.agent.By() == a.By():
			own++
		}
	}
	if own >= MaxLinks || len(l.open) >= maxLinksAll && !a.IsHost() {
		return "", parley.Refuse(parley.RateLimited, "%d links of this agent wait to be used", own).WithHint("they end after %v", linkTime)
	}
	code = rand.Text()
	l.open[code] = link{agent: a, until: now.Add(linkTime)}
	return code, nil
}

// use returns the agent of a link, and removes the link.
func (l *links) use(code string) (*actors.Agent, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.open[code]
	delete(l.open, code)
	return k.agent, ok && time.Now().Before(k.until)
}

// NewLink returns the code of a new link that signs a browser in as an agent. It refuses with RATE_LIMITED.
func (b *Backend) NewLink(a *actors.Agent) (code string, err error) { return b.links.make(a) }

// WhoseLink returns whom a link signs in as, in words; "" for a link that was used or has ended. It does not use the link.
func (b *Backend) WhoseLink(ctx context.Context, code string) string {
	b.links.mu.Lock()
	k, ok := b.links.open[code]
	b.links.mu.Unlock()
	if !ok || time.Now().After(k.until) {
		return ""
	}
	if k.agent.IsHost() {
		return "the host of this node"
	}
	seen, err := b.statusForHost(ctx, k.agent)
	if err != nil {
		return k.agent.ID().String()
	}
	return cmp.Or(seen.Name, seen.ID.String())
}

// SignIn exchanges the code of a link for a session of a browser, which is described in a few words. It refuses with
// UNAUTHENTICATED a link that was used or has ended.
func (b *Backend) SignIn(ctx context.Context, code, browser string) (Session, error) {
	agent, ok := b.links.use(code)
	if !ok {
		return Session{}, parley.Refuse(parley.Unauthenticated, "the link was used, or has ended").WithHint("parley open makes another")
	}
	made, err := agent.Tokens().MakeSession(ctx, browser)
	if err != nil {
		return Session{}, err
	}
	return Session{Secret: made.Text, Key: made.Key}, nil
}

func openLink(ctx context.Context, b *Backend, p *principal, r api.OpenLinkRequest) (api.OpenLinkResponse, error) {
	if _, err := b.server.SignInURL(""); err != nil {
		return api.OpenLinkResponse{}, err
	}
	agent, err := b.agent(ctx, p, r.Actor())
	if err != nil {
		return api.OpenLinkResponse{}, err
	}
	code, err := b.links.make(agent)
	if err != nil {
		return api.OpenLinkResponse{}, err
	}
	url, err := b.server.SignInURL(code)
	return api.OpenLinkResponse{URL: url, Until: capabilities.At(time.Now().Add(linkTime))}, err
}

func grantAnswer(ctx context.Context, b *Backend, p *principal, r api.GrantAnswerRequest) (view.AnswerRight, error) {
	agent, err := b.agent(ctx, p, r.Actor())
	if err != nil {
		return view.AnswerRight{}, err
	}
	c := mailbox.GrantAnswer{From: r.From, Outcomes: r.Outcomes, Facet: capabilities.Facet{Until: r.Until, Uses: r.Uses}, Name: r.Name}
	if r.Secret != "" {
		if r.FormRef != (api.FormRef{}) || !r.From.IsZero() {
			return view.AnswerRight{}, parley.Refuse(parley.InvalidArgument, "a secret is for one form: name no other, and no grant")
		}
		return b.node.Credentials().NarrowRight(ctx, r.Secret, c)
	}
	if c.Form, err = r.FormRef.Parse(); err != nil {
		return view.AnswerRight{}, err
	}
	return agent.GrantAnswer(ctx, c)
}

func answerWith(ctx context.Context, b *Backend, p *principal, r api.AnswerWithRequest) (view.Outcome, error) {
	if _, err := b.agent(ctx, p, r.Actor()); err != nil {
		return view.Outcome{}, err
	}
	return b.AnswerWith(ctx, r)
}

// AnswerWith answers a form by a right, for whoever shows its secret.
func (b *Backend) AnswerWith(ctx context.Context, r api.AnswerWithRequest) (view.Outcome, error) {
	return b.node.Credentials().AnswerWith(ctx, actors.RightUse{Secret: r.Secret, Outcome: r.Outcome, Reason: r.Reason, Values: r.Values, Texts: r.Texts})
}

// FormWith returns the form that a right may answer with an outcome, and all outcomes that the right names. The form is as the
// agent sees it that made the right. FormWith changes nothing.
func (b *Backend) FormWith(ctx context.Context, secret, outcome string) (view.Message, []string, error) {
	return b.node.Credentials().FormWith(ctx, secret, outcome)
}
