package backend

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"parley/actors"
	"parley/internal/eventually"
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
	eventually.Holds(t, "the revocation has been seen", func() bool {
		if b.uses.now() == 0 { // the watch may have just begun: revoke again
			again, err := tokens.Make(t.Context(), actors.NewToken{Scopes: []string{"read"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := tokens.Revoke(t.Context(), again.ID); err != nil {
				t.Fatal(err)
			}
		}
		return b.uses.now() > 0
	})
	if err := tokens.Revoke(t.Context(), made.ID); err != nil {
		t.Fatal(err)
	}
	seen := b.uses.now()
	eventually.Holds(t, "its own has been seen, too", func() bool { return b.uses.now() > 1 || seen > 1 })
	ended := make(chan struct{})
	defer b.WhileGood(p, func() { close(ended) })()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the use of a revoked token goes on")
	}
}
