package actors

import (
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
)

// TestQuestionEndsItsWaitsAlone has waits for several forms, with and without questions. A question about one ends those waits for it that
// do not know of it, and a reply ends the question.
func TestQuestionEndsItsWaitsAlone(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	one, other := capabilities.FormID(ask(t, fae, parley.Form{}).Form), capabilities.FormID(ask(t, fae, parley.Form{}).Form)
	waits := map[string]chan asyncResult{}
	wait := func(name string, ref capabilities.FormRef, asked *uint64) {
		ended := make(chan asyncResult, 1)
		waits[name] = ended
		BeginAwait(fae, ref, asked, func(o view.Outcome, err error) { ended <- asyncResult{outcome: o, err: err} })
	}
	wait("asked", one, new(uint64))
	wait("knows", one, new(uint64(100)))
	wait("plain", one, nil)
	wait("other", other, new(uint64))
	eventually.Holds(t, "all wait", func() bool { return n.ended.count.Load() == 4 })
	if _, err := n.Host().Reply(t.Context(), one, "of which server?"); err != nil {
		t.Fatal(err)
	}
	got := <-waits["asked"]
	if got.err != nil || got.outcome.Status != view.StatusAsked || got.outcome.Note != "of which server?" || got.outcome.Message == nil {
		t.Fatalf("%+v", got)
	}
	if left := n.ended.count.Load(); left != 3 {
		t.Errorf("%d waits are left", left)
	}
	again, err := fae.Mail().AwaitQuestion(t.Context(), one, 0) // at once
	if err != nil || again.Status != view.StatusAsked || *again.Message != *got.outcome.Message {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := fae.Reply(t.Context(), capabilities.FormNumber(*again.Message), "of the proxy"); err != nil {
		t.Fatal(err)
	}
	wait("answered", one, new(uint64))
	eventually.Holds(t, "the question is answered", func() bool { return n.ended.count.Load() == 4 })
	if _, err := n.Host().Decline(t.Context(), one, 0, "no"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"knows", "plain", "answered"} {
		if got := <-waits[name]; got.outcome.Status != view.StatusDeclined {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if len(waits["other"]) > 0 {
		t.Error("the wait for another form has ended")
	}
}
