package persistence

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"parley"
	"parley/internal/eventually"
)

// TestExternalJournalArchives archives a journal on a NATS server, and on three servers of a cluster. Another process, in a
// folder of its own, takes over: it has all that left the stream but the segments, which are where they were made.
func TestExternalJournalArchives(t *testing.T) {
	for name, options := range map[string]func(o *Options){
		"a server":  func(o *Options) { o.URL = startExternal(t).options(t).URL },
		"a cluster": func(o *Options) { o.URL, o.Replicas = startServers(t), 3 },
	} {
		t.Run(name, func(t *testing.T) {
			o := testOptions(t)
			o.archiveLeast = smallArchive
			options(&o)
			j, w := openEventually(t, o), make(writer)
			w.fillBlock(t, j)
			w.padded(t, j, 1)
			before := j.Stats()
			a := w.archive(t, j)
			eventually.Holds(t, "the stream is smaller", func() bool { return j.Stats().Bytes < before.Bytes/4*3 })
			w.checkArchived(t, j)
			w.fillBlock(t, j)
			if a = w.archive(t, j); a.After.Number == 0 || j.connection().stored.Load() != a.End.Number+1 {
				t.Errorf("the stream begins with commit %d, the archive ends with %d", j.connection().stored.Load(), a.End.Number)
			}
			w.checkArchived(t, j)
			closeJournal(t, j)
			j = openEventually(t, o) // with its own files
			w.checkArchived(t, j)
			closeJournal(t, j)

			segments := filepath.Join(o.Folder, archiveFolder)
			o.Folder = t.TempDir()
			j = openEventually(t, o)
			w.write(t, j, 4, 1)
			if got := j.Archive(); got.End != a.End || len(got.Segments) != len(a.Segments) {
				t.Errorf("the archive is %+v", got)
			}
			l, err := j.Load(t.Context(), mailboxID(1))
			if err != nil || l.SnapshotVersion+uint64(len(l.Events)) != w[1] {
				t.Errorf("%d events behind version %d, %v", len(l.Events), l.SnapshotVersion, err)
			}
			_, err = j.Events(t.Context(), mailboxID(1), 0, 1)
			wantCode(t, err, parley.Archived)
			for _, s := range a.Segments {
				b, err := os.ReadFile(filepath.Join(segments, s.Name()))
				if err == nil {
					err = j.Attach(t.Context(), s, bytes.NewReader(b))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			w.checkArchived(t, j)
			var backup bytes.Buffer
			if err := j.Backup(t.Context(), &backup); err != nil {
				t.Fatal(err)
			}
			closeJournal(t, j)

			restored := o
			restored.Folder, restored.URL, restored.Replicas = t.TempDir(), "", 0
			if err := Restore(t.Context(), restored, bytes.NewReader(backup.Bytes())); err != nil {
				t.Fatal(err)
			}
			w.checkArchived(t, open(t, restored))
		})
	}
}

// TestArchivedBackupIsRestoredToAServer restores the backup of an archived journal to a NATS server.
func TestArchivedBackupIsRestoredToAServer(t *testing.T) {
	_, j, w, a := archivedJournal(t)
	var backup bytes.Buffer
	if err := j.Backup(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	o := startExternal(t).options(t)
	eventually.Holds(t, "it is restored", func() bool {
		err := Restore(t.Context(), o, bytes.NewReader(backup.Bytes()))
		return err == nil
	})
	for range 2 {
		j := openEventually(t, o)
		w.checkArchived(t, j)
		if j.Archive().End != a.End {
			t.Errorf("the archive is %+v", j.Archive())
		}
		closeJournal(t, j)
	}
}
