package actors

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// hostWithForm returns a host and the form that it was asked.
func hostWithForm(t *testing.T, n *Node) (host *Agent, form capabilities.FormRef, asker *Agent) {
	t.Helper()
	fae, err := n.Host().Make(t.Context(), NewAgent{Kind: events.Guest, Name: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	asked, err := fae.Ask(t.Context(), parley.Form{To: "HOST", Description: "name and pin", Fields: []events.Field{{Name: "name"}, {Name: "pin", Type: events.Secret}}})
	if err != nil {
		t.Fatal(err)
	}
	return n.Host(), capabilities.FormID(asked.Form), fae
}

func countsOf(t *testing.T, a *Agent) view.MessageCounts {
	t.Helper()
	c, err := a.Mail().Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func numbersIn(t *testing.T, a *Agent, f view.MessageFilter) (numbers []uint64) {
	t.Helper()
	in, err := a.Mail().Inbox(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	last, err := a.Mail().Last(t.Context(), f, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range in.Messages {
		if numbers = append(numbers, m.Number); len(last.Messages) != len(in.Messages) || last.Messages[i].Number != m.Number {
			t.Errorf("%+v lists %d messages, and from the end %d", f, len(in.Messages), len(last.Messages))
		}
	}
	return numbers
}

// TestSnoozedMessageComesBackAfterDowntime snoozes a form over a restart in which its time comes.
func TestSnoozedMessageComesBackAfterDowntime(t *testing.T) {
	folder := t.TempDir()
	var skew atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(skew.Load())) }
	n := openWith(t, Options{Folder: folder, Clock: clock})
	host, form, _ := hostWithForm(t, n)
	until := n.now().Add(time.Hour)
	if err := host.Mail().Snooze(t.Context(), form, until); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Mail().MarkRead(t.Context(), []uint64{0}, false); err != nil {
		t.Fatal(err)
	}
	m, err := host.Message(t.Context(), form)
	if err != nil || m.SnoozedUntil != until || m.Unread || !m.AnswerNeeded {
		t.Fatalf("%+v, %v", m, err)
	}
	if pending, snoozed := numbersIn(t, host, view.MessageFilter{Pending: true}), numbersIn(t, host, view.MessageFilter{Snoozed: true}); len(pending) != 0 || len(snoozed) != 1 {
		t.Errorf("pending %v, snoozed %v", pending, snoozed)
	}
	if c := countsOf(t, host); c != (view.MessageCounts{Snoozed: 1, All: 1}) {
		t.Errorf("counts %+v", c)
	}
	closeNode(t, n)
	skew.Store(int64(2 * time.Hour))
	n = openWith(t, Options{Folder: folder, Clock: clock})
	host = n.Host()
	in, err := host.Mail().Changes(t.Context(), view.MessageFilter{Pending: true}, m.Changed) // the scheduler alone wakes it
	if err != nil || len(in.Messages) != 1 || !in.Messages[0].Unread || in.Messages[0].SnoozedUntil != 0 {
		t.Fatalf("%+v, %v", in, err)
	}
	if c := countsOf(t, host); c != (view.MessageCounts{Pending: 1, Unread: 1, All: 1}) {
		t.Errorf("counts %+v", c)
	}
}

// TestInboxListsAndCountsAgree looks at messages of each kind in each list, before and after a restart.
func TestInboxListsAndCountsAgree(t *testing.T) {
	folder := t.TempDir()
	n := openWith(t, Options{Folder: folder})
	host, form, fae := hostWithForm(t, n)
	for range 5 {
		if _, err := fae.Send(t.Context(), "HOST", "hello"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := host.Reply(t.Context(), capabilities.FormNumber(1), "hi"); err != nil {
		t.Fatal(err)
	}
	for _, number := range []uint64{1, 2} {
		if err := host.Dismiss(t.Context(), capabilities.FormNumber(number)); err != nil {
			t.Fatal(err)
		}
	}
	if err := host.Restore(t.Context(), capabilities.FormNumber(2)); err != nil {
		t.Fatal(err)
	}
	if left, err := host.Mail().MarkRead(t.Context(), []uint64{3, 4, 4}, false); err != nil || left != 3 {
		t.Fatalf("%d are left, %v", left, err)
	}
	if left, err := host.Mail().MarkRead(t.Context(), []uint64{4}, true); err != nil || left != 4 {
		t.Fatalf("%d are left, %v", left, err)
	}
	want := map[string][]uint64{"pending": {0}, "done": {1}, "unread": {0, 2, 4, 5}, "all": {0, 1, 2, 3, 4, 5, 6}, "": {0, 2, 3, 4, 5}}
	check := func() {
		t.Helper()
		for name, f := range map[string]view.MessageFilter{"pending": {Pending: true}, "done": {Done: true}, "unread": {Unread: true}, "all": {All: true}, "": {}} {
			if got := numbersIn(t, host, f); !slices.Equal(got, want[name]) {
				t.Errorf("%s: %v, want %v", name, got, want[name])
			}
		}
		if c := countsOf(t, host); c != (view.MessageCounts{Pending: len(want["pending"]), Done: len(want["done"]), Unread: len(want["unread"]), All: 7}) {
			t.Errorf("counts %+v", c)
		}
	}
	check()
	closeNode(t, n)
	n = openWith(t, Options{Folder: folder})
	host = n.Host()
	check()
	if _, err := host.Decline(t.Context(), form, 0, ""); err != nil {
		t.Fatal(err)
	}
	if left, err := host.Mail().MarkRead(t.Context(), nil, false); err != nil || left != 0 {
		t.Fatalf("%d are left, %v", left, err)
	}
	want["pending"], want["done"], want["unread"] = nil, []uint64{0, 1}, nil
	check()
}

// TestLastDraftIsKeptUntilTheFormEnds saves drafts faster than they are written.
func TestLastDraftIsKeptUntilTheFormEnds(t *testing.T) {
	folder := t.TempDir()
	n := openWith(t, Options{Folder: folder})
	host, form, fae := hostWithForm(t, n)
	before, err := host.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	saved := make(chan error, 20)
	for i := range cap(saved) {
		go func() {
			saved <- host.Mail().SaveDraft(t.Context(), form, []events.FieldText{{Name: "name", Text: "Georg"[:1+i%4]}, {Name: "pin", Text: "1234"}})
		}()
	}
	for range cap(saved) {
		if err := <-saved; err != nil {
			t.Fatal(err)
		}
	}
	last := []events.FieldText{{Name: "name", Text: "Georg"}, {Name: "pin", Text: "1234"}}
	if err := host.Mail().SaveDraft(t.Context(), form, last); err != nil {
		t.Fatal(err)
	}
	if after, err := host.Version(t.Context()); err != nil || after > before+8 {
		t.Errorf("21 drafts made %d events, %v", after-before, err)
	}
	if err := fae.Mail().SaveDraft(t.Context(), form, last); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("the asker saves a draft: %v", err)
	}
	if err := host.Mail().SaveDraft(t.Context(), form, []events.FieldText{{Name: "nosuch"}}); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("a draft of another field: %v", err)
	}
	closeNode(t, n)
	n = openWith(t, Options{Folder: folder})
	host = n.Host()
	if d, err := host.Mail().Draft(t.Context(), form); err != nil || !slices.Equal(d.Texts, last) || d.SavedAt == 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	logged, err := host.Log(t.Context(), before, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range logged.Entries {
		if d, ok := e.Payload.(*events.DraftSaved); ok && !d.Values.Has(capabilities.Value.IsSealed) {
			t.Errorf("a secret is not sealed: %s", d.Values.Text())
		}
	}
	if _, err := host.Decline(t.Context(), form, 0, ""); err != nil {
		t.Fatal(err)
	}
	if d, err := host.Mail().Draft(t.Context(), form); err != nil || len(d.Texts) != 0 {
		t.Fatalf("%+v, %v", d, err)
	}
}

// TestWaitingDraftIsNotShown reads the draft of a form while a newer one waits to be written.
func TestWaitingDraftIsNotShown(t *testing.T) {
	n := openNode(t, t.TempDir())
	host, form, _ := hostWithForm(t, n)
	stored := []events.FieldText{{Name: "name", Text: "stored"}}
	if err := host.Mail().SaveDraft(t.Context(), form, stored); err != nil {
		t.Fatal(err)
	}
	shown, err := inspect(t.Context(), host, func(b *mailboxActor) (view.Draft, error) {
		c, err := saveDraft{form, []events.FieldText{{Name: "name", Text: "waiting"}}}.command(b)
		if err != nil {
			return view.Draft{}, err
		}
		b.notes = &notes{drafts: map[draftKey]mailbox.Command{{form: form.ID()}: c}}
		defer func() { b.notes = nil }()
		return queryDraft{form: form}.handle(b)
	})
	if err != nil || !slices.Equal(shown.Texts, stored) {
		t.Errorf("%+v, %v: want what is stored", shown.Texts, err)
	}
}

// TestOpenFormsAndNotesAreListed lists the open forms of an agent that has sent and received some, and what is no form.
func TestOpenFormsAndNotesAreListed(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	ask := func(by *Agent, to string) capabilities.ID {
		asked, err := by.Ask(t.Context(), parley.Form{To: to, Description: "what?", Fields: textField("a")})
		if err != nil {
			t.Fatal(err)
		}
		return asked.Form
	}
	open, received, ended := ask(fae, "HOST"), ask(n.Host(), "fae"), ask(fae, "HOST")
	if _, err := fae.Cancel(t.Context(), capabilities.FormID(ended), ""); err != nil {
		t.Fatal(err)
	}
	note, err := fae.Send(t.Context(), "HOST", "a note")
	if err != nil {
		t.Fatal(err)
	}
	awaitMessage(t, fae, received)
	for _, c := range []struct {
		filter view.MessageFilter
		want   []capabilities.ID
	}{
		{view.MessageFilter{All: true, Open: true}, []capabilities.ID{open, received}},
		{view.MessageFilter{Open: true}, []capabilities.ID{received}},
		{view.MessageFilter{All: true, Notes: true}, []capabilities.ID{note.Message}},
		{view.MessageFilter{Done: true, Open: true}, nil},
	} {
		in, err := fae.Mail().Inbox(t.Context(), c.filter)
		if err != nil {
			t.Fatal(err)
		}
		last, err := fae.Mail().Last(t.Context(), c.filter, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, all := range [][]view.Message{in.Messages, last.Messages} {
			var got []capabilities.ID
			for _, m := range all {
				got = append(got, m.MessageID)
			}
			slices.SortFunc(got, func(a, b capabilities.ID) int { return slices.Index(c.want, a) - slices.Index(c.want, b) })
			if !slices.Equal(got, c.want) {
				t.Errorf("%+v: %v, want %v", c.filter, got, c.want)
			}
		}
	}
}
