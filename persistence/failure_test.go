package persistence

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
)

// failpoint fails steps by name, each a given number of times.
type failpoint struct {
	sync.Mutex
	fail map[string]int
}

func (f *failpoint) step(name string) error {
	f.Lock()
	defer f.Unlock()
	if f.fail[name] == 0 {
		return nil
	}
	f.fail[name]--
	return errors.New("failpoint " + name)
}

func (f *failpoint) set(fail map[string]int) {
	f.Lock()
	defer f.Unlock()
	f.fail = fail
}

// TestAcknowledgedAppendsSurviveFailures appends while a step fails, and reopens the journal after a failure. The log has every
// acknowledged append once and in order, and nothing that was not appended.
func TestAcknowledgedAppendsSurviveFailures(t *testing.T) {
	cases := map[string]map[string]int{
		"before publish":               {"before publish": 1},
		"after publish":                {"after publish": 1},
		"before publish, settle fails": {"before publish": 1, "before settle": 1},
		"after publish, settle fails":  {"after publish": 1, "before settle": 1},
		"after publish, result lost":   {"after publish": 1, "after settle": 1},
		"reopen fails":                 {"after publish": 2, "before settle": 2, "before reopen": 1, "after reopen": 1},
		"reopen with unknown result":   {"after publish": 3, "before settle": 3},
		"the mark":                     {"before mark": 2, "after Mark": 2},
		"snapshots":                    {"before snapshot": 1, "before index snapshot": 1},
	}
	for name, fail := range cases {
		t.Run(name, func(t *testing.T) {
			o := testOptions(t)
			f := new(failpoint)
			o.Failpoint = f.step
			j := open(t, o)
			appendAndReopen(t, j, func() { f.set(fail) })
			closeJournal(t, j)
			o.Failpoint = nil
			j = open(t, o)
			if _, err := j.Verify(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// appendAndReopen appends one by one and calls fail after some appends. When an append is lost, it reopens the journal and
// takes over the log's versions, as a node does.
func appendAndReopen(t *testing.T, j *Journal, fail func()) {
	t.Helper()
	w := make(writer)
	acknowledged, results := uint64(0), 0
	for i := range 40 {
		if i == 10 {
			fail()
		}
		if i == 20 {
			if err := j.SaveSnapshot(t.Context(), mailboxID(1), acknowledged, []byte("state")); err != nil {
				wantCode(t, err, parley.ReadOnly)
			}
		}
		version := w[1] + 1
		pos := j.Append(w.section(t, 1, 1))
		after := j.Append(w.section(t, 2, 1))
		err := await(t, j, pos)
		results++
		if err == nil {
			acknowledged = version
		}
		if err := await(t, j, after); err == nil && j.Err() == nil {
			continue
		}
		wantCode(t, j.Err(), parley.ReadOnly)
		reopen(t, j)
		for nth := 1; nth <= 2; nth++ {
			m, _ := j.Mailbox(mailboxID(nth))
			w[nth] = m.Version
		}
		if w[1] < acknowledged || w[1] > version {
			t.Fatalf("log has version %d, acknowledged %d, appended %d", w[1], acknowledged, version)
		}
	}
	if results != 40 {
		t.Fatalf("%d results", results)
	}
	if err := j.Err(); err != nil {
		t.Fatal(err)
	}
	evs, err := j.Events(t.Context(), mailboxID(1), 0, 0)
	if err != nil || uint64(len(evs)) != w[1] {
		t.Fatalf("%d events, want %d: %v", len(evs), w[1], err)
	}
}

// TestCommitInDoubtIsNotRefusedAsUndone has a commit reach the log, and nobody learn of it. Its append is refused as one whose outcome is
// not known, before and after the journal is opened again and has it. An append behind it is refused as not done.
func TestCommitInDoubtIsNotRefusedAsUndone(t *testing.T) {
	const unknown = "whether this was done is not known"
	o := testOptions(t)
	f := new(failpoint)
	o.Failpoint = f.step
	j := open(t, o)
	w := make(writer)
	w.write(t, j, 1, 3)
	f.set(map[string]int{"after publish": 1, "before settle": 1})
	pos := j.Append(w.section(t, 1, 1))
	failed := await(t, j, pos)
	wantCode(t, failed, parley.ReadOnly)
	if e := parley.AsError(failed); !strings.Contains(e.Message, unknown) || !strings.Contains(e.Hint, "do not repeat it blindly") {
		t.Errorf("the append in doubt: %+v", e)
	}
	behind := j.Append(w.section(t, 1, 1))
	for _, state := range []string{"failed", "open again"} {
		if failed := await(t, j, behind); failed == nil || strings.Contains(failed.Error(), unknown) {
			t.Errorf("%s: an append behind it: %v", state, failed)
		}
		if failed := await(t, j, pos); failed == nil || !strings.Contains(failed.Error(), unknown) {
			t.Errorf("%s: the append in doubt: %v", state, failed)
		}
		reopen(t, j)
	}
	if m, _ := j.Mailbox(mailboxID(1)); m.Version != 4 {
		t.Errorf("the log has version %d", m.Version)
	}
}

func TestAppendsAfterFailedCommitFailOnce(t *testing.T) {
	o := testOptions(t)
	f := new(failpoint)
	o.Failpoint = f.step
	j := open(t, o)
	w := make(writer)
	w.write(t, j, 1, 3)
	f.set(map[string]int{"before publish": 1})
	changed := j.Changed()
	var calls [50]atomic.Int32
	var wg sync.WaitGroup
	for i := range calls {
		wg.Add(1)
		pos := j.Append(w.section(t, 1, 1))
		j.Release(pos, func(err error) {
			calls[i].Add(1)
			if parley.CodeOf(err) != parley.ReadOnly || !j.Lost(pos) || j.Durable(pos) {
				t.Errorf("append %d: %v", i, err)
			}
			wg.Done()
		})
	}
	wg.Wait()
	<-changed
	reopen(t, j)
	w[1] = 3
	w.write(t, j, 1, 3)
	for i := range calls {
		if n := calls[i].Load(); n != 1 {
			t.Errorf("append %d has %d results", i, n)
		}
	}
	if j.Stats().Backlog != 0 {
		t.Error(j.Stats())
	}
	w.check(t, j)
}

func TestAppendWithStaleVersionIsRefused(t *testing.T) {
	j := open(t, testOptions(t))
	w := make(writer)
	w.write(t, j, 1, 3)
	stale := writer{1: 4}
	wantCode(t, await(t, j, j.Append(stale.section(t, 1, 1))), parley.ReadOnly)
	reopen(t, j)
	w.write(t, j, 1, 1)
	w.check(t, j)
}

func TestCommitTimesNeverGoBack(t *testing.T) {
	o := testOptions(t)
	now := atomic.Int64{}
	now.Store(1_700_000_000_000)
	o.Clock = func() time.Time { return time.UnixMilli(now.Load()) }
	j := open(t, o)
	w := make(writer)
	last := j.LastTime()
	for i := range 10 {
		now.Add(int64(1000 - 300*i))
		w.write(t, j, 1, 1)
		if j.LastTime() < last {
			t.Fatalf("%s after %s", j.LastTime(), last)
		}
		last = j.LastTime()
	}
	closeJournal(t, j)
	now.Store(1_000)
	j = open(t, o)
	w.write(t, j, 1, 1)
	if j.LastTime() != last {
		t.Fatalf("%s, want %s", j.LastTime(), last)
	}
}

func TestServerStartErrorIsReported(t *testing.T) {
	o := testOptions(t)
	if err := os.MkdirAll(journalFolder(o.Folder), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(journalFolder(o.Folder), "jetstream"), []byte("a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), serverStart/2)
	defer cancel()
	_, err := Open(ctx, o)
	wantCode(t, err, parley.ReadOnly)
	if ctx.Err() != nil || !strings.Contains(err.Error(), "not a directory") {
		t.Fatalf("after waiting (%v): %v", ctx.Err(), err)
	}
}

// TestAppendSinceEarlierFailureIsLost appends, after a failure, a section that was decided before it.
func TestAppendSinceEarlierFailureIsLost(t *testing.T) {
	o := testOptions(t)
	f := new(failpoint)
	o.Failpoint = f.step
	j := open(t, o)
	w := make(writer)
	w.write(t, j, 1, 1)
	decided := j.Failures()
	f.set(map[string]int{"before publish": 1})
	stale := writer{1: 1}
	wantCode(t, await(t, j, j.Append(stale.section(t, 1, 1))), parley.ReadOnly)
	reopen(t, j)
	fresh := w.section(t, 1, 1)
	lost := j.AppendSince(decided, w.section(t, 2, 1))
	if !j.Lost(lost) || j.Durable(lost) {
		t.Error("the append is not lost")
	}
	stored := j.Append(fresh)
	wantCode(t, await(t, j, lost), parley.ReadOnly)
	if err := await(t, j, stored); err != nil {
		t.Fatal(err)
	}
	delete(w, 2)
	if j.Failures() != decided+1 {
		t.Errorf("it failed %d times", j.Failures())
	}
	w.check(t, j)
}
