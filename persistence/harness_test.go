package persistence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/goleak"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// objectStoreLeft is the function of a goroutine that the NATS client can leak. It leaks if an object is stored before the
// goroutine has started.
const objectStoreLeft = "github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect"

func TestMain(m *testing.M) {
	if port := os.Getenv(childServer); port != "" {
		serveAsChild(port, os.Getenv(childFolder))
		return
	}
	if folder := os.Getenv(childReader); folder != "" {
		readAsChild(folder)
		return
	}
	if folder := os.Getenv(childWriter); folder != "" {
		writeAsChild(folder)
		return
	}
	if folder := os.Getenv(childArchiver); folder != "" {
		archiveAsChild(folder, os.Getenv(childStep))
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(objectStoreLeft))
}

func testNode(n byte) capabilities.NodeID { return capabilities.NodeOf([32]byte{31: n}) }

func mailboxID(n int) capabilities.ID {
	return capabilities.ID{ULID: ulid.ULID{14: byte(n >> 8), 15: byte(n)}, Node: testNode(1)}
}

func testOptions(t testing.TB) Options {
	t.Helper()
	o := Options{Folder: t.TempDir(), Node: testNode(1)}
	if testing.Verbose() {
		o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	return o
}

// smallJournal is the limit of a journal with small files.
const smallJournal = 127_000

// smallArchive is what stays in it when it is archived.
const smallArchive = 8_000

// smallFiles returns options of a journal with files of 32,000 bytes in place of 8 MiB. It has room for three.
func smallFiles(t testing.TB) Options {
	t.Helper()
	o := testOptions(t)
	o.maxBytes, o.archiveLeast = smallJournal, smallArchive
	return o
}

// open opens a journal and closes it when the test ends.
func open(t testing.TB, o Options) *Journal {
	t.Helper()
	j, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeJournal(t, j) })
	return j
}

func closeJournal(t testing.TB, j *Journal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := j.Close(ctx); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Errorf("close: %v", err)
	}
}

// writer makes sections of mailboxes with consecutive versions. It holds the last version of each.
type writer map[int]uint64

func (w writer) section(t testing.TB, nth, count int) events.Section {
	t.Helper()
	evs := make([]events.Recorded, count)
	for i := range evs {
		version := int64(w[nth]) + int64(i) + 1
		evs[i] = events.Recorded{At: 1, Event: &events.NameBound{Name: fmt.Sprintf("n%d", version), Value: capabilities.Int(version)}}
	}
	body, err := events.Append(nil, evs...)
	if err != nil {
		t.Fatal(err)
	}
	first := w[nth] + 1
	w[nth] += uint64(count)
	return events.Section{Mailbox: mailboxID(nth), First: first, Count: uint32(count), Body: body,
		Summary: events.Summary{Open: uint32(w[nth])}}
}

// await blocks until a position is released, and returns its result.
func await(t testing.TB, j *Journal, pos Position) error {
	t.Helper()
	c := make(chan error, 1)
	j.Release(pos, func(err error) { c <- err })
	select {
	case err := <-c:
		return err
	case <-time.After(30 * time.Second):
		t.Fatalf("position %d is never released", pos)
		return nil
	}
}

// write appends count commits of one event each, each durable before the next.
func (w writer) write(t testing.TB, j *Journal, nth, count int) {
	t.Helper()
	for range count {
		if err := await(t, j, j.Append(w.section(t, nth, 1))); err != nil {
			t.Fatal(err)
		}
	}
}

// check checks that a journal has exactly the events of w.
func (w writer) check(t testing.TB, j *Journal) {
	t.Helper()
	for nth, version := range w {
		l, err := j.Load(t.Context(), mailboxID(nth))
		if err != nil {
			t.Fatal(err)
		}
		if uint64(len(l.Events)) != version-l.SnapshotVersion {
			t.Fatalf("mailbox %d has %d events after version %d, want up to %d", nth, len(l.Events), l.SnapshotVersion, version)
		}
		for i, e := range l.Events {
			n := l.SnapshotVersion + uint64(i) + 1
			if v, _ := e.Event.(*events.NameBound).Value.AsInt(); e.Version != n || uint64(v) != n {
				t.Fatalf("mailbox %d: event %d is %+v", nth, n, e)
			}
		}
		m, ok := j.Mailbox(mailboxID(nth))
		if !ok && version > 0 || m.Version != version || uint64(m.Summary.Open) != version {
			t.Fatalf("mailbox %d is %+v, want version %d", nth, m, version)
		}
	}
	if r, err := j.Verify(t.Context()); err != nil || r.Mailboxes != len(w) {
		t.Fatalf("verify: %+v, %v; want %d mailboxes", r, err, len(w))
	}
}

func wantCode(t testing.TB, err error, code parley.Code) *parley.Error {
	t.Helper()
	if parley.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	return parley.AsError(err)
}
