package backend

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// TestTokenRevokedBeforeUseEndsTheUse revokes a token between its check and the beginning of its use.
func TestTokenRevokedBeforeUseEndsTheUse(t *testing.T) {
	node, err := actors.Open(t.Context(), actors.Options{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	b := New(node, Options{Log: slog.New(slog.DiscardHandler), Look: time.Hour})
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		b.Watch(ctx)
	}()
	defer func() {
		stop()
		<-watched
		if err := node.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	tokens := node.Host().Tokens()
	made, err := tokens.Make(t.Context(), actors.NewToken{Scopes: []string{"read"}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Identify(t.Context(), made.Text)
	if err != nil {
		t.Fatal(err)
	}
	if err := tokens.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	defer b.WhileGood(p, func() { close(ended) })()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the use of a revoked token goes on")
	}
}

// TestACheckSeesEachEndOfAToken has tokens end in every way that there is, between two checks.
func TestACheckSeesEachEndOfAToken(t *testing.T) {
	var passed atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	node, err := actors.Open(t.Context(), actors.Options{Folder: t.TempDir(), Clock: now})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := node.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	b := New(node, Options{Log: slog.New(slog.DiscardHandler), Look: time.Hour})
	mint := func(a *actors.Agent, tokens actors.NewToken) (view.Token, *principal) {
		t.Helper()
		made, err := a.Tokens().Make(t.Context(), tokens)
		if err != nil {
			t.Fatal(err)
		}
		p, err := b.Identify(t.Context(), made.Text)
		if err != nil {
			t.Fatal(err)
		}
		return made, p.(*principal)
	}
	for name, end := range map[string]func(t *testing.T, a *actors.Agent) (ended *principal, end func() error){
		"revoked": func(t *testing.T, a *actors.Agent) (*principal, func() error) {
			made, p := mint(a, actors.NewToken{})
			return p, func() error { return a.Tokens().Revoke(t.Context(), made.ID) }
		},
		"revoked with its maker": func(t *testing.T, a *actors.Agent) (*principal, func() error) {
			made, p := mint(a, actors.NewToken{})
			_, p = mint(p.agent, actors.NewToken{})
			return p, func() error { return a.Tokens().Revoke(t.Context(), made.ID) }
		},
		"over": func(t *testing.T, a *actors.Agent) (*principal, func() error) {
			_, p := mint(a, actors.NewToken{Until: capabilities.At(now().Add(time.Minute))})
			return p, func() error {
				passed.Add(int64(time.Hour))
				return nil
			}
		},
		"archived with its agent": func(t *testing.T, a *actors.Agent) (*principal, func() error) {
			_, p := mint(a, actors.NewToken{})
			return p, func() error { return node.Host().Agents().Archive(t.Context(), a) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: strings.ReplaceAll(name, " ", "-")})
			if err != nil {
				t.Fatal(err)
			}
			_, other := mint(a, actors.NewToken{})
			p, end := end(t, a)
			for range 2 {
				if err := b.Check(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := b.Check(t.Context(), p); parley.CodeOf(err) != parley.Unauthenticated {
					t.Errorf("the token is still good: %v", err)
				}
			}
			if err := b.Check(t.Context(), other); (err != nil) != strings.HasPrefix(name, "archived") {
				t.Errorf("another token: %v", err)
			}
		})
	}
}
