package actors

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
	"parley/mailbox"
	"parley/mailbox/form"
	"parley/persistence"
)

// storeText stores a file for an agent in parts of a size.
func storeText(tb testing.TB, a *Agent, name string, content []byte, part int) events.File {
	tb.Helper()
	p := FilePart{Size: int64(len(content))}
	for {
		p.Data = content[p.Offset:min(int(p.Offset)+part, len(content))]
		at, err := a.Mail().Files().Store(tb.Context(), p)
		if err != nil {
			tb.Fatal(err)
		}
		p.Upload, p.Offset = at.Upload, at.Offset
		if at.Digest != "" {
			sum := sha256.Sum256(content)
			if at.Digest != hex.EncodeToString(sum[:]) {
				tb.Fatal("it is stored under another digest")
			}
			return events.File{Digest: at.Digest, Name: name, Size: p.Size, Type: "text/plain"}
		}
	}
}

// fetchAll fetches a file as an agent does.
func fetchAll(ctx context.Context, a *Agent, ref capabilities.FormRef, digest string) ([]byte, error) {
	var content []byte
	for {
		p, err := a.Mail().Files().Fetch(ctx, ref, digest, int64(len(content)))
		if err != nil || len(p.Data) == 0 {
			return content, err
		}
		b, err := base64.StdEncoding.DecodeString(p.Data)
		if err != nil {
			return content, err
		}
		content = append(content, b...)
	}
}

func attach(tb testing.TB, a *Agent, to string, files ...events.File) capabilities.FormRef {
	tb.Helper()
	sent, err := Post(tb.Context(), a, mailbox.PostMessage{To: to, Post: parley.Post{Header: parley.Header{Files: files}, Text: "see"}})
	if err != nil {
		tb.Fatal(err)
	}
	return capabilities.FormID(sent.Message)
}

func wantFile(tb testing.TB, a *Agent, ref capabilities.FormRef, digest string, want []byte) {
	tb.Helper()
	got, err := fetchAll(tb.Context(), a, ref, digest)
	if err != nil || !bytes.Equal(got, want) {
		tb.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
}

func refuses(tb testing.TB, err error, want parley.Code) {
	tb.Helper()
	if parley.CodeOf(err) != want {
		tb.Errorf("want %s: %v", want, err)
	}
}

func someContent(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8) ^ seed
	}
	return b
}

// TestFileReachesItsRecipientAlone sends a file. Who knows its digest and holds no message with it reads nothing, nor can send it.
func TestFileReachesItsRecipientAlone(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae, bob, eve := guest(t, n, "fae"), guest(t, n, "bob"), guest(t, n, "eve")
	content := someContent(persistence.MaxFilePiece*2+10, 1)
	f := storeText(t, fae, "a.txt", content, 100_000)
	host := n.Host()
	ref := attach(t, fae, "HOST", f)
	awaitMessage(t, host, ref.ID())
	wantFile(t, host, ref, f.Digest, content)
	wantFile(t, fae, ref, f.Digest, content)
	for name, a := range map[string]*Agent{"bob": bob, "eve": eve} {
		_, err := fetchAll(t.Context(), a, ref, f.Digest)
		if err == nil {
			t.Errorf("%s reads it", name)
		}
		_, err = Post(t.Context(), a, mailbox.PostMessage{To: "HOST", Post: parley.Post{Header: parley.Header{Files: []events.File{f}}, Text: "mine"}})
		refuses(t, err, parley.NoSuchFile)
	}
	mine := attach(t, eve, "HOST", storeText(t, eve, "b.txt", []byte("eve's"), 10))
	_, err := fetchAll(t.Context(), eve, mine, f.Digest)
	refuses(t, err, parley.NoSuchFile)
	m, err := host.Message(t.Context(), ref)
	if err != nil || len(m.Files) != 1 || m.Files[0] != f {
		t.Errorf("%+v, %v", m.Files, err)
	}
}

// TestPartsOfUpload has parts that come twice, out of order, by another, and too much of them.
func TestPartsOfUpload(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae, eve := guest(t, n, "fae"), guest(t, n, "eve")
	content := someContent(1000, 2)
	store := func(a *Agent, p FilePart) (string, int64, string, error) {
		at, err := a.Mail().Files().Store(t.Context(), p)
		return at.Upload, at.Offset, at.Digest, err
	}
	_, _, _, err := store(fae, FilePart{Size: persistence.MaxFile + 1})
	refuses(t, err, parley.TooLarge)
	_, _, _, err = store(fae, FilePart{Size: -1})
	refuses(t, err, parley.InvalidArgument)
	_, _, _, err = store(fae, FilePart{Size: 10, Data: content[:11]})
	refuses(t, err, parley.InvalidArgument)
	id, at, _, err := store(fae, FilePart{Size: 1000, Data: content[:400]})
	if err != nil || at != 400 {
		t.Fatal(at, err)
	}
	_, _, _, err = store(eve, FilePart{Upload: id, Offset: 400, Data: content[400:]})
	refuses(t, err, parley.NoSuchFile)
	_, _, _, err = store(fae, FilePart{Upload: id, Offset: 500, Data: content[500:]})
	refuses(t, err, parley.InvalidArgument)
	if _, at, _, err = store(fae, FilePart{Upload: id, Offset: 0, Data: content[:400]}); err != nil || at != 400 {
		t.Error(at, err)
	}
	if _, at, _, err = store(fae, FilePart{Upload: id, Offset: 300, Data: content[300:600]}); err != nil || at != 600 {
		t.Error(at, err)
	}
	sum := sha256.Sum256(content)
	for range 2 { // the answer may have been lost
		if _, at, digest, err := store(fae, FilePart{Upload: id, Offset: 600, Data: content[600:]}); err != nil || at != 1000 || digest != hex.EncodeToString(sum[:]) {
			t.Error(at, digest, err)
		}
	}
	for range uploadsOfOne - 1 {
		if _, _, _, err := store(fae, FilePart{Size: 10}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, _, err = store(fae, FilePart{Size: 10}); err != nil {
		t.Fatal(err)
	}
	_, _, _, err = store(fae, FilePart{Size: 10})
	refuses(t, err, parley.RateLimited)
	if _, _, _, err := store(eve, FilePart{Size: 10}); err != nil {
		t.Errorf("another agent: %v", err)
	}
	n.files.giveUp(func(u *upload) bool { return u.done == nil })
	if left, err := os.ReadDir(n.files.folder()); err != nil || len(left) > 0 {
		t.Errorf("%d uploads are left, %v", len(left), err)
	}
	_, _, _, err = store(fae, FilePart{Upload: "../../node.key", Offset: 0, Data: content})
	refuses(t, err, parley.NoSuchFile)
}

// TestFilesCountForTheirStorer has quotas: per day, and in total. The content of both agents is the same, and counts for each.
func TestFilesCountForTheirStorer(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae, bob := guest(t, n, "fae"), guest(t, n, "bob")
	if err := n.Host().Agents().SetQuota(t.Context(), fae, map[string]int64{"files": 2500, "daily": 1 << 20}, false); err != nil {
		t.Fatal(err)
	}
	storeText(t, fae, "a", someContent(1000, 1), 1000)
	storeText(t, fae, "again", someContent(1000, 1), 1000)
	_, err := fae.Mail().Files().Store(t.Context(), FilePart{Size: 1600})
	refuses(t, err, parley.QuotaExceeded)
	storeText(t, bob, "a", someContent(1000, 1), 1000)
	if err := n.Host().Agents().SetQuota(t.Context(), fae, map[string]int64{"files": -1, "daily": 5000}, false); err != nil {
		t.Fatal(err)
	}
	_, err = fae.Mail().Files().Store(t.Context(), FilePart{Size: 4000})
	refuses(t, err, parley.QuotaExceeded)
	use, err := n.Host().Agents().Quota(t.Context(), fae)
	if err != nil || use.Used["files"] != 1000 {
		t.Errorf("%+v, %v", use.Used, err)
	}
}

// TestSweepRemovesWhatNobodyWants sweeps a node: a file that was sent stays until its message was dismissed long ago by both.
func TestSweepRemovesWhatNobodyWants(t *testing.T) {
	t.Parallel()
	var clock shiftedClock
	n := openWith(t, Options{Folder: t.TempDir(), Clock: clock.now})
	fae := guest(t, n, "fae")
	sent, unsent := storeText(t, fae, "a", []byte("sent"), 10), storeText(t, fae, "b", []byte("unsent"), 10)
	ref := attach(t, fae, "HOST", sent)
	awaitMessage(t, n.Host(), ref.ID())
	count := func() int {
		t.Helper()
		if _, err := n.files.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		all, err := n.journal.Files(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	if c := count(); c != 2 {
		t.Errorf("%d files", c)
	}
	clock.forward(10 * 24 * time.Hour)
	if c := count(); c != 1 {
		t.Errorf("after ten days: %d files", c)
	}
	if err := fae.Dismiss(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	clock.forward(40 * 24 * time.Hour)
	if c := count(); c != 1 {
		t.Errorf("the recipient has it: %d files", c)
	}
	if err := n.Host().Dismiss(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	clock.forward(40 * 24 * time.Hour)
	if c := count(); c != 0 {
		t.Errorf("at last: %d files", c)
	}
	_, err := fetchAll(t.Context(), n.Host(), ref, sent.Digest)
	refuses(t, err, parley.NoSuchFile)
	_, err = Post(t.Context(), fae, mailbox.PostMessage{To: "HOST", Post: parley.Post{Header: parley.Header{Files: []events.File{unsent}}, Text: "see"}})
	refuses(t, err, parley.NoSuchFile)
}

// TestFileComesFromItsNode opens a file of a message from another node. It is fetched once, over a connection that breaks, and then
// is here: also when the sender's node is gone.
func TestFileComesFromItsNode(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	content := someContent(persistence.MaxFilePiece*3+5, 3)
	f := storeText(t, a.Host(), "a.bin", content, persistence.MaxFilePiece)
	ref := attach(t, a.Host(), "b", f)
	awaitMessage(t, b.Host(), ref.ID())
	if _, _, err := b.journal.FileAt(t.Context(), persistence.FileDigest(sha256.Sum256(content)), 0); parley.CodeOf(err) != parley.NoSuchFile {
		t.Errorf("it is here before it was opened: %v", err)
	}
	setMode(disconnected, b)
	awaitUnreachable(t, b, a)
	done := make(chan error, 1)
	go func() {
		got, err := fetchAll(t.Context(), b.Host(), ref, f.Digest)
		if err == nil && !bytes.Equal(got, content) {
			err = errors.New("it has come changed")
		}
		done <- err
	}()
	setMode(forwarding, b)
	if err := <-done; err != nil && parley.CodeOf(err) != parley.NodeUnreachable {
		t.Fatal(err)
	}
	wantFile(t, b.Host(), ref, f.Digest, content)
	setMode(disconnected, b)
	wantFile(t, b.Host(), ref, f.Digest, content)
	setMode(forwarding, b)
	other := guest(t, b.Node, "other")
	_, err := fetchAll(t.Context(), other, ref, f.Digest)
	if err == nil {
		t.Error("another agent reads it")
	}
}

// TestAnswerBringsFileFromItsNode asks another node for a file.
func TestAnswerBringsFileFromItsNode(t *testing.T) {
	t.Parallel()
	a, b := openClusterNode(t, "a", false), openClusterNode(t, "b", true)
	connectHosts(t, b, a)
	asked := ask(t, a.Host(), parley.Form{To: "b", Fields: []events.Field{{Name: "doc", Type: events.Document, Required: true}}})
	ref := capabilities.FormID(asked.Form)
	awaitMessage(t, b.Host(), ref.ID())
	content := someContent(5000, 4)
	f := storeText(t, b.Host(), "doc.txt", content, 5000)
	if _, err := b.Host().Answer(t.Context(), ref, parley.Answer{Values: map[string]capabilities.Value{"doc": form.FileValue(f)}}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Host().Await(within(t), ref); err != nil {
		t.Fatal(err)
	}
	wantFile(t, a.Host(), ref, f.Digest, content)
	wantFile(t, b.Host(), ref, f.Digest, content)
}

// TestHostileNodeGetsNoContent has a node name the digest of a file that only this node has, and ask for it: it gets nothing, and who
// is sent its message reads nothing of it. A group passes nothing on either. A node that sends other content, or none, is refused.
func TestHostileNodeGetsNoContent(t *testing.T) {
	t.Parallel()
	v := newHostileHarness(t)
	n, host := v.victim, v.victim.Host()
	secret := someContent(3000, 5)
	f := storeText(t, v.fae, "secret.txt", secret, 3000)
	sent := attach(t, v.fae, "HOST", f)
	awaitMessage(t, host, sent.ID())
	adoptReference(t, v.fae, send(t, host, "fae", "@worker").Message, "worker", "worker")
	if _, err := v.fae.SetMember(t.Context(), mailbox.SetMember{Agent: "worker", In: true}); err != nil {
		t.Fatal(err)
	}
	claim := func(to *Agent, grant capabilities.ID, f events.File) capabilities.FormRef {
		t.Helper()
		e := &events.MessagePosted{
			Message: v.newID(), From: v.host, To: to.id, Via: grant, Text: []events.Span{{Words: "see"}}, Date: 1, Header: events.Header{Files: []events.File{f}},
		}
		if ack := v.deliver(events.OutboxCopy, to.id, e); ack.Status != peers.AckAccepted {
			t.Fatal(ack)
		}
		return capabilities.FormID(e.Message)
	}
	ref := claim(v.fae, v.faeGrant, f)
	eventually.Holds(t, "the group has passed it on", func() bool {
		in, err := v.worker.Mail().Inbox(t.Context(), view.MessageFilter{})
		return err == nil && len(in.Messages) > 0
	})
	in, err := v.worker.Mail().Inbox(t.Context(), view.MessageFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var served []byte
	v.serve = func(peers.FilePacket) *peers.PiecePacket { return &peers.PiecePacket{Data: served} }
	for name, piece := range map[string][]byte{"other content": make([]byte, 3000), "no end": make([]byte, 4000), "nothing": nil} {
		served = piece
		_, err := fetchAll(t.Context(), v.worker, capabilities.FormID(in.Messages[0].MessageID), f.Digest)
		refuses(t, err, parley.FileDamaged)
		if err == nil || strings.Contains(err.Error(), v.host.Node.String()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_ = ref
	for what, p := range map[string]peers.FilePacket{
		"another's message": {Message: sent.ID(), From: v.fae.id.ULID, To: v.host.ULID, Digest: f.Digest},
		"its own message":   {Message: ref.ID(), From: v.fae.id.ULID, To: v.host.ULID, Digest: f.Digest},
		"no digest":         {Message: sent.ID(), From: v.fae.id.ULID, To: v.host.ULID, Digest: "../x"},
		"nobody":            {Message: sent.ID(), To: v.host.ULID, Digest: f.Digest},
	} {
		if got := exchange[peers.PiecePacket](v.hostileNode, peers.KindFile, p); got.Code != string(parley.NoSuchFile) || len(got.Data) > 0 {
			t.Errorf("%s: %+v", what, got)
		}
	}
	if left, err := os.ReadDir(n.files.folder()); err != nil && !errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		t.Errorf("%d fetches are left, %v", len(left), err)
	}
}

// TestUploadsOfOneAreBounded begins many uploads at once: no more are open than may be, and those that are refused leave room.
func TestUploadsOfOneAreBounded(t *testing.T) {
	t.Parallel()
	n := openNode(t, t.TempDir())
	fae := guest(t, n, "fae")
	const callers = 64
	got := make(chan view.StoredFile, callers)
	var begun atomic.Int32
	var all sync.WaitGroup
	start := make(chan struct{})
	for range callers {
		all.Go(func() {
			<-start
			at, err := fae.Mail().Files().Store(t.Context(), FilePart{Size: 2, Data: []byte("a")})
			if err == nil {
				begun.Add(1)
				got <- at
			} else {
				refuses(t, err, parley.RateLimited)
			}
		})
	}
	close(start)
	all.Wait()
	close(got)
	if begun.Load() != uploadsOfOne {
		t.Errorf("%d uploads were begun at once, and %d may be", begun.Load(), uploadsOfOne)
	}
	for at := range got {
		if _, err := fae.Mail().Files().Store(t.Context(), FilePart{Upload: at.Upload, Offset: 1, Data: []byte("b")}); err != nil {
			t.Error(err)
		}
	}
	if _, err := fae.Mail().Files().Store(t.Context(), FilePart{Size: 2, Data: []byte("ab")}); err != nil {
		t.Errorf("uploads that are stored count on: %v", err)
	}
}
