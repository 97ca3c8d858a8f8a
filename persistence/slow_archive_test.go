package persistence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/internal/eventually"
	"parley/persistence/archive"
	"parley/persistence/disktest"
)

// TestWhatWritesBesideCommitsNamesADiskThatHangs blocks the first flush of each task that writes beside the commits. Whoever waits
// can see that it is the disk while no commit waits for it too, and an error that comes of it names the disk in place of what a step
// made of it. Nothing is lost: the task goes on with the disk, or is done again.
func TestWhatWritesBesideCommitsNamesADiskThatHangs(t *testing.T) {
	content := bytes.Repeat([]byte("a file "), 1000)
	archiving := func(t *testing.T, j *Journal, w writer) error {
		a, err := j.PrepareArchive(t.Context(), later, foldState)
		if err != nil {
			return err
		}
		w.record(t, j, a)
		return j.FinishArchive(t.Context(), a)
	}
	for name, c := range map[string]struct {
		hangs func(o *Options, name string) bool
		do    func(t *testing.T, j *Journal, w writer) error
	}{
		"a segment":    {func(_ *Options, name string) bool { return strings.Contains(name, unnamed) }, archiving},
		"a checkpoint": {func(_ *Options, name string) bool { return archive.IsCheckpoint(strings.TrimSuffix(name, ".tmp")) }, archiving},
		"a file that a message carries": {func(o *Options, name string) bool { return strings.Contains(name, o.filesName()) }, func(t *testing.T, j *Journal, _ writer) error {
			return j.StoreFile(t.Context(), sha256.Sum256(content), int64(len(content)), bytes.NewReader(content))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := disktest.Mount(t)
			o := smallFiles(t)
			o.Folder = filepath.Join(d.Path(), "state")
			if err := MakeFolder(o.Folder); err != nil {
				t.Fatal(err)
			}
			j, w := open(t, o), make(writer)
			w.fillBlock(t, j)
			w.padded(t, j, 1)
			release, held := make(chan struct{}), make(chan struct{})
			goOn := sync.OnceFunc(func() { close(release) })
			t.Cleanup(goOn) // before the journal is closed
			var once sync.Once
			d.OnFlush(func(name string) error {
				if c.hangs(&j.o, name) {
					once.Do(func() { close(held) })
					<-release
				}
				return nil
			})
			done := make(chan error, 1)
			go func() { done <- c.do(t, j, w) }()
			select {
			case <-held:
			case err := <-done:
				t.Fatalf("it did not wait: %v", err)
			}
			eventually.Holds(t, "the figures show that the disk hangs", func() bool { return j.Stats().Flushing >= stuckAfter })
			if err := j.o.slow.named(context.DeadlineExceeded); parley.CodeOf(err) != parley.Timeout || !strings.Contains(err.Error(), "the disk has not finished a flush for") {
				t.Errorf("what fails meanwhile is %v", err)
			}
			if since := j.Flushing(); since > 0 {
				t.Errorf("a commit waits for %v: none is under way, and readers do not wait for this", since)
			}
			goOn()
			if err := <-done; err != nil {
				t.Error(err)
			}
			if since := j.Stats().Flushing; since >= time.Second {
				t.Errorf("afterwards the disk hangs for %v", since)
			}
			if _, err := j.Verify(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
