package actors

import (
	"os"
	"path/filepath"
	"testing"

	"parley"
	"parley/actors/keys"
	"parley/capabilities"
	"parley/internal/eventually"
	"parley/mailbox"
)

// TestStartDeliversBeforeItDenies opens what a crash leaves between the commit of a form and that of the recipient's copy.
// Until the copy has been delivered again, the recipient is not told that there is no such form.
func TestStartDeliversBeforeItDenies(t *testing.T) {
	t.Parallel()
	folder, left := filepath.Join(t.TempDir(), "node"), filepath.Join(t.TempDir(), "left")
	fae, asked := crashBeforeCopy(t, folder, left)
	form, held := capabilities.FormID(asked), make(chan struct{})
	n := openWith(t, Options{Folder: left, Failpoint: func(step string) error {
		if step == "before load "+fae.ULID.String() {
			<-held
		}
		return nil
	}})
	_, err := n.Host().Message(t.Context(), form)
	close(held)
	if parley.CodeOf(err) != parley.ReadOnly {
		t.Errorf("before its copy is delivered: %v", err)
	}
	eventually.Holds(t, "the copy is delivered", func() bool {
		_, err := n.Host().Message(t.Context(), form)
		if err != nil && parley.CodeOf(err) != parley.ReadOnly {
			t.Error(err)
		}
		return err == nil
	})
	_, err = n.Host().Message(t.Context(), capabilities.FormID(n.host))
	if parley.CodeOf(err) != parley.NoSuchMessage {
		t.Errorf("of an unknown form, after the start: %v", err)
	}
}

// crashBeforeCopy asks the host of a node for a form while its mailbox is busy, and copies the folder once that is
// acknowledged. It returns the asker and the form.
func crashBeforeCopy(t *testing.T, folder, left string) (asker, form capabilities.ID) {
	t.Helper()
	n := openWith(t, Options{Folder: folder})
	fae := guest(t, n, "fae")
	busy, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := query(t.Context(), n.Host(), func(*mailbox.State, capabilities.Time) (none, error) {
			close(busy)
			<-release
			return none{}, nil
		})
		done <- err
	}()
	<-busy
	form = ask(t, fae, parley.Form{}).Form
	err := os.CopyFS(left, os.DirFS(folder))
	close(release)
	for _, err := range []error{err, <-done, os.Chmod(left, 0o700), os.Chmod(filepath.Join(left, keys.FileName), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	closeNode(t, n)
	return fae.id, form
}
