package actors

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
)

// writeA is a use that writes the file a.
func writeA(name, key string) Used {
	return Used{Name: name, Verb: "write", Key: key, Wait: eventually.Patience, Input: map[string]capabilities.Value{"path": capabilities.String("a"), "content": capabilities.String("x")}}
}

// openApproval returns the only approval that waits for an agent, when there is one.
func openApproval(t *testing.T, a *Agent) (asked view.Message) {
	t.Helper()
	eventually.Holds(t, "the giver is asked", func() bool {
		in, err := a.Mail().Inbox(t.Context(), view.MessageFilter{Pending: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range in.Messages {
			if m.Type == string(events.Approval) {
				asked = m
				return true
			}
		}
		return false
	})
	return asked
}

func decideOn(t *testing.T, a *Agent, m view.Message, decision string) error {
	t.Helper()
	_, err := a.Answer(t.Context(), capabilities.FormNumber(m.Number), parley.Answer{Values: map[string]capabilities.Value{"decision": capabilities.String(decision)}})
	return err
}

// leaveUse begins a use that is asked for, and returns it when its caller has gone.
func leaveUse(t *testing.T, a *Agent, u Used) view.Use {
	t.Helper()
	u.Wait = 0
	got, err := ResourcesOf(a).Use(t.Context(), u)
	if err != nil || got.State != view.UseAsked {
		t.Fatalf("the use is %s: %v", got.State, err)
	}
	return got
}

func usesOf(t *testing.T, a *Agent, name string) *view.Holding {
	t.Helper()
	u, err := ResourcesOf(a).Use(t.Context(), Used{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return u.Holds
}

// TestAUseWithoutCallerHasNoEffect has callers leave a use that is asked for. One without a key ends unused and uncharged, with the approval; one
// with a key goes out when it is allowed.
func TestAUseWithoutCallerHasNoEffect(t *testing.T) {
	t.Parallel()
	n, dir := openNode(t, t.TempDir()), t.TempDir()
	n.resources.absence = 0
	fae := guest(t, n, "fae")
	giveFolder(t, n, "fae", dir, capabilities.Facet{Ask: true})
	leaveUse(t, fae, writeA("@mail/0/notes", ""))
	var last view.UseBy
	eventually.Holds(t, "the use ends", func() bool { last = usesOf(t, n.Host(), "all").Uses[0]; return last.Error != nil })
	if last.State != view.UseDenied || last.Error.Code != parley.Cancelled || usesOf(t, n.Host(), "all").Used != 0 {
		t.Errorf("the use is %s, with %v, and %d are charged", last.State, last.Error, usesOf(t, n.Host(), "all").Used)
	}
	in, err := n.Host().Mail().Inbox(t.Context(), view.MessageFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range in.Messages {
		if m.AnswerNeeded {
			t.Errorf("the host is still asked: %+v", m)
		}
	}
	leaveUse(t, fae, writeA("@mail/0/notes", "k"))
	if err := decideOn(t, n.Host(), openApproval(t, n.Host()), "once"); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the use with a key goes out", func() bool { return usesOf(t, n.Host(), "all").Uses[0].State == view.UseDone })
	if _, err := os.Stat(filepath.Join(dir, "a")); err != nil {
		t.Error(err)
	}
}

// TestAnAllowedUseWaitsForItsCaller allows a use while its caller is away. It goes out when that comes again, and not before.
func TestAnAllowedUseWaitsForItsCaller(t *testing.T) {
	t.Parallel()
	n, dir := openNode(t, t.TempDir()), t.TempDir()
	n.resources.absence = time.Hour
	fae := guest(t, n, "fae")
	giveFolder(t, n, "fae", dir, capabilities.Facet{Ask: true})
	u := writeA("@mail/0/notes", "")
	first := leaveUse(t, fae, u)
	if err := decideOn(t, n.Host(), openApproval(t, n.Host()), "once"); err != nil {
		t.Fatal(err)
	}
	if last := usesOf(t, n.Host(), "all").Uses[0]; last.State != view.UseAsked {
		t.Errorf("without its caller, the use is %s", last.State)
	}
	u.Use = first.Use
	if got, err := ResourcesOf(fae).Use(t.Context(), u); err != nil || got.State != view.UseDone || got.Use != first.Use {
		t.Errorf("the use %s is %s: %v, %v", got.Use, got.State, got.Error, err)
	}
}

// TestAnAskOfAnEarlierLifeEnds closes the node while a use without a key waits. Its caller does not come again, so nobody is asked for long.
func TestAnAskOfAnEarlierLifeEnds(t *testing.T) {
	t.Parallel()
	state, dir := t.TempDir(), t.TempDir()
	n, err := Open(context.Background(), Options{Folder: state, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	fae := guest(t, n, "fae")
	giveFolder(t, n, "fae", dir, capabilities.Facet{Ask: true})
	leaveUse(t, fae, writeA("@mail/0/notes", ""))
	asked := openApproval(t, n.Host())
	closeNode(t, n)
	n = openNode(t, state)
	n.resources.absence = 0
	if err := decideOn(t, n.Host(), asked, "once"); parley.CodeOf(err) != parley.AlreadyCancelled {
		t.Errorf("the host decides: %v", err)
	}
	if last := usesOf(t, n.Host(), "all").Uses[0]; last.State != view.UseDenied {
		t.Errorf("the use is %s", last.State)
	}
}

// TestAnAskIsOfItsHolder asks about a use by the agent that was given a reference. What is said is what the
// node knows: by the name that was given, whatever others there are.
func TestAnAskIsOfItsHolder(t *testing.T) {
	t.Parallel()
	n, dir := openNode(t, t.TempDir()), t.TempDir()
	fae := guest(t, n, "fae")
	giveFolder(t, n, "fae", dir, capabilities.Facet{Ask: true})
	if err := n.Host().Names().Copy(t.Context(), "all", "aaa", capabilities.Facet{Uses: 7}); err != nil {
		t.Fatal(err)
	}
	adoptReference(t, fae, send(t, n.Host(), "fae", "@notes").Message, "notes", "plans")
	leaveUse(t, fae, writeA("plans", ""))
	asked := openApproval(t, n.Host())
	want := parley.AskedUse{By: fae.ID(), Holder: "fae", Kind: capabilities.KindFolder, Name: "notes", Called: "plans"}
	p := asked.Permission
	if p.Use == nil || *p.Use != want || p.Tool != "use notes" || p.Part != "" || p.Reason != "" || asked.FromName != "notes" {
		t.Errorf("%s asks %+v, %+v", asked.FromName, p, p.Use)
	}
	if _, err := n.Host().Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "use notes", Input: "{}", Use: &want}}); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("an agent asks as a resource: %v", err)
	}
}

// TestUnmakeEndsWhatItNames ends a name for less of a resource. Only what was given by that name ends.
func TestUnmakeEndsWhatItNames(t *testing.T) {
	t.Parallel()
	n, dir := openNode(t, t.TempDir()), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	giveFolder(t, n, "fae", dir, capabilities.Facet{Uses: 9})
	send(t, n.Host(), "bob", "@all")
	if _, err := readNotes(t, fae, "@mail/0/notes", "a", ""); err != nil {
		t.Fatal(err)
	}
	if err := ResourcesOf(n.Host()).End(t.Context(), "notes"); err != nil {
		t.Fatal(err)
	}
	if _, err := readNotes(t, fae, "@mail/0/notes", "a", ""); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("fae, by what has ended: %v", err)
	}
	if _, err := readNotes(t, bob, "@mail/0/all", "a", ""); err != nil {
		t.Errorf("bob, by what has not: %v", err)
	}
	uses := usesOf(t, n.Host(), "all").Uses
	if len(uses) != 2 || uses[0].ByName != "bob" || uses[1].ByName != "fae" || uses[0].State != view.UseDone || !strings.Contains(uses[1].Words, "read a") || uses[1].Begun == 0 {
		t.Errorf("the host sees %+v", uses)
	}
	if uses := usesOf(t, bob, "@mail/0/all").Uses; len(uses) != 1 || uses[0].By != bob.ID() {
		t.Errorf("bob sees %+v", uses)
	}
	if err := ResourcesOf(n.Host()).End(t.Context(), "all"); err != nil {
		t.Fatal(err)
	}
	if _, err := readNotes(t, bob, "@mail/0/all", "a", ""); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("bob, by the resource that has ended: %v", err)
	}
}

// TestTheNodesOwnFilesAreNotGiven makes files of the content of the node's key and of a secret, as whoever has it can from anywhere.
func TestTheNodesOwnFilesAreNotGiven(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	n := openNode(t, state)
	made := events.ResourceMade{Kind: capabilities.KindSecret, Header: "X: {}", Facet: capabilities.Facet{Only: "api.example", Methods: "GET"}}
	secret, err := ResourcesOf(n.Host()).Make(t.Context(), NewResource{Name: "key", Made: made, Secret: "correct-horse"}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node.key", filepath.Join(secretsFolder, secret.Resource.ULID.String())} {
		b, err := os.ReadFile(filepath.Join(state, name))
		if err != nil {
			t.Fatal(err)
		}
		f := storeText(t, n.Host(), "f", b, 1<<20)
		if _, err := ResourcesOf(n.Host()).Make(t.Context(), NewResource{Name: "mine", Made: events.ResourceMade{Kind: capabilities.KindFile, File: &f}}, false); parley.CodeOf(err) != parley.NotPermitted {
			t.Errorf("%s is given: %v", name, err)
		}
	}
}
