package persistence

import (
	"log/slog"
	"path/filepath"
	"time"

	"parley"
	"parley/capabilities"
	"parley/internal/natsauth"
)

// Options configure a journal. Folder and Node are required.
type Options struct {
	Folder   string              // the node's state folder, absolute; it must exist
	Node     capabilities.NodeID // whose journal it is
	URL      string              // of an external server; "" embeds one
	Access   natsauth.Access     // to that server
	Replicas int                 // of the stream on an external server; 1 if zero
	Linger   time.Duration       // the longest time for which appends wait for more while Busy; 1 ms if zero
	Busy     func() bool         // reports whether more appends are likely; nil means never. Its owner calls Push when it ends
	MaxFrame int                 // bytes of a commit at most
	Log      *slog.Logger        // nil discards
	Clock    func() time.Time    // nil is time.Now; commit times never go back even if it does

	// Failpoint, if set, is called before and after each step of the journal. Its argument is "before " or "after "
	// and one of the Step constants. An error makes the step fail as a disk would: before, nothing was written; after,
	// everything was, and the acknowledgement was lost. It is for tests.
	Failpoint func(step string) error

	original      string        // the folder of the journal that this one is a copy of, which is only read; "" if it is none
	answerWithin  time.Duration // for the answer to a commit that may still come
	known         *known        // what a look at a copy of the journal has found; nil without one
	archiveAtOnce int64         // bytes of the journal that one archiving moves, so that it takes no more on disk beside
	archiveLeast  int64         // bytes of the journal that are worth an archive; an eighth of them stays in the stream
	archived      uint64        // the last commit of the archive that is restored
	unsynced      bool          // the embedded server does not flush what it writes
	maxBytes      int64         // limit of the stream; 0 is none. A low one makes its files small, in tests
	listWithin    time.Duration // for listing the snapshots
	freshCommits  uint64        // the newest commits, which are checked before the journal opens
	groupBytes    int           // of the commits of a group

	slow *slowness // of the disk of an embedded server
}

// The steps of a journal, for a Failpoint.
const (
	StepPublish  = "publish"        // storing a commit
	StepSettle   = "settle"         // asking whether a commit in doubt was stored
	StepMark     = "mark"           // writing the high-water mark
	StepSnapshot = "snapshot"       // storing the snapshot of a mailbox
	StepIndex    = "index snapshot" // storing the snapshot of the index
	StepReopen   = "reopen"         // connecting to the server again
	StepLoad     = "load "          // and the ULID of a mailbox: reading its events

	StepFile       = "file"        // storing a file
	StepRemoveFile = "remove file" // removing one

	StepSegment    = "archive segment"    // writing a segment
	StepCheckpoint = "archive checkpoint" // writing a checkpoint
	StepManifest   = "archive manifest"   // writing the manifest
	StepRecorded   = "archive recorded"   // noting in the manifest that the record is durable
	StepCut        = "archive cut"        // removing what is archived from the stream
	StepSweep      = "archive sweep"      // removing an older checkpoint
)

const (
	defaultLinger   = time.Millisecond
	defaultMaxFrame = 768 << 10
	defaultArchived = 256 << 20
	defaultLeast    = 4 << 20
	embeddedPayload = 8 << 20 // the largest message of the embedded server
	frameOverhead   = 4 << 10 // header of the message, frame around the sections
)

func (o Options) withDefaults() (Options, error) {
	switch {
	case !filepath.IsAbs(o.Folder):
		return o, parley.Refuse(parley.InvalidArgument, "the state folder must be absolute, not %q", o.Folder)
	case o.Node == capabilities.NodeID{}:
		return o, parley.Refuse(parley.InvalidArgument, "a journal needs its node's key")
	case o.MaxFrame < 0 || o.MaxFrame > embeddedPayload-frameOverhead:
		return o, parley.Refuse(parley.InvalidArgument, "frames of %d bytes: want at most %d", o.MaxFrame, embeddedPayload-frameOverhead)
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Linger == 0 {
		o.Linger = defaultLinger
	}
	if o.Busy == nil {
		o.Busy = func() bool { return false }
	}
	if o.MaxFrame == 0 {
		o.MaxFrame = defaultMaxFrame
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.slow = newSlowness(o.Log)
	if o.freshCommits == 0 {
		o.freshCommits = defaultFresh
	}
	if o.groupBytes == 0 {
		o.groupBytes = groupBytes
	}
	if o.archiveAtOnce == 0 {
		o.archiveAtOnce = defaultArchived
	}
	if o.archiveLeast == 0 {
		o.archiveLeast = defaultLeast
	}
	if o.listWithin == 0 {
		o.listWithin = listing
	}
	if o.answerWithin == 0 {
		o.answerWithin = commitTimeout
		if o.URL != "" {
			o.answerWithin = remoteTimeout
		}
	}
	return o, nil
}

// step runs a step between its failpoints. An error from before means that do was not called.
func (o *Options) step(name string, do func() error) error {
	if o.Failpoint == nil {
		return do()
	}
	if err := o.Failpoint("before " + name); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return o.Failpoint("after " + name)
}

func (o *Options) streamName() string { return "PARLEY_" + o.Node.String() }
func (o *Options) subject() string    { return "PARLEY." + o.Node.String() }
func (o *Options) bucketName() string { return "PARLEY_SNAP_" + o.Node.String() }
