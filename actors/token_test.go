package actors

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// shiftedClock is a clock that can be set forward.
type shiftedClock struct{ by atomic.Int64 }

func (c *shiftedClock) now() time.Time           { return time.Now().Add(time.Duration(c.by.Load())) }
func (c *shiftedClock) forward(by time.Duration) { c.by.Add(int64(by)) }
func (c *shiftedClock) open(tb testing.TB, f string) *Node {
	tb.Helper()
	n, err := Open(context.Background(), Options{Folder: f, Name: "test", Clock: c.now})
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// agentByToken returns the agent that a token acts for.
func agentByToken(tb testing.TB, n *Node, text string) *Agent {
	tb.Helper()
	a, _, err := n.Credentials().Authenticate(tb.Context(), text)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func makeToken(tb testing.TB, a *Agent, t NewToken) view.Token {
	tb.Helper()
	made, err := a.Tokens().Make(tb.Context(), t)
	if err != nil {
		tb.Fatal(err)
	}
	return made
}

func wantCode(tb testing.TB, what string, err error, want parley.Code) {
	tb.Helper()
	if parley.CodeOf(err) != want {
		tb.Errorf("%s: %v, want %q", what, err, want)
	}
}

func TestTokenMakesOnlyNarrowerTokens(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	until := n.now().Add(time.Hour)
	host := agentByToken(t, n, makeToken(t, n.Host(), NewToken{Scopes: []string{"read", "admin"}, Until: until}).Text)
	underHost := fae.Under(host.by) // the host acts for fae by its token
	for name, a := range map[string]*Agent{"the host": host, "fae": underHost} {
		for _, scope := range []string{"ask", "answer", "reveal"} {
			_, err := a.Tokens().Make(t.Context(), NewToken{Scopes: []string{"read", scope}})
			wantCode(t, name+" with "+scope, err, parley.NotPermitted)
		}
		_, err := a.Tokens().Make(t.Context(), NewToken{Until: until + 1})
		wantCode(t, name+" for longer", err, parley.NotPermitted)
		made := makeToken(t, a, NewToken{})
		if made.Until != until || !slices.Equal(made.Scopes, []string{"read"}) || made.By != host.by.ID {
			t.Errorf("%s made %+v", name, made)
		}
		if in, err := a.Tokens().MakeSession(t.Context(), "x"); err != nil || in.Until != until || !slices.Equal(in.Scopes, []string{"admin", "read"}) {
			t.Errorf("%s made the session %+v, %v", name, in, err)
		}
	}
	deep := host
	for range maxTokenDepth - 1 {
		deep = agentByToken(t, n, makeToken(t, deep, NewToken{Scopes: []string{"admin"}}).Text)
	}
	last := agentByToken(t, n, makeToken(t, deep, NewToken{Scopes: []string{"admin"}}).Text)
	_, err := last.Tokens().Make(t.Context(), NewToken{})
	wantCode(t, "too deep", err, parley.TooLarge)
}

func TestDerivedTokensEndWithTheirParent(t *testing.T) {
	folder, clock := t.TempDir(), &shiftedClock{}
	n := clock.open(t, folder)
	defer func() { closeNode(t, n) }()
	fae := guest(t, n, "fae")
	for name, end := range map[string]func(view.Token){
		"it is revoked": func(made view.Token) { wantCode(t, "revoke", n.Host().Tokens().Revoke(t.Context(), made.ID), "") },
		"it expires":    func(view.Token) { clock.forward(2 * time.Hour) },
		"the node restarts": func(made view.Token) {
			wantCode(t, "revoke", n.Host().Tokens().Revoke(t.Context(), made.ID), "")
			closeNode(t, n)
			n = clock.open(t, folder)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fae := &Agent{node: n, id: fae.id}
			first := makeToken(t, n.Host(), NewToken{Scopes: allScopes, Until: n.now().Add(time.Hour)})
			host := agentByToken(t, n, first.Text)
			child := makeToken(t, host, NewToken{Scopes: allScopes})
			grandchild := makeToken(t, agentByToken(t, n, child.Text), NewToken{})
			ofFae := makeToken(t, fae.Under(host.by), NewToken{Scopes: []string{"read", "admin"}})
			itsChild := makeToken(t, agentByToken(t, n, ofFae.Text), NewToken{})
			session, err := fae.Under(agentByToken(t, n, child.Text).by).Tokens().MakeSession(t.Context(), "a browser")
			if err != nil {
				t.Fatal(err)
			}
			separate := makeToken(t, fae, NewToken{})
			all := []view.Token{child, grandchild, ofFae, itsChild, first}
			var acting []*Token
			for _, made := range all {
				acting = append(acting, agentByToken(t, n, made.Text).by)
			}
			if _, _, err := n.Credentials().AuthenticateSession(t.Context(), session.Text, session.Key); err != nil {
				t.Fatal(err)
			}
			end(first)
			fae, host = &Agent{node: n, id: fae.id}, &Agent{node: n, id: host.id, by: host.by}
			for i, made := range all {
				_, _, err := n.Credentials().Authenticate(t.Context(), made.Text)
				wantCode(t, "token "+string(rune('0'+i)), err, parley.Unauthenticated)
				wantCode(t, "continued use", n.Credentials().Keep(t.Context(), *acting[i]), parley.Unauthenticated)
			}
			_, _, err = n.Credentials().AuthenticateSession(t.Context(), session.Text, session.Key)
			wantCode(t, "the session", err, parley.Unauthenticated)
			_, err = host.Tokens().Make(t.Context(), NewToken{})
			wantCode(t, "making another by it", err, parley.Unauthenticated)
			_, err = fae.Under(host.by).Tokens().MakeSession(t.Context(), "late")
			wantCode(t, "a late session", err, parley.Unauthenticated)
			agentByToken(t, n, separate.Text)
			if left, err := fae.Tokens().List(t.Context()); err != nil || len(left) == 0 || slices.ContainsFunc(left, func(t view.Token) bool { return !t.By.IsZero() }) {
				t.Errorf("listed: %+v %v", left, err)
			}
		})
	}
}

// allScopes are the scopes that a token can have.
var allScopes = mailbox.TokenScopes()

func TestInvitationEndsWithItsToken(t *testing.T) {
	n, err := Open(t.Context(), Options{Folder: t.TempDir(), Name: "test", Peers: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNode(t, n) })
	until := n.now().Add(time.Hour)
	first := makeToken(t, n.Host(), NewToken{Scopes: allScopes, Until: until})
	second := makeToken(t, agentByToken(t, n, first.Text), NewToken{Scopes: []string{"admin"}})
	made, err := agentByToken(t, n, second.Text).Peers().Invite(t.Context(), NewInvitation{Name: "bob", Until: n.now().Add(48 * time.Hour)})
	if err != nil || made.Until != until {
		t.Fatalf("%+v %v", made, err)
	}
	if open, err := n.Host().Peers().Invitations(t.Context()); err != nil || len(open) != 1 {
		t.Fatalf("%v %v", open, err)
	}
	if err := n.Host().Tokens().Revoke(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if open, err := n.Host().Peers().Invitations(t.Context()); err != nil || len(open) != 0 {
		t.Errorf("it is still open: %v %v", open, err)
	}
	l, err := capabilities.ParseLocator(made.Locator)
	if err != nil {
		t.Fatal(err)
	}
	if n.peers.Admits(capabilities.NodeOf([32]byte{31: 9}), peers.Token(l.ID.ULID, l.Secret)) {
		t.Error("its holder is admitted")
	}
}

func TestSessionExpiresUnlessRenewed(t *testing.T) {
	folder, clock := t.TempDir(), &shiftedClock{}
	n := clock.open(t, folder)
	defer func() { closeNode(t, n) }()
	in, err := n.Host().Tokens().MakeSession(t.Context(), "a browser")
	if err != nil {
		t.Fatal(err)
	}
	use := func(text string) (next string, err error) {
		_, s, err := n.Credentials().AuthenticateSession(t.Context(), text, in.Key)
		if err != nil {
			return "", err
		}
		return n.Credentials().Renew(t.Context(), s)
	}
	version := func() uint64 {
		v, err := n.Host().Version(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	before := version()
	for range 20 {
		if next, err := use(in.Text); next != "" || err != nil {
			t.Fatalf("%q %v", next, err)
		}
	}
	if got := version(); got != before {
		t.Errorf("20 uses wrote %d events", got-before)
	}
	clock.forward(2 * time.Hour)
	next, err := use(in.Text)
	if err != nil || next == "" || next == in.Text {
		t.Fatalf("%q %v", next, err)
	}
	if again, err := use(in.Text); again != "" || err != nil { // another tab that does not have the next text yet
		t.Fatalf("%q %v", again, err)
	}
	clock.forward(2 * time.Hour) // the response with the next text was lost
	lost := next
	if next, err = use(in.Text); err != nil || next == "" {
		t.Fatalf("%q %v", next, err)
	}
	_, err = use(lost)
	wantCode(t, "a text that was never used", err, parley.Unauthenticated)
	if _, err := use(next); err != nil {
		t.Fatal(err)
	}
	closeNode(t, n)
	n = clock.open(t, folder)
	clock.forward(2 * time.Hour)
	if next, err = use(next); err != nil || next == "" {
		t.Fatalf("%q %v", next, err)
	}
	_, err = use(in.Text)
	wantCode(t, "an old one", err, parley.Unauthenticated)
	_, s, err := n.Credentials().AuthenticateSession(t.Context(), next, in.Key)
	if err != nil {
		t.Fatal(err)
	}
	for spent := 10 * time.Hour; spent < mailbox.SessionTime; spent += 23 * time.Hour { // a page that stays open
		if err := n.Credentials().Keep(t.Context(), s); err != nil {
			t.Fatalf("after %v: %v", spent, err)
		}
		clock.forward(23 * time.Hour)
	}
	wantCode(t, "after two weeks", n.Credentials().Keep(t.Context(), s), parley.Unauthenticated)
	idle, err := n.Host().Tokens().MakeSession(t.Context(), "another")
	if err != nil {
		t.Fatal(err)
	}
	clock.forward(25 * time.Hour)
	_, _, err = n.Credentials().AuthenticateSession(t.Context(), idle.Text, idle.Key)
	wantCode(t, "after a day without use", err, parley.Unauthenticated)
	_, _, err = n.Credentials().AuthenticateSession(t.Context(), idle.Text, "")
	wantCode(t, "without its key", err, parley.Unauthenticated)
	_, _, err = n.Credentials().Authenticate(t.Context(), idle.Text)
	wantCode(t, "as a token", err, parley.Unauthenticated)
	if left, err := n.Host().Tokens().List(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%+v %v", left, err)
	}
}

// answeredSecret asks the host for a secret as fae, answers it, and binds the answer to a name.
func answeredSecret(t *testing.T, n *Node, fae *Agent) view.Asked {
	t.Helper()
	asked := ask(t, fae, parley.Form{Fields: []events.Field{{Name: "key", Type: events.Secret}}, Name: "config", Key: "k"})
	if _, err := n.Host().Answer(t.Context(), capabilities.FormID(asked.Form), parley.Answer{Values: text("key", "sk-1")}); err != nil {
		t.Fatal(err)
	}
	return asked
}

func TestSecretsAreRevealedToAskerAndScope(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	asked := answeredSecret(t, n, fae)
	form := capabilities.FormID(asked.Form)
	sealed := `{"key":"•••"}`
	without := agentByToken(t, n, makeToken(t, fae, NewToken{Scopes: []string{"read", "ask", "admin"}}).Text)
	with := agentByToken(t, n, makeToken(t, fae, NewToken{Scopes: []string{"read", "reveal"}}).Text)
	unnamed := agentByToken(t, n, makeToken(t, fae, NewToken{}).Text)
	outcome := func(a *Agent) string {
		t.Helper()
		o, err := a.Await(t.Context(), form)
		if err != nil {
			t.Fatal(err)
		}
		if o.Values.Has(capabilities.Value.IsSealed) {
			return sealed
		}
		return o.Values.Text()
	}
	again := func(a *Agent, q parley.Form) string {
		t.Helper()
		known, err := a.Ask(t.Context(), q)
		if err != nil || known.Outcome == nil {
			t.Fatalf("%+v %v", known, err)
		}
		if known.Outcome.Values.Has(capabilities.Value.IsSealed) {
			return sealed
		}
		return known.Outcome.Values.Text()
	}
	q := parley.Form{To: "HOST", Description: "something", Fields: []events.Field{{Name: "key", Type: events.Secret}}}
	byKey, byName := q, q
	byKey.Key, byKey.Name, byName.Name = "k", "config", "config"
	const open = `{"key":"sk-1"}`
	for name, c := range map[string]struct {
		a    *Agent
		want string
	}{"itself": {fae, open}, "a token of a guest": {unnamed, open}, "with reveal": {with, open}, "without reveal": {without, sealed}, "the host's token as fae": {
		fae.Under(agentByToken(t, n, makeToken(t, n.Host(), NewToken{}).Text).by), sealed,
	}} {
		if got := []string{outcome(c.a), again(c.a, byKey), again(c.a, byName)}; got[0] != c.want || got[1] != c.want || got[2] != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
		for _, path := range []string{"config", "config/key", "@mail/0/@value", "@mail/0/@value/key"} {
			_, err := c.a.Names().Show(t.Context(), path, true)
			if (err == nil) != (c.want == open) {
				t.Errorf("%s, %s: %v", name, path, err)
			}
			if v, err := c.a.Names().Show(t.Context(), path, false); err != nil || !v.Has(capabilities.Value.IsSealed) {
				t.Errorf("%s, %s: %v, %v", name, path, v.Text(), err)
			}
		}
	}
	// The answerer cannot reveal the secret by any path.
	host := n.Host()
	for _, path := range []string{"@mail/0/@value", "@mail/0/@value/key"} {
		_, err := host.Names().Show(t.Context(), path, true)
		wantCode(t, "the host, "+path, err, parley.NotPermitted)
		if err := host.Names().Copy(t.Context(), path, "copied", capabilities.Facet{}); err != nil {
			t.Fatal(err)
		}
		_, err = host.Names().Show(t.Context(), "copied", true)
		wantCode(t, "the host's copy of "+path, err, parley.NotPermitted)
		if err := host.Names().Remove(t.Context(), "copied"); err != nil {
			t.Fatal(err)
		}
	}
	if got := outcome(host); got != sealed {
		t.Errorf("the host sees %s", got)
	}
}

func TestAwaitWithoutRevealHidesSecrets(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	asked := ask(t, fae, parley.Form{Fields: []events.Field{{Name: "key", Type: events.Secret}}})
	form := capabilities.FormID(asked.Form)
	type result struct {
		o   view.Outcome
		err error
	}
	waits := map[bool]*Agent{true: agentByToken(t, n, makeToken(t, fae, NewToken{Scopes: []string{"read", "reveal"}}).Text), false: agentByToken(t, n, makeToken(t, fae, NewToken{Scopes: []string{"read"}}).Text)}
	results := map[bool]chan result{true: make(chan result, 1), false: make(chan result, 1)}
	for reveals, a := range waits {
		go func() {
			o, err := a.Await(t.Context(), form)
			results[reveals] <- result{o, err}
		}()
	}
	eventually.Holds(t, "both wait", func() bool {
		return n.ended.of(formKey{fae.id, asked.Form}) == 2
	})
	if _, err := n.Host().Answer(t.Context(), form, parley.Answer{Values: text("key", "sk-1")}); err != nil {
		t.Fatal(err)
	}
	for reveals, ch := range results {
		got := <-ch
		if got.err != nil || got.o.Status != view.StatusAnswered || got.o.Values.Has(capabilities.Value.IsSealed) == reveals {
			t.Errorf("with reveal %v: %+v %v", reveals, got.o, got.err)
		}
	}
}

// TestAwaitThatIsGivenUpHidesSecrets has the answer come as a wait is given up that may not see its secret.
func TestAwaitThatIsGivenUpHidesSecrets(t *testing.T) {
	t.Parallel()
	var giveUp atomic.Pointer[context.CancelFunc]
	n := openWith(t, Options{Folder: t.TempDir(), Failpoint: func(step string) error {
		if f := giveUp.Load(); f != nil && step == "after publish" {
			(*f)()
		}
		return nil
	}})
	fae := guest(t, n, "fae")
	reader := agentByToken(t, n, makeToken(t, fae, NewToken{Scopes: []string{"read"}}).Text)
	for range 100 {
		asked := ask(t, fae, parley.Form{Fields: []events.Field{{Name: "key", Type: events.Secret}}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan view.Outcome, 1)
		go func() {
			o, _ := reader.Await(ctx, capabilities.FormID(asked.Form))
			ended <- o
		}()
		eventually.Holds(t, "it waits", func() bool { return n.ended.of(formKey{fae.id, asked.Form}) == 1 })
		giveUp.Store(&cancel)
		if _, err := n.Host().Answer(t.Context(), capabilities.FormID(asked.Form), parley.Answer{Values: text("key", "sk-1")}); err != nil {
			t.Fatal(err)
		}
		if o := <-ended; o.Status == view.StatusAnswered && !o.Values.Has(capabilities.Value.IsSealed) {
			t.Fatalf("the reader sees %v", o.Values)
		}
		giveUp.Store(nil)
	}
}
