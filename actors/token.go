package actors

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/right"
)

// NewToken describes a token to be made. The default scopes are read, ask and answer, and reveal for agents other than
// the node's host. The zero time is no end.
type NewToken struct {
	Scopes []string          `json:"scopes,omitempty"`
	Until  capabilities.Time `json:"until,omitzero"`
	Note   string            `json:"note,omitempty"`
}

// Token is a token by which an agent acts.
type Token struct {
	view.Token

	ref   events.TokenRef // the token itself
	end   capabilities.Time
	depth int    // how many it comes from
	due   bool   // a session is to have another secret
	shown []byte // the digest of the secret that was shown
}

// May reports whether the token has a scope.
func (t *Token) May(scope string) bool { return slices.Contains(t.Scopes, scope) }

// A token's text is ply_, the ULIDs of its agent and of itself, and its secret. A session's text has another prefix,
// and is not accepted as a token.
const (
	tokenPrefix   = "ply_"
	sessionPrefix = "pls_"
	tokenHead     = len(tokenPrefix) + 2*ulid.EncodedSize
)

// maxSecret bounds the secret of a token, in bytes.
const maxSecret = 255

// maxTokenDepth is the longest chain of tokens that were made by tokens.
const maxTokenDepth = 4

// Make makes a token for the agent. If the agent acts by a token, the new one has no more scopes and lasts no longer.
// It ends with that token.
func (ts Tokens) Make(ctx context.Context, t NewToken) (view.Token, error) {
	made, _, err := ts.make(ctx, mailbox.MakeToken{Scopes: t.Scopes, Until: t.Until, Note: t.Note}, tokenPrefix)
	return made.Token, err
}

func (ts Tokens) make(ctx context.Context, c mailbox.MakeToken, prefix string) (made Token, secret string, err error) {
	if t := ts.agent.by; t != nil {
		if t.depth >= maxTokenDepth {
			return Token{}, "", parley.Refuse(parley.TooLarge, "the token comes from %d others already", maxTokenDepth).
				WithHint("make one on the node itself")
		}
		if _, _, err := ts.agent.node.Credentials().standing(ctx, t.ref); err != nil {
			return Token{}, "", err
		}
		c.By, c.Within = t.ref, mailbox.TokenBounds{Scopes: t.Scopes, Until: t.end}
	}
	secret = rand.Text()
	c.Digest = digest(secret)
	evs, err := call(ctx, ts.agent, decide{c})
	if err != nil {
		return Token{}, secret, err
	}
	now := ts.agent.node.now()
	made = shownToken(ts.agent.id, mailbox.Token{TokenMade: *evs[0].(*events.TokenMade), Made: now, Used: now, Renewed: now}, now)
	made.Text = prefix + ts.agent.id.ULID.String() + made.ID.ULID.String() + secret
	return made, secret, nil
}

// shownToken returns an agent's token as the agent sees it.
func shownToken(agent capabilities.ID, t mailbox.Token, now capabilities.Time) Token {
	shown := Token{
		Token: view.Token{ID: t.Token, Session: t.Session, Scopes: t.Scopes, Made: t.Made, Until: t.End(), Note: t.Note, By: t.By.Token},
		ref:   events.TokenRef{Agent: agent, Token: t.Token}, end: t.Until, due: t.IsDue(now, true),
	}
	if t.Session {
		shown.Used = t.Used
	}
	return shown
}

// List returns the agent's valid tokens and sessions, oldest first.
func (ts Tokens) List(ctx context.Context) ([]view.Token, error) {
	type made struct {
		view.Token
		by events.TokenRef
	}
	all, err := queryListing(ctx, ts.agent, func(s *mailbox.State, now capabilities.Time) ([]made, error) {
		var all []made
		for _, t := range s.Tokens.Valid(now) {
			all = append(all, made{shownToken(ts.agent.id, t, now).Token, t.By})
		}
		return all, nil
	})
	good := []view.Token{}
	for _, t := range all {
		if !t.by.Token.IsZero() {
			if _, _, ended := ts.agent.node.Credentials().standing(ctx, t.by); ended != nil {
				continue
			}
		}
		good = append(good, t.Token)
	}
	return good, err
}

// Revoke ends a token or session, and those made by it.
func (ts Tokens) Revoke(ctx context.Context, id capabilities.ID) error {
	return ts.agent.do(ctx, mailbox.RevokeToken{Token: id})
}

// Credentials checks the tokens, sessions and rights to answer that are shown to a node.
type Credentials struct{ node *Node }

// Credentials returns the check of what is shown to the node.
func (n *Node) Credentials() Credentials { return Credentials{n} }

// Authenticate returns the agent of a token, acting by it, and the token. It refuses with UNAUTHENTICATED. A session is
// not accepted.
func (c Credentials) Authenticate(ctx context.Context, text string) (*Agent, Token, error) {
	return c.authenticate(ctx, tokenPrefix, text, nil)
}

func (c Credentials) authenticate(ctx context.Context, prefix, text string, page []byte) (*Agent, Token, error) {
	agent, token, secret, ok := parseToken(c.node, prefix, text)
	if ok {
		_, ok = c.node.journal.Mailbox(agent)
	}
	if !ok {
		return nil, Token{}, parley.Refuse(parley.Unauthenticated, "the token is not good")
	}
	shown := digest(secret)
	known, err := query(ctx, &Agent{node: c.node, id: agent}, func(s *mailbox.State, now capabilities.Time) (mailbox.Token, error) {
		return s.Tokens.Check(token, shown, page, now)
	})
	if err != nil {
		return nil, Token{}, err
	}
	t := shownToken(agent, known, c.node.now())
	if _, t.depth, err = c.standing(ctx, known.By); err != nil {
		return nil, Token{}, err
	}
	t.shown = shown
	return &Agent{node: c.node, id: agent, by: &t}, t, nil
}

// Resume returns the agent of a token that was shown before, acting by it, and the token. It refuses with UNAUTHENTICATED a
// token that is no longer valid.
func (c Credentials) Resume(ctx context.Context, of events.TokenRef) (*Agent, Token, error) {
	known, depth, err := c.standing(ctx, of)
	if err == nil && depth == 0 {
		err = parley.Refuse(parley.Unauthenticated, "the token is not good")
	}
	if err != nil {
		return nil, Token{}, err
	}
	t := shownToken(of.Agent, known, c.node.now())
	t.depth = depth - 1
	return &Agent{node: c.node, id: of.Agent, by: &t}, t, nil
}

// standing returns a token and the length of its chain, itself included; 0 for no token. It refuses with
// UNAUTHENTICATED if a token of the chain is not valid.
func (c Credentials) standing(ctx context.Context, ref events.TokenRef) (token mailbox.Token, depth int, err error) {
	for ; !ref.Token.IsZero(); depth++ {
		if _, there := c.node.journal.Mailbox(ref.Agent); !there || depth > maxTokenDepth {
			return token, depth, parley.Refuse(parley.Unauthenticated, "the token is not good")
		}
		t, err := query(ctx, &Agent{node: c.node, id: ref.Agent}, func(s *mailbox.State, now capabilities.Time) (mailbox.Token, error) {
			return s.Tokens.Get(ref.Token, now)
		})
		if err != nil {
			return token, depth, err
		}
		if depth == 0 {
			token = t
		}
		ref = t.By
	}
	return token, depth, nil
}

func parseToken(n *Node, prefix, text string) (agent, token capabilities.ID, secret string, ok bool) {
	if !strings.HasPrefix(text, prefix) || len(text) <= tokenHead || len(text) > tokenHead+maxSecret {
		return agent, token, "", false
	}
	agent, err := capabilities.ParseLocalID(text[len(prefix):len(prefix)+ulid.EncodedSize], n.id)
	if err != nil {
		return agent, token, "", false
	}
	token, err = capabilities.ParseLocalID(text[len(prefix)+ulid.EncodedSize:tokenHead], n.id)
	return agent, token, text[tokenHead:], err == nil
}

// IsHost reports whether the agent is the node's host.
func (a *Agent) IsHost() bool { return a.id == a.node.host }

// Session is a new session of a browser. Its secret has two halves, and neither is of use alone. Text is for a cookie.
// Key is for the addresses of the pages.
type Session struct {
	Token
	Key string
}

// MakeSession makes a session for the agent. It opens no secrets. It ends after a day without use, and after two weeks
// at the latest. If the agent acts by a token, the session has no more scopes and lasts no longer. It ends with that
// token.
func (ts Tokens) MakeSession(ctx context.Context, note string) (Session, error) {
	scopes := []string{mailbox.ScopeRead, mailbox.ScopeAsk, mailbox.ScopeAnswer, mailbox.ScopeAdmin}
	if ts.agent.by != nil {
		scopes = slices.DeleteFunc(scopes, func(scope string) bool { return !ts.agent.by.May(scope) })
	}
	if len(scopes) == 0 {
		return Session{}, parley.Refuse(parley.NotPermitted, "the token is good for nothing that a page does")
	}
	key := rand.Text()
	made, _, err := ts.make(ctx, mailbox.MakeToken{
		Scopes: scopes, Until: ts.agent.node.now().Add(mailbox.SessionTime), Note: note, Session: true, Page: pageDigest(key),
	}, sessionPrefix)
	return Session{Token: made, Key: key}, err
}

// digest returns the digest by which a token's secret is kept.
func digest(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// pageDigest returns the digest by which a session's key is kept.
func pageDigest(key string) []byte {
	sum := sha256.Sum256([]byte("page " + key))
	return sum[:]
}

// AuthenticateSession returns the agent of a session, acting by it, and the session. It refuses with UNAUTHENTICATED.
func (c Credentials) AuthenticateSession(ctx context.Context, text, key string) (*Agent, Token, error) {
	return c.authenticate(ctx, sessionPrefix, text, pageDigest(key))
}

// Renew records that a session is used. If a new secret is due, it returns the session's next text. The old secret
// stays valid for a while. Otherwise it returns "".
func (c Credentials) Renew(ctx context.Context, t Token) (text string, err error) {
	if !t.due {
		return "", nil
	}
	secret := rand.Text()
	renewed, err := c.renew(ctx, mailbox.RenewToken{Token: t.ID, Digest: digest(secret), Shown: t.shown}, t)
	if err != nil || !renewed {
		return "", err
	}
	return sessionPrefix + t.ref.Agent.ULID.String() + t.ID.ULID.String() + secret, nil
}

// Keep refuses with UNAUTHENTICATED a token that is no longer valid, even if its secret has changed. It records that a
// session is used.
func (c Credentials) Keep(ctx context.Context, t Token) error {
	stands, _, err := c.standing(ctx, t.ref)
	if err != nil || !stands.IsDue(c.node.now(), false) {
		return err
	}
	_, err = c.renew(ctx, mailbox.RenewToken{Token: t.ID}, t)
	return err
}

// Epoch returns a number that grows whenever a token may have ended other than by its time: before the end is
// acknowledged, and when the journal fails. After a failure a mailbox may not be what its actor had in memory.
func (c Credentials) Epoch() uint64 { return c.node.tokenEpoch.Load() + c.node.journal.Failures() }

// IsGood reports whether a token that was valid at some time of an epoch is valid now. It asks no mailbox, and reports
// false where only that can tell: then Keep does.
func (c Credentials) IsGood(t *Token, epoch uint64) bool {
	return !t.Session && t.depth == 0 && epoch == c.Epoch() && (t.end == 0 || c.node.now() < t.end)
}

// Watch signals a channel, which has room for one, whenever a token may have been revoked. Stop ends that.
func (c Credentials) Watch(ch chan<- struct{}) (stop func()) {
	watching := c.node.changed.wait(capabilities.ID{}, ch)
	return func() { c.node.changed.drop(watching) }
}

// endsToken reports whether an event may end a token.
func endsToken(e events.Event) bool {
	switch e.(type) {
	case *events.TokenRevoked, *events.AgentArchived:
		return true
	}
	return false
}

func (c Credentials) renew(ctx context.Context, r mailbox.RenewToken, t Token) (bool, error) {
	evs, err := call(ctx, &Agent{node: c.node, id: t.ref.Agent}, decide{r})
	return len(evs) > 0, err
}

// Under returns the agent acting by a token.
func (a *Agent) Under(t *Token) *Agent {
	return &Agent{node: a.node, id: a.id, by: t, person: a.person}
}

// By returns the token by which the agent acts; a zero ID is none.
func (a *Agent) By() capabilities.ID {
	if a.by == nil {
		return capabilities.ID{}
	}
	return a.by.ID
}

// reveals reports whether the agent may see its sealed values.
func (a *Agent) reveals() bool { return a.by == nil || a.by.May(mailbox.ScopeReveal) }

// Tokens are the tokens and sessions of an agent.
type Tokens struct{ agent *Agent }

// Tokens returns the agent's tokens and sessions.
func (a *Agent) Tokens() Tokens { return Tokens{a} }

// rightPrefix begins the secret of a right to answer, which is otherwise made as a token's text.
const rightPrefix = "pla_"

// GrantAnswer makes a right to answer a form in the agent's place. If the agent acts by a token, the right ends with that.
func (a *Agent) GrantAnswer(ctx context.Context, c mailbox.GrantAnswer) (view.AnswerRight, error) {
	if a.by != nil {
		if _, _, err := a.node.Credentials().standing(ctx, a.by.ref); err != nil {
			return view.AnswerRight{}, err
		}
		c.By = a.by.ref
	}
	return a.makeRight(ctx, c)
}

// makeRight makes a right to answer with a new secret.
func (a *Agent) makeRight(ctx context.Context, c mailbox.GrantAnswer) (view.AnswerRight, error) {
	secret := rand.Text()
	c.Digest = digest(secret)
	evs, err := call(ctx, a, decide{c})
	if err != nil {
		return view.AnswerRight{}, err
	}
	e := evs[0].(*events.AnswerGranted)
	return view.AnswerRight{
		Grant: e.Grant.ID, Form: e.Grant.Message, Revision: e.Revision, Outcomes: e.Outcomes, Until: e.Grant.Facet.Until, Uses: e.Grant.Facet.Uses,
		Secret: rightPrefix + a.id.ULID.String() + e.Grant.ID.ULID.String() + secret,
	}, nil
}

// RightUse is a use of a right to answer. Reason is for a decision or a decline, Values and Texts for an answer.
type RightUse struct {
	Secret  string
	Outcome string
	Reason  string
	Values  map[string]capabilities.Value
	Texts   []events.FieldText
}

// AnswerWith answers a form by a right. It refuses with UNAUTHENTICATED a secret that is not good. A form that has ended
// is refused with the error that tells how.
func (c Credentials) AnswerWith(ctx context.Context, u RightUse) (view.Outcome, error) {
	agent, r, err := c.rightOf(ctx, u.Secret)
	if err != nil {
		return view.Outcome{}, err
	}
	mark, err := u.mark()
	if err != nil {
		return view.Outcome{}, err
	}
	return settle(agent, ctx, answerByRight{mailbox.UseAnswer{Grant: r.ID(), Digest: r.Digest, Outcome: u.Outcome, Mark: mark}, u})
}

// FormWith returns the form that a right answers, for whoever shows its secret, and the outcomes that the right names. It refuses
// what AnswerWith would for an outcome: a secret that is not good, a right that is used up, and a form that has ended.
func (c Credentials) FormWith(ctx context.Context, secret, outcome string) (view.Message, []string, error) {
	agent, r, err := c.rightOf(ctx, secret)
	if err != nil {
		return view.Message{}, nil, err
	}
	use := mailbox.UseAnswer{Grant: r.ID(), Digest: r.Digest, Outcome: outcome}
	if _, err := query(ctx, agent, func(s *mailbox.State, now capabilities.Time) ([]events.Event, error) {
		return s.Decide(use, now, c.node.newID)
	}); err != nil {
		return view.Message{}, nil, err
	}
	m, err := agent.Message(ctx, capabilities.FormID(r.Form()))
	return m, r.Outcomes, err
}

// mark returns a text that is equal for equal uses of a right. The log has it, and it tells nothing of the answer to those
// who do not have the secret.
func (u RightUse) mark() (string, error) {
	given, err := json.Marshal(RightUse{Outcome: u.Outcome, Reason: u.Reason, Values: u.Values, Texts: u.Texts})
	if err != nil {
		return "", fmt.Errorf("encode the answer: %w", err)
	}
	h := hmac.New(sha256.New, []byte(u.Secret))
	_, _ = h.Write(given) // it never fails
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// NarrowRight makes a right that derives from the one with a secret, for its bearer to hand on. It has no more than that,
// and ends with it. NarrowRight refuses with UNAUTHENTICATED a secret that is not good.
func (c Credentials) NarrowRight(ctx context.Context, secret string, g mailbox.GrantAnswer) (view.AnswerRight, error) {
	agent, r, err := c.rightOf(ctx, secret)
	if err != nil {
		return view.AnswerRight{}, err
	}
	g.Form, g.From, g.By = capabilities.FormID(r.Form()), r.ID(), r.By
	return agent.makeRight(ctx, g)
}

// rightOf returns the right with a secret, and the agent that made it. It refuses with UNAUTHENTICATED a secret that is not
// good, and a right whose maker's token has ended.
func (c Credentials) rightOf(ctx context.Context, text string) (*Agent, right.Right, error) {
	id, grant, secret, ok := parseToken(c.node, rightPrefix, text)
	if ok {
		_, ok = c.node.journal.Mailbox(id)
	}
	if !ok {
		return nil, right.Right{}, parley.Refuse(parley.Unauthenticated, "the link is not good, or is too old")
	}
	agent := &Agent{node: c.node, id: id}
	r, err := query(ctx, agent, func(s *mailbox.State, _ capabilities.Time) (right.Right, error) {
		r, err := s.Grants.Answers.Check(grant, digest(secret))
		if err != nil {
			return right.Right{}, err
		}
		return *r, nil
	})
	if err != nil {
		return nil, r, err
	}
	_, _, err = c.standing(ctx, r.By)
	return agent, r, err
}

// answerByRight checks an answer by a right, records the use, and sends the answer to the form's home. A use that is recorded
// while the answer is lost in a crash may be repeated.
type answerByRight struct {
	use   mailbox.UseAnswer
	given RightUse
}

func (m answerByRight) handle(b *mailboxActor, reply replyTo[settlement]) {
	settle, home, err := m.draft(b)
	if err == nil {
		err = b.seal(&settle)
	}
	var used []events.Event
	if err == nil {
		used, err = b.decide(m.use)
	}
	if f, found := b.formOf(settle.Form); err == nil && len(used) == 0 && found == nil && f.Form.Votes().Of(b.reg.id) != nil {
		outcome, err := votedOutcome(b, settle.Form, b.reg.id, nil)
		reply.release(b, settlement{outcome: outcome}, err)
		return
	}
	sendHome(b, home, settle, err, reply)
}

// draft returns the settlement for the outcome, and the form's home.
func (m answerByRight) draft(b *mailboxActor) (settle mailbox.SettleForm, home capabilities.ID, err error) {
	form, err := recalled(b.old, func() (*mailbox.Message, error) {
		_, form, err := b.state.RightTo(m.use.Grant, m.use.Digest)
		return form, err
	})
	if err != nil {
		return settle, home, err
	}
	if _, err := recalled(b.old, func() ([]events.Event, error) { return b.state.Decide(m.use, b.node.now(), b.node.newID) }); err != nil {
		return settle, home, err
	}
	ref := capabilities.FormID(form.Form.ID)
	if m.use.Outcome == right.Decline {
		settle, err = recalled(b.old, func() (s mailbox.SettleForm, err error) {
			s, home, err = b.state.DraftDecline(ref, form.Form.Revision(), m.given.Reason, b.node.newID)
			return s, err
		})
		return settle, home, err
	}
	reply := mailbox.Reply{Form: ref, Answer: parley.Answer{Values: m.given.Values, Texts: m.given.Texts, Revision: form.Form.Revision()}}
	if m.use.Outcome != right.Answer {
		reply.Values, reply.Texts = nil, []events.FieldText{{Name: "decision", Text: m.use.Outcome}}
		if m.given.Reason != "" {
			reply.Texts = append(reply.Texts, events.FieldText{Name: "reason", Text: m.given.Reason})
		}
	}
	return draftAnswer(b, reply)
}
