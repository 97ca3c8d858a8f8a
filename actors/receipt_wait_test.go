package actors

import (
	"testing"

	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestReceiptWakesWaitsForItsMessage has many waits for the states of messages. A receipt of one wakes the waits for that, and a wait
// that goes on after its message has arrived looks at the mailbox no more until then.
func TestReceiptWakesWaitsForItsMessage(t *testing.T) {
	t.Parallel()
	v := openNode(t, t.TempDir())
	fae := guest(t, v, "fae")
	woken := map[uint64]chan none{}
	for n := range uint64(100) {
		if _, err := v.Host().Send(t.Context(), "fae", "hello"); err != nil {
			t.Fatal(err)
		}
		if _, err := v.Host().Mail().AwaitState(t.Context(), capabilities.FormNumber(n), events.Delivered, false); err != nil {
			t.Fatal(err)
		}
		woken[n] = make(chan none, 1)
		v.touched.wait(messageKey{v.Host().id, n}, woken[n])
	}
	ended := make(chan error, 1)
	go func() {
		_, err := v.Host().Mail().AwaitState(t.Context(), capabilities.FormNumber(50), events.Handled, false)
		ended <- err
	}()
	eventually.Holds(t, "the wait begins", func() bool { return v.touched.of(messageKey{v.Host().id, 50}) == 2 })
	if err := fae.Handle(t.Context(), mailbox.HandleMessages{Reader: fae.id, Numbers: []uint64{50}, How: events.WasRead}); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	<-woken[50]
	for n, ch := range woken {
		if n != 50 && len(ch) > 0 {
			t.Errorf("a receipt of message 50 woke the wait for %d", n)
		}
	}
}
