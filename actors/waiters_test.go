package actors

import (
	"context"
	"testing"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// TestCancelledCallsLeaveNoWaiter ends the context of waiting calls while the mailbox that would register them is busy.
func TestCancelledCallsLeaveNoWaiter(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	host := n.Host()
	asked, err := host.Ask(t.Context(), parley.Form{To: "SELF", Description: "d", Fields: []events.Field{{Name: "a", Label: "A", Type: events.Text}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Report(t.Context(), mailbox.Running, ""); err != nil {
		t.Fatal(err)
	}
	for what, wait := range map[string]func(context.Context) error{
		"await": func(ctx context.Context) error {
			_, err := host.Await(ctx, capabilities.FormID(asked.Form))
			return err
		},
		"wait for finish": func(ctx context.Context) error {
			_, err := host.WaitForFinish(ctx, 0)
			return err
		},
	} {
		begun, release := make(chan struct{}), make(chan struct{})
		go func() {
			_, _ = inspect(context.WithoutCancel(t.Context()), host, func(*mailboxActor) (none, error) {
				close(begun)
				<-release
				return none{}, nil
			})
		}()
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := wait(ctx)
		cancel()
		close(release)
		if parley.CodeOf(err) != parley.Timeout {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := host.Version(t.Context()); err != nil { // the mailbox has handled the call by then
			t.Fatal(err)
		}
		if ended, finished := n.ended.of(formKey{host.id, asked.Form}), n.finished.of(host.id); ended+finished > 0 {
			t.Errorf("%s: %d and %d waiters are left", what, ended, finished)
		}
	}
}
