package persistence

import (
	"bytes"
	"testing"

	"parley"
	"parley/internal/eventually"
)

// newBackup returns a backup that was made during writes, and the appends that it must have.
func newBackup(t *testing.T) ([]byte, writer) {
	t.Helper()
	j := open(t, testOptions(t))
	w := make(writer)
	for nth := range 5 {
		w.write(t, j, nth, 20)
	}
	durable := make(writer)
	for nth, v := range w {
		durable[nth] = v
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				w.write(t, j, 9, 1)
			}
		}
	}()
	var b bytes.Buffer
	err := j.Backup(t.Context(), &b)
	close(stop)
	<-stopped
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), durable
}

func TestRestoredBackupEqualsJournal(t *testing.T) {
	b, w := newBackup(t)
	o := testOptions(t)
	if err := Restore(t.Context(), o, bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	j := open(t, o)
	if m, ok := j.Mailbox(mailboxID(9)); ok {
		w[9] = m.Version
	}
	w.check(t, j)
	w.write(t, j, 2, 3)
	w.check(t, j)
	closeJournal(t, j)
	wantCode(t, Restore(t.Context(), o, bytes.NewReader(b)), parley.InvalidArgument)
}

func TestDamagedBackupIsRefused(t *testing.T) {
	b, w := newBackup(t)
	o := testOptions(t)
	flip := func(at int) []byte {
		c := bytes.Clone(b)
		c[at] ^= 4
		return c
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "head cut": b[:20], "cut in a frame": b[:len(b)/2], "no end": b[:len(b)-backupTrailer-4],
		"end cut": b[:len(b)-1], "too long": append(bytes.Clone(b), 0), "flipped": flip(len(b) / 3),
		"flipped magic": flip(2), "flipped length": flip(len(backupMagic) + 32), "flipped end": flip(len(b) - 1),
	} {
		t.Run(name, func(t *testing.T) {
			err := Restore(t.Context(), o, bytes.NewReader(bad))
			wantCode(t, err, parley.CorruptLog)
		})
	}
	other := o
	other.Node = testNode(2)
	wantCode(t, Restore(t.Context(), other, bytes.NewReader(b)), parley.InvalidArgument)
	if err := Restore(t.Context(), o, bytes.NewReader(b)); err != nil { // the failed restores left nothing in the folder
		t.Fatal(err)
	}
	j := open(t, o)
	delete(w, 9)
	for nth, v := range w {
		if m, _ := j.Mailbox(mailboxID(nth)); m.Version != v {
			t.Fatalf("mailbox %d is %+v, want version %d", nth, m, v)
		}
	}
}

func TestUnfinishedRestoreDoesNotOpen(t *testing.T) {
	b, _ := newBackup(t)
	o, err := testOptions(t).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	r, err := openBackup(bytes.NewReader(b), o.Node)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := load(t.Context(), &o, r); err != nil { // the restore is not finished
		t.Fatal(err)
	}
	_, err = Open(t.Context(), o)
	wantCode(t, err, parley.CorruptLog)
	wantCode(t, Restore(t.Context(), o, bytes.NewReader(b)), parley.InvalidArgument)
}

func TestRestoreToExternalServer(t *testing.T) {
	b, w := newBackup(t)
	e := startExternal(t)
	o := e.options(t)
	eventually.Holds(t, "the backup is restored", func() bool { return Restore(t.Context(), o, bytes.NewReader(b)) == nil })
	j := openEventually(t, o)
	if m, ok := j.Mailbox(mailboxID(9)); ok {
		w[9] = m.Version
	}
	w.check(t, j)
}
