package actors

import (
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
	"parley/persistence"
)

// makeShowpieces makes agents with much to show: titles, labels, errors, policies, programs, queued messages, open approvals
// and forms.
func makeShowpieces(t *testing.T, n *Node) {
	t.Helper()
	for i, name := range []string{"plain", "titled", "failed", "asking", "closed", "waiting"} {
		a := guest(t, n, name)
		title := "the title of " + name
		var err error
		switch i {
		case 1:
			err = a.Describe(t.Context(), &title, map[string]string{"team": "a", "": "empty"})
		case 2:
			err = a.Report(t.Context(), mailbox.Failed, "it broke")
		case 3:
			ask(t, a, parley.Form{})
			ask(t, a, parley.Form{})
			_, err = a.Approve(t.Context(), mailbox.RequestApproval{Permission: parley.Permission{Tool: "Bash", Input: `{"command":"ls"}`}})
		case 4:
			err = n.Host().Agents().Archive(t.Context(), a)
		case 5:
			ask(t, n.Host(), parley.Form{To: name})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	one := newProgramAgent(t, n, NewAgent{Name: "program", Policy: mailbox.DenyAll, Wait: true, Program: &events.ProgramSet{Command: []string{"sh", "-c", "exit 3"}, Wrap: []string{"env"}}})
	prompt(t, one, "hello")
	waitForFinish(t, one, view.FinishError)
}

// folded returns the statuses of all agents as their logs have them.
func folded(t *testing.T, n *Node) map[string]view.AgentStatus {
	t.Helper()
	all := map[string]view.AgentStatus{}
	for id := range n.journal.Mailboxes() {
		s, _, err := n.replay(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		status := statusOf(s)
		status.Version = 0
		status.Settle()
		all[id.String()] = status
	}
	return all
}

// listed returns the statuses in the host's list.
func listed(t *testing.T, n *Node) map[string]view.AgentStatus {
	t.Helper()
	list, err := n.Host().Agents().List(t.Context(), view.AgentFilter{Statuses: append([]string{mailbox.Closed}, noteStatuses...)})
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]view.AgentStatus{}
	for _, s := range list {
		if s.Name == "" {
			t.Errorf("%s has no name", s.ID)
		}
		s.Name, s.Version = "", 0
		all[s.ID.String()] = s
	}
	return all
}

// copyOfState returns a copy of a state folder.
func copyOfState(t *testing.T, folder string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{to: 0o700, to + "/node.key": 0o600} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// TestListReadsNoMailboxes lists agents after a regular stop, after a kill and without an index. The list is what the
// logs say. No mailbox is read for it. After a regular stop none is read but the host's, and those with work.
func TestListReadsNoMailboxes(t *testing.T) {
	folder := t.TempDir()
	n := openNode(t, folder)
	makeShowpieces(t, n)
	want := folded(t, n)
	if got := listed(t, n); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	killed := copyOfState(t, folder)
	closeNode(t, n)
	unindexed := copyOfState(t, folder)
	if err := os.Remove(unindexed + "/index"); err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"stopped": folder, "killed": killed, "unindexed": unindexed} {
		t.Run(name, func(t *testing.T) {
			var loads atomic.Int64
			n := openWith(t, Options{Folder: folder, Failpoint: func(step string) error {
				if strings.HasPrefix(step, "before "+persistence.StepLoad) {
					loads.Add(1)
				}
				return nil
			}})
			resumed := int64(1) // the host
			for id, m := range n.journal.Mailboxes() {
				if m.Summary.Outbox > 0 && id != n.host {
					resumed++
				}
			}
			eventually.Holds(t, "the mailboxes with work are read", func() bool { return n.registry.queued.Load() == 0 })
			before := loads.Load()
			if name == "stopped" && before > resumed {
				t.Errorf("%d mailboxes were read, want %d", before, resumed)
			}
			if got := listed(t, n); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v\nwant %+v", got, want)
			}
			waiting := 0
			for id := range n.journal.Mailboxes() {
				a := &Agent{node: n, id: id}
				if _, err := a.Version(t.Context()); err != nil {
					t.Error(err)
				}
				for _, err := range a.Mail().All(t.Context(), view.MessageFilter{Pending: true}) {
					if waiting++; err != nil {
						t.Error(err)
					}
				}
			}
			if now := loads.Load(); waiting != 4 || now > before+1 { // of the host, and one agent
				t.Errorf("%d forms wait; the list read %d mailboxes", waiting, now-before)
			}
		})
	}
}

// TestPagesCoverTheAgents reads the list page by page, as the host and as a guest that sees some.
func TestPagesCoverTheAgents(t *testing.T) {
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		a := guest(t, n, name)
		if name == "c" {
			if err := n.Host().Agents().Archive(t.Context(), a); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := fae.Make(t.Context(), NewAgent{Kind: events.Guest, Name: "own"}); err != nil {
		t.Fatal(err)
	}
	for _, a := range []*Agent{n.Host(), fae} {
		want, err := a.Agents().List(t.Context(), view.AgentFilter{})
		if err != nil {
			t.Fatal(err)
		}
		var got []view.AgentStatus
		for after := ""; ; after = got[len(got)-1].ID.String() {
			page, err := a.Agents().Page(t.Context(), view.AgentFilter{}, after, 2)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
		}
		if !reflect.DeepEqual(got, want) || len(got) < 3 {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		for _, beyond := range []string{"zzz", "ZZZZZZZZZZZZZZZZZZZZZZZZZZ"} {
			if page, err := a.Agents().Page(t.Context(), view.AgentFilter{}, beyond, 2); err != nil || len(page) > 0 {
				t.Errorf("%d behind %s, %v", len(page), beyond, err)
			}
		}
		for i := 1; i <= 26; i++ {
			whole := want[len(want)-1].ID
			found, err := a.Agents().Find(t.Context(), whole.ULID.String()[:i])
			if err == nil && found.id != whole || err != nil && i == 26 {
				t.Errorf("%d letters: %v, %v", i, found, err)
			}
		}
	}
}

// TestStatusOfKnownAgentIsNotShown forwards a form to an agent that does not hold whom it was put to.
func TestStatusOfKnownAgentIsNotShown(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	made := map[string]*Agent{}
	for _, name := range []string{"fae", "bob", "eve"} {
		a, err := n.Host().Make(t.Context(), NewAgent{Kind: events.Guest, Name: name})
		if err != nil {
			t.Fatal(err)
		}
		made[name] = a
	}
	for to, text := range map[string]string{"eve": "see @fae", "fae": "see @bob"} {
		if _, err := n.Host().Send(t.Context(), to, text); err != nil {
			t.Fatal(err)
		}
	}
	asked, err := made["eve"].Ask(t.Context(), parley.Form{To: "@mail/0/fae", Description: "d", Fields: []events.Field{{Name: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := made["fae"].Forward(t.Context(), capabilities.FormID(asked.Form), "@mail/0/bob"); err != nil {
		t.Fatal(err)
	}
	bob := made["bob"]
	eventually.Holds(t, "the form is forwarded", func() bool {
		_, err := bob.Message(t.Context(), capabilities.FormID(asked.Form))
		return err == nil
	})
	if _, err := bob.Agents().Find(t.Context(), "@mail/0/@to"); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("whom it was put to: %v", err)
	}
	if got, err := bob.Agents().Find(t.Context(), "@mail/0/@from"); err != nil || got.ID() != made["eve"].ID() {
		t.Errorf("who asks: %v", err)
	}
	if got, err := made["eve"].Agents().Find(t.Context(), "@mail/1/@to"); err != nil || got.ID() != made["fae"].ID() {
		t.Errorf("whom it has asked: %v", err)
	}
}
