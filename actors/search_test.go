package actors

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/internal/eventually"
	"parley/internal/fair"
)

// searchNumbers returns the numbers of the messages that a search finds.
func searchNumbers(t *testing.T, a *Agent, q Search) []uint64 {
	t.Helper()
	found, err := a.Mail().Search(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	numbers := []uint64{}
	for _, m := range found.Messages {
		numbers = append(numbers, m.Number)
	}
	return numbers
}

func words(some string) Search { return Search{Search: view.Search{Text: some}} }

// TestSearchFindsWhatWasJustSent searches right after messages were sent, answered and dismissed, and after a restart with
// the index, without it, and with one that is damaged.
func TestSearchFindsWhatWasJustSent(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openNode(t, folder)
	alice := guest(t, n, "alice")
	send := func(text string) {
		t.Helper()
		if _, err := alice.Send(t.Context(), "HOST", text); err != nil {
			t.Fatal(err)
		}
	}
	want := func(q Search, numbers ...uint64) {
		t.Helper()
		if got := searchNumbers(t, n.Host(), q); !slices.Equal(got, numbers) {
			t.Errorf("%+v: %d, want %d", q, got, numbers)
		}
	}
	send("The Café is closed")
	send("the harbour is open")
	want(words("cafe"), 0)
	want(words("the is"), 1, 0)
	want(Search{From: "alice", Search: view.Search{Text: "open"}}, 1)
	want(Search{From: "HOST"})
	if err := n.Host().Dismiss(t.Context(), capabilities.FormNumber(0)); err != nil {
		t.Fatal(err)
	}
	want(words("the"), 1)
	want(Search{Search: view.Search{Text: "the"}, Filter: view.MessageFilter{All: true}}, 1, 0)
	if _, err := n.Host().Mail().Search(t.Context(), Search{Search: view.Search{Order: "odd"}}); parley.CodeOf(err) != parley.InvalidArgument {
		t.Error(err)
	}
	file := filepath.Join(folder, indexFile)
	for _, damage := range []func() error{
		func() error { return nil },
		func() error { return os.Remove(file) },
		func() error { return os.WriteFile(file, []byte("no index"), 0o600) },
	} {
		closeNode(t, n)
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		n = openNode(t, folder)
		want(words("harbour"), 1)
	}
}

// TestIndexFollowsByItself has the index grow without a search, also for what was logged before it was kept.
func TestIndexFollowsByItself(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openNode(t, folder)
	alice := guest(t, n, "alice")
	for i := range 40 { // each takes a commit, which the index follows with a fortieth of a processor
		if _, err := alice.Send(t.Context(), "HOST", fmt.Sprint("message ", i)); err != nil {
			t.Fatal(err)
		}
	}
	followed := func() bool {
		x, err := n.searches.opened(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for id, m := range n.journal.Mailboxes() {
			at, err := x.At(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if at.Version != m.Version {
				return false
			}
		}
		return true
	}
	eventually.Holds(t, "the index follows", followed)
	closeNode(t, n)
	if err := os.Remove(filepath.Join(folder, indexFile)); err != nil {
		t.Fatal(err)
	}
	n = openNode(t, folder)
	eventually.Holds(t, "the index follows", followed)
}

// addToIndex adds all that is durable to the index: until then, the node works on it.
func addToIndex(t *testing.T, n *Node) {
	t.Helper()
	for id := range n.journal.Mailboxes() {
		for left := uint64(1); left > 0; {
			var err error
			if left, err = n.searches.add(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestSearchGoesOnPageByPage searches with a filter that leaves messages out, and reads each match once.
func TestSearchGoesOnPageByPage(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	alice := guest(t, n, "alice")
	var want []uint64
	for i := range uint64(250) {
		if _, err := alice.Send(t.Context(), "HOST", fmt.Sprint("harbour ", i)); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			want = append(want, i)
		}
	}
	eventually.Holds(t, "all have arrived", func() bool {
		c, err := n.Host().Mail().Counts(t.Context())
		return err == nil && c.All == 250
	})
	for i := range uint64(250) {
		if i%3 != 0 {
			if err := n.Host().Dismiss(t.Context(), capabilities.FormNumber(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	q := words("harbour")
	q.Order, q.Filter, q.Limit = "oldest", view.MessageFilter{Unread: true}, 7
	var got []uint64
	for {
		found, err := n.Host().Mail().Search(t.Context(), q)
		if parley.CodeOf(err) == parley.Timeout { // its disk, or this machine, is busy
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range found.Messages {
			got = append(got, m.Number)
		}
		if q.Skip = found.Next; q.Skip == 0 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}

// TestIndexOfAnotherLogIsNotUsed has the log go back to an earlier copy, and on from there, beside an index that saw more.
func TestIndexOfAnotherLogIsNotUsed(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	n := openNode(t, folder)
	alice := guest(t, n, "alice")
	send := func(a *Agent, text string) {
		t.Helper()
		if _, err := a.Send(t.Context(), "HOST", text); err != nil {
			t.Fatal(err)
		}
	}
	send(alice, "first")
	earlier := copyOfState(t, folder)
	send(alice, "lost in the restore")
	send(alice, "lost too")
	addToIndex(t, n)
	closeNode(t, n)
	index, err := os.ReadFile(filepath.Join(folder, indexFile))
	if err != nil {
		t.Fatal(err)
	}
	for more := range 3 {
		restored := copyOfState(t, earlier)
		if err := os.WriteFile(filepath.Join(restored, indexFile), index, 0o600); err != nil {
			t.Fatal(err)
		}
		n := openNode(t, restored)
		for k := range more {
			send(&Agent{node: n, id: alice.id}, fmt.Sprint("another ", k))
		}
		if got := searchNumbers(t, n.Host(), words("lost")); len(got) > 0 {
			t.Errorf("with %d more messages it finds what the log does not have: %d", more, got)
		}
		if got := searchNumbers(t, n.Host(), words("first")); len(got) != 1 {
			t.Errorf("with %d more messages: %d", more, got)
		}
	}
}

// TestSearchThatIsHurriedShowsWhatIsThere searches right after more messages than the index takes at once, for who has no time to wait for all of
// them: the search finds those that were added, and says how many events are left. Another one, with time, finds all.
func TestSearchThatIsHurriedShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	alice := guest(t, n, "alice")
	const sent = 2*indexAtOnce + 10
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			for range sent / 10 {
				if _, err := alice.Send(t.Context(), "HOST", "hello"); err != nil {
					t.Errorf("sender %d: %v", i, err)
					return
				}
			}
		})
	}
	all.Wait()
	q := words("hello")
	found, err := n.Host().Mail().Search(fair.Until(t.Context(), time.Now()), q)
	if err != nil {
		t.Fatal(err)
	}
	if found.Behind == 0 || len(found.Messages) == 0 {
		t.Errorf("hurried, it finds %d messages and lacks %d events, want some of both", len(found.Messages), found.Behind)
	}
	if _, behind, err := n.Host().Rules().Ruled(fair.Until(t.Context(), time.Now()), []capabilities.ID{n.Host().ID()}, view.RuledQuery{Limit: 10}); err != nil || behind == 0 {
		t.Errorf("hurried, a list of ruled calls lacks %d events, want some: %v", behind, err)
	}
	if found, err = n.Host().Mail().Search(t.Context(), q); err != nil || found.Behind != 0 {
		t.Errorf("with time, it lacks %d events: %v", found.Behind, err)
	}
}

// TestCountOfDecisionsWaitsForNoIndex counts the decisions about calls of an agent with more events than are added for that, and while another
// holds the index. It leaves the agent out, has the index follow at once, and knows the number then.
func TestCountOfDecisionsWaitsForNoIndex(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	alice, bob := guest(t, n, "alice"), guest(t, n, "bob")
	for range decidedLack + 1 {
		if _, err := alice.Send(t.Context(), "HOST", "hello"); err != nil {
			t.Fatal(err)
		}
	}
	both := []capabilities.ID{alice.ID(), bob.ID()}
	count := func() map[capabilities.ID]view.Decided { return n.Host().Rules().CountDecided(t.Context(), 0, both)() }
	if got := count(); len(got) > 1 { // of bob there is little to read
		t.Errorf("it knows %v", got)
	}
	if n.searches.share() != wantedShare {
		t.Error("the index does not follow sooner")
	}
	eventually.Holds(t, "both are known", func() bool { return len(count()) == 2 })
	if _, err := alice.Send(t.Context(), "HOST", "again"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "so is what came since", func() bool { return len(count()) == 2 })
	x, err := n.searches.opened(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n.searches.opening.Lock() // as a disk that hangs would
	got := count()
	n.searches.opening.Unlock()
	if len(got) != 0 {
		t.Errorf("without an index it knows %v", got)
	}
	if d, err := x.Decided(t.Context(), 0, both); err != nil || len(d) != 2 {
		t.Errorf("%v %v", err, d)
	}
}
