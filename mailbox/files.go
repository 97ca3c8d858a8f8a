package mailbox

import (
	"maps"
	"slices"
	"time"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/index"
)

// Files are the files of a mailbox: those that its agent has stored, and those that its messages and answers refer to.
//
// The content is kept beside the log, once for all mailboxes. It is wanted while a mailbox refers to it:
//
//	stored                      by the agent, and not dropped. It may attach the file, and the file counts for it
//	in a message                here, sent or received, that is not dismissed, or was dismissed less than 30 days ago
//	in the answer to a form     as in a message
//	in a message for later      until it is sent
//
// What the agent has stored and nothing here has referred to for a week is dropped.
type Files struct {
	stored map[string]storedFile
	refs   map[uint64]*fileRefs // by the number of the message
}

type storedFile struct {
	Size int64
	At   capabilities.Time // when it was stored last
}

// fileRefs are the files of a message.
type fileRefs struct {
	Digests []string
	Until   capabilities.Time // when they are referred to no more; 0 if the message is not dismissed
}

// Bounds of files.
const (
	MaxFiles     = 16       // of a message
	MaxFile      = 32 << 20 // bytes of one
	MaxStored    = 20_000   // that an agent has stored
	unsentFor    = capabilities.Time(7 * 24 * time.Hour / time.Millisecond)
	dismissedFor = capabilities.Time(30 * 24 * time.Hour / time.Millisecond)
)

// CheckFile refuses with INVALID_ARGUMENT or TOO_LARGE a file that no message can carry.
func CheckFile(f events.File) error {
	switch {
	case !form.IsDigest(f.Digest):
		return parley.Refuse(parley.InvalidArgument, "%s is not the SHA-256 of a file", parley.Quoted(f.Digest, 80)).WithHint("store the file first, with store_file")
	case f.Size < 0:
		return parley.Refuse(parley.InvalidArgument, "a file of %d bytes", f.Size)
	case f.Size > MaxFile:
		return parley.Refuse(parley.TooLarge, "a file has %d MiB at most", MaxFile>>20)
	case !form.IsFileName(f.Name):
		return parley.Refuse(parley.InvalidArgument, "%s is no name of a file", parley.Quoted(f.Name, 80)).
			WithHint("a name is one line of at most 255 bytes, without / and \\")
	case !form.IsMediaType(f.Type):
		return parley.Refuse(parley.InvalidArgument, "%s is no media type", parley.Quoted(f.Type, 80)).WithHint("such as text/plain")
	}
	return nil
}

// checkFiles refuses files that no message can carry.
func checkFiles(files []events.File) error {
	if len(files) > MaxFiles {
		return parley.Refuse(parley.TooLarge, "a message carries %d files at most", MaxFiles)
	}
	for _, f := range files {
		if err := CheckFile(f); err != nil {
			return err
		}
	}
	return nil
}

// checkHeld refuses with NO_SUCH_FILE a file that the agent has not stored. Who knows the digest of a file has no right to its
// content: a message that carried it would give the recipient one.
func checkHeld(s *State, files ...events.File) error {
	for _, f := range files {
		if at, ok := s.Files.stored[f.Digest]; !ok || at.Size != f.Size {
			return parley.Refuse(parley.NoSuchFile, "this agent has not stored the file %s", parley.Quoted(f.Name, 80)).
				WithHint("store its content first: parley send --attach FILE, or store_file")
		}
	}
	return nil
}

// checkAnswerFiles refuses with INVALID_ANSWER the files of an answer that the agent has not stored.
func checkAnswerFiles(s *State, fields []events.Field, values map[string]capabilities.Value) error {
	var w parley.FieldErrors
	for i := range fields {
		if form.ControlOf(&fields[i]) != form.File {
			continue
		}
		if f, ok := form.FileIn(values[fields[i].Name]); ok && checkHeld(s, f) != nil {
			w.Add(fields[i].Name, "this agent has not stored the file: store its content first, with store_file")
		}
	}
	return w.Err(parley.InvalidAnswer)
}

// StoreFile records that the agent has stored a file, whose content is on disk. It has no effect but a later time if it is recorded.
type StoreFile struct {
	Digest string
	Size   int64
}

func (c StoreFile) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := s.Profile.checkActive(); err != nil {
		return nil, err
	}
	if err := CheckFile(events.File{Digest: c.Digest, Size: c.Size, Name: "file"}); err != nil {
		return nil, err
	}
	if _, again := s.Files.stored[c.Digest]; !again && len(s.Files.stored) >= MaxStored {
		return nil, parley.Refuse(parley.TooLarge, "an agent keeps %d files at most", MaxStored).WithHint("dismiss messages with files: they are dropped later")
	}
	return []events.Event{&events.FileStored{Digest: c.Digest, Size: c.Size, Date: now}}, nil
}

// DropFiles drops the files that the agent has stored and that nothing here has referred to for a time.
type DropFiles struct{}

func (DropFiles) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	used := map[string]bool{}
	for d := range referred(s, now) {
		used[d] = true
	}
	var gone []string
	for _, d := range slices.Sorted(maps.Keys(s.Files.stored)) {
		if !used[d] && s.Files.stored[d].At+unsentFor < now {
			gone = append(gone, d)
		}
	}
	if len(gone) == 0 {
		return nil, nil
	}
	return []events.Event{&events.FilesDropped{Digests: gone}}, nil
}

// Any reports whether the mailbox refers to files, or did.
func (l *Files) Any() bool {
	return len(l.stored)+len(l.refs) > 0 // what is to be sent later is stored
}

// WantedFiles yields the digests of the files that the mailbox wants to be kept at a time, some of them more than once.
func WantedFiles(s *State, now capabilities.Time) func(yield func(digest string) bool) {
	return func(yield func(string) bool) {
		for d := range s.Files.stored {
			if !yield(d) {
				return
			}
		}
		referred(s, now)(yield)
	}
}

// referred yields the digests that messages, answers and messages for later refer to.
func referred(s *State, now capabilities.Time) func(yield func(digest string) bool) {
	return func(yield func(string) bool) {
		for _, r := range s.Files.refs {
			if r.Until != 0 && r.Until < now {
				continue
			}
			for _, d := range r.Digests {
				if !yield(d) {
					return
				}
			}
		}
		if made := s.Resource.made; made != nil && made.File != nil && !s.Profile.Archived && !yield(made.File.Digest) {
			return
		}
		for _, at := range s.Mail.Schedules.all {
			for _, f := range at.Files {
				if !yield(f.Digest) {
					return
				}
			}
		}
	}
}

// HasStored reports whether the agent has stored a file, or fetched it from another node.
func (l *Files) HasStored(digest string) bool { _, ok := l.stored[digest]; return ok }

// FileOf returns the file of a digest that a message carries: with the message, or in the answer to a form. It returns who has given
// it. It refuses with NO_SUCH_FILE one that the message does not carry.
func FileOf(s *State, m *Message, digest string) (f events.File, from capabilities.ID, err error) {
	for _, f := range m.Files() {
		if f.Digest == digest {
			return f, giverOf(s, m), nil
		}
	}
	return f, from, parley.Refuse(parley.NoSuchFile, "message %d carries no file %s", m.Number, parley.Quoted(digest, 80)).
		WithHint("parley show %d lists what it carries", m.Number)
}

// giverOf returns who has given the files of a message. What the home of a form says of another agent's answer, it has itself.
func giverOf(s *State, m *Message) capabilities.ID {
	f := m.Form
	switch {
	case f == nil:
		return m.Posted.From
	case f.Answered == nil || f.Answered.By == s.ID: // it is the agent's own, and may be queued
		return s.ID
	case s.isRemote(f.From):
		return f.From
	}
	return f.Answered.By
}

// HasSentFiles reports whether the agent has sent the files of a message to another agent: with it, or in the answer to its form.
func HasSentFiles(s *State, m *Message, to capabilities.ID) bool {
	if m.Form != nil {
		return giverOf(s, m) == s.ID && m.Form.From == to
	}
	return m.Posted.From == s.ID && m.Posted.To == to
}

// ReceivedWith returns the newest message from another agent that carries a file. It refuses with NO_SUCH_FILE.
func ReceivedWith(s *State, digest string) (*Message, error) {
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(s.Files.refs))) {
		if !slices.Contains(s.Files.refs[n].Digests, digest) {
			continue
		}
		m, err := s.Mail.at(n)
		if err != nil {
			return nil, err
		}
		if m.Posted != nil && m.From() != s.ID {
			return m, nil
		}
	}
	return nil, parley.Refuse(parley.NoSuchFile, "no message here carries the file %s", digest)
}

// Files returns the files that a message carries, or of a form those of its answer as far as this mailbox has it.
func (m *Message) Files() []events.File {
	if m.Posted != nil {
		return m.Posted.Files
	}
	f := m.Form
	switch {
	case f.Answered != nil && !f.Answered.Withheld:
		return form.FilesIn(f.Fields, f.Answered.Values)
	case f.Queued().Answer != nil:
		return form.FilesIn(f.Fields, f.Queued().Answer.Values)
	}
	return nil
}

// noteFiles notes that the mailbox is about to have files, which its note says.
func noteFiles(f fold) {
	if !f.Files.Any() {
		f.shownChanged()
	}
}

// refer notes the files of a message.
func refer(f fold, number uint64, files []events.File) {
	if len(files) == 0 {
		return
	}
	noteFiles(f)
	l := &f.Files
	if l.refs == nil {
		l.refs = map[uint64]*fileRefs{}
	}
	r := l.refs[number]
	if r == nil {
		r = &fileRefs{}
		l.refs[number] = r
	}
	for _, f := range files {
		if !slices.Contains(r.Digests, f.Digest) {
			r.Digests = append(r.Digests, f.Digest)
		}
	}
}

func (l *Files) dismiss(number uint64, at capabilities.Time) {
	if r := l.refs[number]; r != nil && r.Until == 0 {
		r.Until = at + dismissedFor
	}
}

func (l *Files) undismiss(number uint64) {
	if r := l.refs[number]; r != nil {
		r.Until = 0
	}
}

func (l *Files) store(e *events.FileStored) {
	if l.stored == nil {
		l.stored = map[string]storedFile{}
	}
	l.stored[e.Digest] = storedFile{Size: e.Size, At: e.Date}
}

func (l *Files) drop(e *events.FilesDropped) {
	for _, d := range e.Digests {
		delete(l.stored, d)
	}
}

// referAnswer notes the files of an answer.
func referAnswer(f fold, m *Message) {
	refer(f, m.Number, m.Files())
	if e := f.Mail.Index.entries.At(m.Number); e.Is(index.Dismissed) {
		f.Files.dismiss(m.Number, f.at)
	}
}

type storedSnapshot struct {
	Digest string
	storedFile
}

type refsSnapshot struct {
	Number uint64
	fileRefs
}

type filesSnapshot struct {
	Stored []storedSnapshot
	Refs   []refsSnapshot
}

// snapshot returns nil where there are no files.
func (l *Files) snapshot() *filesSnapshot {
	if len(l.stored)+len(l.refs) == 0 {
		return nil
	}
	img := &filesSnapshot{}
	for _, d := range slices.Sorted(maps.Keys(l.stored)) {
		img.Stored = append(img.Stored, storedSnapshot{d, l.stored[d]})
	}
	for _, n := range slices.Sorted(maps.Keys(l.refs)) {
		img.Refs = append(img.Refs, refsSnapshot{n, *l.refs[n]})
	}
	return img
}

func (l *Files) restore(img *filesSnapshot) {
	if img == nil {
		return
	}
	*l = Files{stored: map[string]storedFile{}, refs: map[uint64]*fileRefs{}}
	for _, s := range img.Stored {
		l.stored[s.Digest] = s.storedFile
	}
	for _, r := range img.Refs {
		l.refs[r.Number] = &r.fileRefs
	}
}
