package actors

import (
	"errors"
	"testing"

	"parley/actors/view"
	"parley/internal/eventually"
	"parley/mailbox"
)

// readOld is a request that needs an old message of the mailbox.
type readOld struct{ number uint64 }

func (m readOld) handle(b *mailboxActor) (none, error) {
	return recalled(b.old, func() (none, error) { return none{}, &mailbox.PagedOut{Numbers: []uint64{m.number}} })
}

func TestUnreadOldMessageIsNoRefusal(t *testing.T) {
	host, _ := hostWithMessages(t, 1, 0)
	n := host.node
	eventually.Holds(t, "the message arrives", func() bool {
		in, err := host.Mail().Since(t.Context(), view.MessageFilter{All: true}, 0)
		return err == nil && len(in.Messages) == 1
	})
	if err := n.journal.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := call(t.Context(), host, readOld{0})
	if _, ok := errors.AsType[unread](err); !ok {
		t.Errorf("a message that the journal cannot give is refused: %v", err)
	}
}
