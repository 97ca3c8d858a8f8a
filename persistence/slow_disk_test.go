package persistence

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/persistence/disktest"
)

// TestJournalWaitsForSlowDisk blocks a write, and then a flush, for several times the server's timeout.
func TestJournalWaitsForSlowDisk(t *testing.T) {
	for name, hook := range map[string]func(d *disktest.Disk, slow func(name string)){
		"writing": func(d *disktest.Disk, slow func(name string)) { d.OnWrite(slow) },
		"flushing": func(d *disktest.Disk, slow func(name string)) {
			d.OnFlush(func(name string) error { slow(name); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := disktest.Mount(t)
			o := testOptions(t)
			o.Folder, o.answerWithin = filepath.Join(d.Path(), "state"), 100*time.Millisecond
			if err := MakeFolder(o.Folder); err != nil {
				t.Fatal(err)
			}
			j := open(t, o)
			w := make(writer)
			w.write(t, j, 1, 1)
			release, held := make(chan struct{}), make(chan struct{})
			var once sync.Once
			hook(d, func(name string) {
				if strings.Contains(name, o.streamName()) && strings.HasSuffix(name, blockSuffix) {
					once.Do(func() { close(held) })
					<-release
				}
			})
			var released atomic.Bool
			pos := j.Append(w.section(t, 1, 1))
			j.Release(pos, func(error) { released.Store(true) })
			<-held
			time.Sleep(20 * o.answerWithin) // the append must not be released meanwhile
			if released.Load() || j.Err() != nil {
				t.Fatalf("released %v, %v", released.Load(), j.Err())
			}
			close(release)
			if err := await(t, j, pos); err != nil {
				t.Fatal(err)
			}
			w.write(t, j, 1, 1)
			if j.Failures() != 0 {
				t.Errorf("%d failures", j.Failures())
			}
		})
	}
}

// TestOutputIsReadOnceDurable blocks the flush of a piece.
func TestOutputIsReadOnceDurable(t *testing.T) {
	d := disktest.Mount(t)
	o := testOptions(t)
	o.Folder = filepath.Join(d.Path(), "state")
	if err := MakeFolder(o.Folder); err != nil {
		t.Fatal(err)
	}
	j := open(t, o)
	first, err := j.AppendOutput(t.Context(), mailboxID(1), []byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	release, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	d.OnFlush(func(name string) error {
		if strings.Contains(name, o.outputName()) && strings.HasSuffix(name, blockSuffix) {
			once.Do(func() { close(held) })
			<-release
		}
		return nil
	})
	stored := make(chan error, 1)
	go func() {
		_, err := j.AppendOutput(t.Context(), mailboxID(1), []byte("second"))
		stored <- err
	}()
	<-held
	var ended atomic.Bool
	read := make(chan struct{})
	go func() { // it waits for the disk, or shows what is on it
		pieces, err := j.Output(t.Context(), mailboxID(1), 0, 10)
		if texts := textsOf(t, pieces, err); !slices.Equal(texts, []string{"first"}) && !ended.Load() {
			t.Errorf("before it is on disk, the output shows %v", texts)
		}
		close(read)
	}()
	shows := func(end uint64, want ...string) {
		t.Helper()
		pieces, err := j.Output(t.Context(), mailboxID(1), 0, 10)
		if got := textsOf(t, pieces, err); !slices.Equal(got, want) {
			t.Errorf("the output shows %v, want %v", got, want)
		}
		pieces, cursor, err := j.LatestOutput(t.Context(), mailboxID(1), 10)
		if got := textsOf(t, pieces, err); !slices.Equal(got, want) || cursor != end {
			t.Errorf("the latest output shows %v up to %d, want %v up to %d", got, cursor, want, end)
		}
	}
	ended.Store(true)
	close(release)
	<-read
	if err := <-stored; err != nil {
		t.Fatal(err)
	}
	shows(first+1, "first", "second")
	closeJournal(t, j)
	j = open(t, o)
	shows(first+1, "first", "second")
}
