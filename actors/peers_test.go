package actors

import (
	"errors"
	"sync/atomic"
	"testing"

	"parley"
	"parley/internal/eventually"
)

// TestLostInvitationAdmitsNoPeer fails the commit of an invitation. The peers forget it when the host's mailbox is replayed.
func TestLostInvitationAdmitsNoPeer(t *testing.T) {
	var failing atomic.Bool
	n, err := Open(t.Context(), Options{Folder: t.TempDir(), Peers: "127.0.0.1:0", Failpoint: func(step string) error {
		if failing.Load() && step == "before publish" {
			return errors.New("failpoint " + step)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer closeNode(t, n)
	if _, err := n.Host().Peers().Invite(t.Context(), NewInvitation{Name: "kept"}); err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	if _, err := n.Host().Peers().Invite(t.Context(), NewInvitation{Name: "lost"}); parley.CodeOf(err) != parley.ReadOnly {
		t.Fatalf("invited: %v", err)
	}
	failing.Store(false)
	eventually.Holds(t, "the journal is back", func() bool { return n.journal.Err() == nil })
	open, err := n.Host().Peers().Invitations(t.Context())
	if err != nil || len(open) != 1 || open[0].Name != "kept" {
		t.Fatalf("open invitations: %v, %v", open, err)
	}
	if open := n.peers.Invited(); open != 1 {
		t.Errorf("the listener would admit nodes by %d invitations", open)
	}
}
