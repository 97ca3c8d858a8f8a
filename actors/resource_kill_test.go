package actors

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// usingNodeEnv is the environment variable with the state folder of a node whose guest uses a folder until it is killed.
const usingNodeEnv = "PARLEY_TEST_USING_NODE"

// givenUses is how many uses the guest was given, over all lives of the node.
const givenUses = 400

// writtenFolder is the folder that the guest writes to.
func writtenFolder(state string) string { return filepath.Join(filepath.Dir(state), "written") }

// runUsingNode runs a node whose guest writes files of names of its own, several at once. It prints each that was done, a line each.
// It never returns.
func runUsingNode(folder string) {
	ctx := context.Background()
	n, err := Open(ctx, Options{Folder: folder, Name: "using"})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	fae, err := n.ActAs(ctx, "fae")
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	say := func(words ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(words...)
	}
	for range 4 {
		go func() {
			for {
				name := fmt.Sprintf("f%d", rand.Uint64())
				u, err := ResourcesOf(fae).Use(ctx, Used{
					Name: "@mail/0/notes", Verb: "write", Wait: time.Minute, Key: name,
					Input: map[string]capabilities.Value{"path": capabilities.String(name), "content": capabilities.String("x")},
				})
				switch {
				case parley.CodeOf(err) == parley.NotPermitted:
					say("spent", name)
					select {}
				case err != nil || u.State != view.UseDone:
					say("failed", err, u.State)
					os.Exit(1)
				}
				say("done", name)
			}
		}()
	}
	select {}
}

// giveFolder makes a folder, and gives it to an agent in a message.
func giveFolder(tb testing.TB, n *Node, to, path string, f capabilities.Facet) {
	tb.Helper()
	host := n.Host()
	if _, err := ResourcesOf(host).Make(tb.Context(), NewResource{Name: "all", Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: path}}, false); err != nil {
		tb.Fatal(err)
	}
	if err := host.Names().Copy(tb.Context(), "all", "notes", f); err != nil {
		tb.Fatal(err)
	}
	send(tb, host, to, "here is @notes")
}

// TestNoMoreUsesThanGivenOverKills kills a node again and again while its guest uses what it was given.
func TestNoMoreUsesThanGivenOverKills(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	written := writtenFolder(state)
	if err := os.MkdirAll(written, 0o755); err != nil {
		t.Fatal(err)
	}
	n := openNode(t, state)
	guest(t, n, "fae")
	giveFolder(t, n, "fae", written, capabilities.Facet{Uses: givenUses})
	if err := n.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	done, spent, lives := map[string]bool{}, false, 0
	for lives = 0; lives < 30 && !spent; lives++ {
		spent = runAndKillUsingNode(t, state, done)
	}
	if !spent || lives < 3 {
		t.Fatalf("after %d lives, spent is %t, with %d uses done", lives, spent, len(done))
	}
	n = openNode(t, state)
	uses, err := query(t.Context(), &Agent{node: n, id: resourceNamed(t, n, "all")}, func(s *mailbox.State, _ capabilities.Time) (all []mailbox.ResourceUse, _ error) {
		if used := s.Resource.Used(capabilities.ID{}); used != givenUses {
			return nil, fmt.Errorf("%d uses are charged, and %d were given", used, givenUses)
		}
		return s.Resource.Uses(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ended := map[events.UseEnd]int{}
	unknown := map[string]bool{}
	for _, u := range uses {
		if u.Ended == nil {
			t.Fatalf("the use %+v has not ended", u.Begun)
		}
		ended[u.Ended.How]++
		if u.Ended.How == events.UseUnknown {
			unknown[u.Begun.Key] = true
		}
	}
	files, err := os.ReadDir(written)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string]bool{}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), ".") { // a part that was not renamed
			whole[f.Name()] = true
		}
	}
	if len(whole) > givenUses || len(whole) < ended[events.UseDone] {
		t.Errorf("%d files were written by %d uses, of which %v", len(whole), givenUses, ended)
	}
	for name := range done {
		if !whole[name] {
			t.Errorf("%s was acknowledged, and is not there", name)
		}
	}
	for name := range whole {
		if !done[name] && !unknown[name] && ended[events.UseDone] < len(done) {
			t.Errorf("%s was written by a use that is neither acknowledged nor unknown", name)
		}
	}
	t.Logf("%d lives: %v, %d acknowledged, %d files", lives, ended, len(done), len(whole))
}

// resourceNamed returns the resource that the host has made under a name.
func resourceNamed(tb testing.TB, n *Node, name string) capabilities.ID {
	tb.Helper()
	ref, err := ResourcesOf(n.Host()).held(tb.Context(), name)
	if err != nil {
		tb.Fatal(err)
	}
	return ref.Target
}

// runAndKillUsingNode runs a node until it has done some uses, and kills it. It reports whether the uses were spent.
func runAndKillUsingNode(t *testing.T, folder string, done map[string]bool) (spent bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), usingNodeEnv+"="+folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed, few := false, 20+rand.IntN(60)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		what, name, _ := strings.Cut(lines.Text(), " ")
		switch what {
		case "done":
			done[name] = true
			few--
		case "spent":
			spent = true
		default:
			t.Fatalf("the node says %q", lines.Text())
		}
		if !killed && (spent || few == 0) {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	return spent
}

// TestNoUseAfterARevokeIsAcknowledged has many use a folder at once while it is revoked: what the host gave, and with it what the guest gave
// on.
func TestNoUseAfterARevokeIsAcknowledged(t *testing.T) {
	n := openNode(t, t.TempDir())
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	for round := range 20 {
		name := fmt.Sprint("r", round)
		if _, err := ResourcesOf(n.Host()).Make(t.Context(), NewResource{Name: name, Made: events.ResourceMade{Kind: capabilities.KindFolder, Folder: dir}}, false); err != nil {
			t.Fatal(err)
		}
		awaitMessage(t, fae, send(t, n.Host(), "fae", "@"+name+" and @bob").Message)
		awaitMessage(t, bob, send(t, fae, fmt.Sprintf("@mail/%d/bob", 2*round), fmt.Sprintf("@x:@mail/%d/%s", 2*round, name)).Message)
		grant := capabilities.ID{}
		grants, err := n.Host().Names().Grants(t.Context(), view.GrantFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range grants {
			if g.Target == resourceNamed(t, n, name) {
				grant = g.ID
			}
		}
		var revoked sync.RWMutex
		over, used := false, 0
		var users sync.WaitGroup
		start := make(chan struct{})
		for _, u := range []struct {
			who  *Agent
			path string
		}{{fae, fmt.Sprintf("@mail/%d/%s", 2*round, name)}, {bob, fmt.Sprintf("@mail/%d/x", round)}} {
			for range 2 {
				users.Go(func() {
					<-start
					for {
						revoked.RLock()
						after := over
						revoked.RUnlock()
						got, err := ResourcesOf(u.who).Use(t.Context(), Used{Name: u.path, Verb: "read", Input: map[string]capabilities.Value{"path": capabilities.String("a")}, Wait: time.Minute})
						if err == nil && got.State != view.UseDone {
							t.Errorf("the use is %s: %v", got.State, got.Error)
						}
						if err == nil && after {
							t.Errorf("round %d: a use by %s after the revocation", round, u.path)
							return
						}
						if parley.CodeOf(err) == parley.NotPermitted {
							return
						}
						if err != nil {
							t.Error(err)
							return
						}
						revoked.Lock()
						used++
						revoked.Unlock()
					}
				})
			}
		}
		close(start)
		for enough := false; !enough; {
			revoked.RLock()
			enough = used > 8 || t.Failed()
			revoked.RUnlock()
		}
		if err := n.Host().Names().Revoke(t.Context(), grant); err != nil {
			t.Fatal(err)
		}
		revoked.Lock()
		over = true
		revoked.Unlock()
		users.Wait()
	}
}

// TestAnAskedUseOutlivesItsNode closes the node while a use waits for a decision. The use goes out when its caller comes again, once.
func TestAnAskedUseOutlivesItsNode(t *testing.T) {
	t.Parallel()
	state, dir := t.TempDir(), t.TempDir()
	n, err := Open(context.Background(), Options{Folder: state, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	guest(t, n, "fae")
	giveFolder(t, n, "fae", dir, capabilities.Facet{Ask: true})
	write := func(n *Node, wait time.Duration) (view.Use, error) {
		fae, err := n.ActAs(t.Context(), "fae")
		if err != nil {
			t.Fatal(err)
		}
		return ResourcesOf(fae).Use(t.Context(), Used{
			Name: "@mail/0/notes", Verb: "write", Key: "k", Wait: wait,
			Input: map[string]capabilities.Value{"path": capabilities.String("a"), "content": capabilities.String("x")},
		})
	}
	first, err := write(n, 0)
	if err != nil || first.State != view.UseAsked {
		t.Fatalf("the use is %s: %v", first.State, err)
	}
	asked := capabilities.FormRef{}
	eventually.Holds(t, "the host is asked", func() bool {
		in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{Pending: true})
		if err != nil || len(in.Messages) == 0 {
			return false
		}
		asked = capabilities.FormNumber(in.Messages[0].Number)
		return true
	})
	closeNode(t, n)
	n = openNode(t, state)
	if _, err := n.Host().Answer(t.Context(), asked, parley.Answer{Values: map[string]capabilities.Value{"decision": capabilities.String("once")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("the use went out, and nobody was there to have its result")
	}
	for range 2 {
		u, err := write(n, eventually.Patience)
		if err != nil || u.State != view.UseDone || u.Use != first.Use {
			t.Fatalf("the use %s is %s: %v, %v", u.Use, u.State, u.Error, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "x" {
		t.Errorf("it wrote %q (%v)", b, err)
	}
}

// TestAUseThatIsRevokedWhileItIsAskedForGoesNowhere revokes a reference whose use waits for a decision, which then allows it.
func TestAUseThatIsRevokedWhileItIsAskedForGoesNowhere(t *testing.T) {
	t.Parallel()
	n, dir := openNode(t, t.TempDir()), t.TempDir()
	fae := guest(t, n, "fae")
	giveFolder(t, n, "fae", dir, capabilities.Facet{Ask: true})
	done := make(chan error, 1)
	go func() {
		u, err := ResourcesOf(fae).Use(t.Context(), Used{
			Name: "@mail/0/notes", Verb: "write", Wait: eventually.Patience,
			Input: map[string]capabilities.Value{"path": capabilities.String("a"), "content": capabilities.String("x")},
		})
		if err == nil && u.Error != nil {
			err = u.Error
		}
		done <- err
	}()
	asked := capabilities.FormRef{}
	eventually.Holds(t, "the host is asked", func() bool {
		in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{Pending: true})
		if err != nil || len(in.Messages) == 0 {
			return false
		}
		asked = capabilities.FormNumber(in.Messages[0].Number)
		return true
	})
	grants, err := n.Host().Names().Grants(t.Context(), view.GrantFilter{})
	if err != nil || len(grants) != 1 {
		t.Fatal(grants, err)
	}
	if err := n.Host().Names().Revoke(t.Context(), grants[0].ID); err != nil {
		t.Fatal(err)
	}
	_, err = n.Host().Answer(t.Context(), asked, parley.Answer{Values: map[string]capabilities.Value{"decision": capabilities.String("once")}})
	if parley.CodeOf(err) != parley.AlreadyCancelled {
		t.Errorf("the use can still be decided on: %v", err)
	}
	if m, err := n.Host().Message(t.Context(), asked); err != nil || m.Outcome == nil || !strings.Contains(m.Outcome.Note, "revoked") {
		t.Errorf("the approval has ended as %+v (%v)", m.Outcome, err)
	}
	if err := <-done; parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("the use ends with %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("it went out")
	}
}
