package actors

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"parley"
	"parley/actors/peers"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/quota"
	"parley/persistence"
)

// Files are stored in pieces, and fetched in pieces. An upload is a file in the state folder until it is whole. Then its content
// goes to the store beside the journal, and the storer's log says that it is there. Only then a message may carry it:
//
//	store_file …          uploads/ID grows
//	the last piece        the content is on disk under its digest; FileStored in the storer's log, on disk
//	send --attach         MessagePosted with the digest
//
// A process that ends between two of these leaves an upload, which the next start removes, or content that nothing refers to, which
// the sweep removes.
//
// Who may read a file: who has a message, or an answer, that carries it. That a message from another node names a digest is no
// right to what this node keeps under it: the file is fetched from that node. Only what its reader has fetched, or what an agent
// of this node has sent after it had stored it, is read from the store.
const (
	uploadsFolder   = "uploads"
	uploadsOfOne    = 4                // uploads of an account at once
	uploadIdle      = 10 * time.Minute // without a piece, an upload is given up
	fetchIdle       = 10 * time.Second // without a piece, the fetch from another node is given up
	sweepFirst      = 5 * time.Minute  // after the start
	sweepEvery      = 6 * time.Hour
	unreferredFor   = 24 * time.Hour // that content is kept to which nothing refers
	longestWay      = 10             // groups that a file came through
	fetchesOfOne    = 2              // files that are fetched for an account at once
	servedOfOneNode = 4              // pieces that are read for another node at once
)

// fileStore keeps the uploads that are not whole, and sweeps what nothing refers to.
type fileStore struct {
	node *Node

	mu       sync.Mutex
	uploads  map[string]*upload
	fetching map[capabilities.ID]int     // by account
	serving  map[capabilities.NodeID]int // pieces
	fetches  map[fileFetch]*fetch        // under way
}

// upload is a file that is being stored.
type upload struct {
	agent, account capabilities.ID
	path           string
	size           int64

	mu    sync.Mutex // held while a piece is stored
	f     *os.File   // nil when it is whole, or given up
	got   int64
	sum   hash.Hash
	used  time.Time // guarded by the store's mutex
	whole bool      // the same: it is stored, and counts no more
	done  *view.StoredFile
}

// fileFetch names a fetch: the same content is fetched once from a node for an agent.
type fileFetch struct {
	agent  capabilities.ID
	from   capabilities.ID
	digest persistence.FileDigest
}

type fetch struct {
	done chan struct{}
	err  error
}

func newFileStore(n *Node) *fileStore {
	return &fileStore{
		node: n, uploads: map[string]*upload{}, fetching: map[capabilities.ID]int{}, serving: map[capabilities.NodeID]int{}, fetches: map[fileFetch]*fetch{},
	}
}

func (s *fileStore) folder() string { return filepath.Join(s.node.o.Folder, uploadsFolder) }

// open removes the uploads of an earlier process.
func (s *fileStore) open() error {
	if err := os.RemoveAll(s.folder()); err != nil {
		return parley.Refuse(parley.ReadOnly, "the unfinished uploads cannot be removed: %v", errors.Unwrap(err))
	}
	return nil
}

// run gives up idle uploads, and sweeps the store, until the node ends.
func (s *fileStore) run() {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	next := time.Now().Add(sweepFirst)
	for {
		select {
		case <-tick.C:
		case <-s.node.life.Done():
			s.giveUp(func(*upload) bool { return true })
			return
		}
		s.giveUp(func(u *upload) bool { return time.Since(u.used) > uploadIdle })
		if time.Now().Before(next) || s.node.journal.Err() != nil {
			continue
		}
		next = time.Now().Add(sweepEvery)
		if _, err := s.sweep(s.node.life); err != nil {
			s.node.log.Warn("files are not swept", "error", err)
		}
	}
}

// giveUp ends uploads.
func (s *fileStore) giveUp(which func(*upload) bool) {
	s.mu.Lock()
	var ended []*upload
	for id, u := range s.uploads {
		if which(u) {
			delete(s.uploads, id)
			ended = append(ended, u)
		}
	}
	s.mu.Unlock()
	for _, u := range ended {
		u.mu.Lock()
		u.close()
		u.mu.Unlock()
	}
}

// close removes what the upload has on disk. The caller has the upload's lock.
func (u *upload) close() {
	if u.f != nil {
		_ = u.f.Close() // it is removed
		_ = os.Remove(u.path)
		u.f = nil
	}
}

// Files are the files of an agent.
type Files struct{ agent *Agent }

// Files returns the files of the agent.
func (m Mail) Files() Files { return Files(m) }

// FilePart is a part of a file that an agent stores. The first one has the Size of the file, and no Upload. Data has at most
// persistence.MaxFilePiece bytes. What an upload has already is passed over, so that a part may be sent again.
type FilePart struct {
	Upload string
	Size   int64
	Offset int64
	Data   []byte
}

// Store takes a part of a file. With the last one the file is stored, on disk, and in the answer. It refuses with
// QUOTA_EXCEEDED what would be too much for the agent.
func (fs Files) Store(ctx context.Context, p FilePart) (view.StoredFile, error) {
	n := fs.agent.node
	if len(p.Data) > persistence.MaxFilePiece {
		return view.StoredFile{}, parley.Refuse(parley.TooLarge, "a part of a file has %d KiB at most", persistence.MaxFilePiece>>10)
	}
	u, id, err := n.files.upload(ctx, fs.agent, p)
	if err != nil {
		return view.StoredFile{}, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done != nil {
		return *u.done, nil
	}
	if u.f == nil {
		return view.StoredFile{}, noUpload()
	}
	if p.Offset < 0 || p.Offset > u.got || p.Offset+int64(len(p.Data)) > u.size {
		return view.StoredFile{}, parley.Refuse(parley.InvalidArgument, "the upload goes on at byte %d of %d", u.got, u.size)
	}
	if news := p.Data[min(u.got-p.Offset, int64(len(p.Data))):]; len(news) > 0 {
		err := n.journal.Beside(func() error {
			_, err := u.f.WriteAt(news, u.got)
			return err
		})
		if err != nil {
			return view.StoredFile{}, parley.Refuse(parley.ReadOnly, "the upload cannot be written: %v", errors.Unwrap(err))
		}
		_, _ = u.sum.Write(news) // a hash never fails
		u.got += int64(len(news))
	}
	at := view.StoredFile{Upload: id, Offset: u.got, Size: u.size}
	if u.got < u.size {
		return at, nil
	}
	digest := persistence.FileDigest(u.sum.Sum(nil))
	if err := keepFile(ctx, fs.agent, digest, u.size, u.f); err != nil {
		return view.StoredFile{}, err
	}
	u.close()
	at.Digest = digest.String()
	u.done = &at
	n.files.mu.Lock()
	u.whole = true
	n.files.mu.Unlock()
	return at, nil
}

func noUpload() error {
	return parley.Refuse(parley.NoSuchFile, "there is no such upload: it was given up after %s without a part, or the node has started anew", capabilities.Span(uploadIdle)).
		WithHint("begin again, without an upload")
}

// upload returns the upload of a part, which the first part begins.
func (s *fileStore) upload(ctx context.Context, a *Agent, p FilePart) (*upload, string, error) {
	if p.Upload != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		u := s.uploads[p.Upload]
		if u == nil || u.agent != a.id {
			return nil, "", noUpload()
		}
		u.used = time.Now()
		return u, p.Upload, nil
	}
	switch {
	case p.Size < 0 || p.Offset != 0 || int64(len(p.Data)) > p.Size:
		return nil, "", parley.Refuse(parley.InvalidArgument, "the first part of a file has its size, begins at 0, and has no more than that")
	case p.Size > persistence.MaxFile:
		return nil, "", parley.Refuse(parley.TooLarge, "a file has %d MiB at most", persistence.MaxFile>>20).WithHint("put it where the recipient can fetch it, and send its address")
	}
	u, id, begun, err := s.begin(a, p.Size)
	if err != nil {
		return nil, "", err
	}
	defer u.mu.Unlock() // nobody else has its ID
	if _, err = call(ctx, a, checkStore{begun}); err == nil {
		err = s.node.journal.Beside(u.create)
	}
	if err != nil {
		s.mu.Lock()
		delete(s.uploads, id)
		s.mu.Unlock()
		return nil, "", err
	}
	return u, id, nil
}

// begin adds an upload, which it returns locked and without a file, if the agent may have one more: it counts from now on. Begun is the
// size of all that are not stored, with this one.
func (s *fileStore) begin(a *Agent, size int64) (u *upload, id string, begun int64, err error) {
	account := s.node.accounts.headOf(a.id)
	id = rand.Text()
	u = &upload{agent: a.id, account: account, path: filepath.Join(s.folder(), id), size: size, sum: sha256.New(), used: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := 0
	for _, other := range s.uploads {
		if other.account == account && !other.whole {
			open, begun = open+1, begun+other.size
		}
	}
	if open >= uploadsOfOne {
		return nil, "", 0, parley.Refuse(parley.RateLimited, "%d files are being stored for this agent: more cannot be at once", open).WithHint("try again when one is stored")
	}
	u.mu.Lock()
	s.uploads[id] = u
	return u, id, begun + size, nil
}

// create makes the file of an upload. The caller has the upload's lock.
func (u *upload) create() error {
	err := os.MkdirAll(filepath.Dir(u.path), 0o700)
	if err == nil {
		u.f, err = os.OpenFile(u.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return parley.Refuse(parley.ReadOnly, "the upload cannot be written: %v", errors.Unwrap(err))
	}
	return nil
}

// checkStore refuses a file that would be over the agent's quotas.
type checkStore struct{ size int64 }

func (m checkStore) handle(b *mailboxActor) (none, error) {
	now := b.node.now()
	var growth quota.Amounts
	growth[quota.Daily], growth[quota.Files] = m.size, m.size
	return none{}, b.node.accounts.limits(b.reg.id, now).Check(b.state.Account.Own(now), growth)
}

// keepFile stores content for an agent: first on disk, then in the agent's log.
func keepFile(ctx context.Context, a *Agent, digest persistence.FileDigest, size int64, content io.ReaderAt) error {
	if err := a.node.journal.StoreFile(ctx, digest, size, content); err != nil {
		return err
	}
	return a.do(ctx, mailbox.StoreFile{Digest: digest.String(), Size: size})
}

// Fetch returns a part of a file that a message or an answer of the agent carries, from an offset on: at most
// persistence.MaxFilePiece bytes, and none at its end. What another node has is fetched from there first. It refuses with
// NO_SUCH_FILE, NODE_UNREACHABLE, and FILE_DAMAGED.
func (fs Files) Fetch(ctx context.Context, ref capabilities.FormRef, digest string, offset int64) (view.FilePart, error) {
	var sum persistence.FileDigest
	if b, err := hex.DecodeString(digest); err != nil || len(b) != len(sum) {
		return view.FilePart{}, parley.Refuse(parley.InvalidArgument, "%s is not the SHA-256 of a file", parley.Quoted(digest, 80))
	} else {
		copy(sum[:], b)
	}
	n := fs.agent.node
	at, err := n.files.sourceOf(ctx, fs.agent, ref, digest, true)
	if err != nil {
		return view.FilePart{}, err
	}
	if at.remote {
		if err := n.files.fetch(ctx, fs.agent, at, sum); err != nil {
			return view.FilePart{}, err
		}
	}
	data, size, err := n.journal.FileAt(ctx, sum, offset)
	if err == nil && size != at.file.Size {
		err = parley.Refuse(parley.FileDamaged, "file %s has %d bytes, and its sender says that it has %d", sum, size, at.file.Size)
	}
	return view.FilePart{File: at.file, Offset: offset, Data: base64.StdEncoding.EncodeToString(data)}, err
}

// fileSource is where the content of a file is.
type fileSource struct {
	file    events.File
	message capabilities.ID
	reader  capabilities.ID // the agent of this node that was sent the message
	from    capabilities.ID // who sent it
	remote  bool            // from is of another node, and the reader has not fetched it
}

// foundFile is what a mailbox knows of a file that a message carries.
type foundFile struct {
	fileSource
	passed bool // by a group
	stored bool // the agent itself has stored or fetched it
}

// sourceOf finds where the content of a file is, by the way on which the message came. An agent that reads for
// itself has what it has stored. What a group has stored is no one's else: a message that names its digest may have come to it from
// another node.
func (s *fileStore) sourceOf(ctx context.Context, a *Agent, ref capabilities.FormRef, digest string, itself bool) (fileSource, error) {
	first, err := read(ctx, a, queryFile{ref, digest})
	if err != nil {
		return fileSource{}, err
	}
	if itself && first.stored {
		return fileSource{file: first.file}, nil
	}
	at := first
	for range longestWay {
		switch {
		case at.from.Node == s.node.id && !at.passed:
			return fileSource{file: first.file}, nil
		case at.from.Node != s.node.id:
			at.file, at.remote = first.file, true
			return at.fileSource, nil
		}
		if at, err = read(ctx, &Agent{node: s.node, id: at.from}, queryFileSource{digest}); err != nil {
			return fileSource{}, err
		}
	}
	return fileSource{}, parley.Refuse(parley.NoSuchFile, "the file %s came through too many groups", parley.Quoted(first.file.Name, 80))
}

// queryFile finds a file that a message carries.
type queryFile struct {
	ref    capabilities.FormRef
	digest string
}

func (m queryFile) handle(b *mailboxActor) (foundFile, error) {
	msg, err := b.state.Mail.Find(m.ref)
	if err != nil {
		return foundFile{}, err
	}
	return findFile(b, msg, m.digest)
}

// queryFileSource finds a file that a group has passed on.
type queryFileSource struct{ digest string }

func (m queryFileSource) handle(b *mailboxActor) (foundFile, error) {
	msg, err := mailbox.ReceivedWith(b.state, m.digest)
	if err != nil {
		return foundFile{}, err
	}
	return findFile(b, msg, m.digest)
}

func findFile(b *mailboxActor, m *mailbox.Message, digest string) (foundFile, error) {
	f, from, err := mailbox.FileOf(b.state, m, digest)
	if err != nil {
		return foundFile{}, err
	}
	return foundFile{
		fileSource: fileSource{file: f, message: m.ID(), reader: b.reg.id, from: from},
		passed:     m.Posted != nil && !m.Posted.Author.IsZero(), stored: b.state.Files.HasStored(digest),
	}, nil
}

// fetch fetches a file from another node, and stores it for the agent that reads it. Callers that want the same wait for one fetch.
func (s *fileStore) fetch(ctx context.Context, a *Agent, at fileSource, digest persistence.FileDigest) error {
	key := fileFetch{a.id, at.from, digest}
	account := s.node.accounts.headOf(a.id)
	s.mu.Lock()
	f := s.fetches[key]
	if f == nil {
		if s.fetching[account] >= fetchesOfOne {
			s.mu.Unlock()
			return parley.Refuse(parley.RateLimited, "%d files are being fetched for this agent: more cannot be at once", fetchesOfOne).WithHint("try again when one is there")
		}
		f = &fetch{done: make(chan struct{})}
		s.fetches[key] = f
		s.fetching[account]++
		s.node.tasks.Go(func() {
			f.err = s.fetchFrom(s.node.life, a, at, digest)
			s.mu.Lock()
			delete(s.fetches, key)
			if s.fetching[account]--; s.fetching[account] == 0 {
				delete(s.fetching, account)
			}
			s.mu.Unlock()
			close(f.done)
		})
	}
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return errEnded(ctx, s.node)
	}
}

// fetchFrom fetches a file piece by piece. A piece that does not come is asked for again for fetchIdle. What has come is checked
// before it is stored.
func (s *fileStore) fetchFrom(ctx context.Context, a *Agent, at fileSource, digest persistence.FileDigest) (err error) {
	if _, err := call(ctx, a, checkStore{at.file.Size}); err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder(), 0o700); err != nil {
		return parley.Refuse(parley.ReadOnly, "the file cannot be written: %v", errors.Unwrap(err))
	}
	f, err := os.CreateTemp(s.folder(), "fetched-")
	if err != nil {
		return parley.Refuse(parley.ReadOnly, "the file cannot be written: %v", errors.Unwrap(err))
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }() // what is wanted of it is stored
	sum := sha256.New()
	for got := int64(0); got < at.file.Size; {
		piece, err := s.fetchPiece(ctx, at, got)
		if err != nil {
			of := ""
			if name, err := a.Names().Of(ctx, at.from); err == nil && name != "" {
				of = " of " + parley.Quoted(name, 80)
			}
			return fmt.Errorf("fetch the file %s%s: %w", parley.Quoted(at.file.Name, 80), of, err)
		}
		if len(piece) == 0 || len(piece) > persistence.MaxFilePiece || got+int64(len(piece)) > at.file.Size {
			return lies(at)
		}
		if _, err := f.WriteAt(piece, got); err != nil {
			return parley.Refuse(parley.ReadOnly, "the file cannot be written: %v", errors.Unwrap(err))
		}
		_, _ = sum.Write(piece) // a hash never fails
		got += int64(len(piece))
	}
	if persistence.FileDigest(sum.Sum(nil)) != digest {
		return lies(at)
	}
	return keepFile(ctx, a, digest, at.file.Size, f)
}

// lies returns the error for a node that has sent other content than that of its message.
func lies(at fileSource) error {
	return parley.Refuse(parley.FileDamaged, "node %s has other content than its message says for the file %s", at.from.Node.Short(), parley.Quoted(at.file.Name, 80))
}

// fetchPiece asks a node for a piece. A node that cannot be reached is asked again.
func (s *fileStore) fetchPiece(ctx context.Context, at fileSource, offset int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchIdle)
	defer cancel()
	want := peers.FilePacket{Message: at.message, From: at.from.ULID, To: at.reader.ULID, Digest: at.file.Digest, Offset: offset}
	for {
		piece, err := s.node.peers.FetchPiece(ctx, at.from.Node, want)
		if code := parley.CodeOf(err); err == nil || code != parley.NodeUnreachable && code != parley.RateLimited || ctx.Err() != nil {
			return piece, err
		}
		select {
		case <-time.After(fetchAgain):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// fetchAgain is the pause before a piece is asked for again.
const fetchAgain = 200 * time.Millisecond

// ServePiece implements peers.Node. Another node gets a piece of a file that an agent of this node has sent it, by the message.
func (n peerNode) ServePiece(ctx context.Context, node capabilities.NodeID, p peers.FilePacket) ([]byte, error) {
	if !n.files.serve(node, 1) {
		return nil, parley.Refuse(parley.RateLimited, "%d pieces are being read for the node", servedOfOneNode)
	}
	defer n.files.serve(node, -1)
	b, err := hex.DecodeString(p.Digest)
	from, to := capabilities.ID{ULID: p.From, Node: n.id}, capabilities.ID{ULID: p.To, Node: node}
	if _, there := n.journal.Mailbox(from); err != nil || len(b) != len(persistence.FileDigest{}) || !there {
		return nil, noSharedFile()
	}
	sender := &Agent{node: n.Node, id: from}
	if _, err := read(ctx, sender, querySentFile{p.Message, to, p.Digest}); err != nil {
		return nil, noSharedFile()
	}
	at, err := n.files.sourceOf(ctx, sender, capabilities.FormID(p.Message), p.Digest, false)
	if err != nil || at.remote { // it is with a third node, and nobody here has read it
		return nil, noSharedFile()
	}
	data, _, err := n.journal.FileAt(ctx, persistence.FileDigest(b), p.Offset)
	return data, err
}

// noSharedFile says nothing of what there is.
func noSharedFile() error {
	return parley.Refuse(parley.NoSuchFile, "the sender's node has no such file in this message")
}

// serve counts the pieces that are read for a node. It reports whether there may be more.
func (s *fileStore) serve(node capabilities.NodeID, more int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if more > 0 && s.serving[node] >= servedOfOneNode {
		return false
	}
	if s.serving[node] += more; s.serving[node] == 0 {
		delete(s.serving, node)
	}
	return true
}

// querySentFile refuses a file that the agent has not sent to another with a message, or an answer.
type querySentFile struct {
	message, to capabilities.ID
	digest      string
}

func (m querySentFile) handle(b *mailboxActor) (none, error) {
	msg, err := b.state.Mail.FindID(m.message)
	if err == nil {
		_, _, err = mailbox.FileOf(b.state, msg, m.digest)
	}
	if err == nil && !mailbox.HasSentFiles(b.state, msg, m.to) {
		err = noSharedFile()
	}
	return none{}, err
}

// sweep drops what agents have stored and nothing refers to, and removes content that no mailbox wants. It returns the number
// of files that it has removed. A mailbox that cannot be read keeps all files.
func (s *fileStore) sweep(ctx context.Context) (removed int, err error) {
	n := s.node
	before := n.o.Clock().Add(-unreferredFor)
	wanted := map[string]bool{}
	for id, m := range n.journal.Mailboxes() {
		if r, err := openNote(m.Note); err == nil && !r.has(noteHasFiles) && !n.registry.isAwake(id) {
			continue
		}
		a := &Agent{node: n, id: id}
		if err := a.do(ctx, mailbox.DropFiles{}); err != nil {
			return 0, err
		}
		all, err := query(ctx, a, func(at *mailbox.State, now capabilities.Time) (all []string, _ error) {
			for d := range mailbox.WantedFiles(at, now) {
				all = append(all, d)
			}
			return all, nil
		})
		if err != nil {
			return 0, err
		}
		for _, d := range all {
			wanted[d] = true
		}
	}
	return n.journal.SweepFiles(ctx, before, func(d persistence.FileDigest) bool { return wanted[d.String()] })
}
