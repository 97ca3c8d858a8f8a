package persistence

import (
	"log/slog"
	"path/filepath"
	"time"

	"parley"
	"parley/capabilities"
)

// Options configure a journal. Folder and Node are required.
type Options struct {
	Folder   string              // the node's state folder, absolute; it must exist
	Node     capabilities.NodeID // whose journal it is
	URL      string              // of an external server; "" embeds one
	Replicas int                 // of the stream on an external server; 1 if zero
	Linger   time.Duration       // how long an idle journal waits for company, at most, before it commits
	Busy     func() bool         // nil, or whether company is to be expected: when not, it does not linger
	MaxFrame int                 // bytes that a commit may gather
	Log      *slog.Logger        // nil discards
	Clock    func() time.Time    // nil is time.Now; commit times never go back even if it does

	// Failpoint, if any, is called before and after each step of the journal, by the names of this
	// package's Step constants with "before " or "after " in front. An error makes the step fail as a
	// disk would: before, nothing was written; after, all was, and the word of it was lost. For tests.
	Failpoint func(step string) error

	answerWithin time.Duration // for the answer to a commit that nothing says will not come
}

// The steps of a journal, as a Failpoint hears of them.
const (
	StepPublish  = "publish"        // storing a commit
	StepSettle   = "settle"         // asking whether a commit in doubt was stored
	StepMark     = "mark"           // writing the high-water mark
	StepSnapshot = "snapshot"       // storing the snapshot of a mailbox
	StepIndex    = "index snapshot" // storing the snapshot of the index
	StepReopen   = "reopen"         // getting the server back
	StepLoad     = "load"           // reading what a mailbox is rebuilt from
)

const (
	defaultLinger   = 100 * time.Microsecond
	defaultMaxFrame = 768 << 10
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
	if o.MaxFrame == 0 {
		o.MaxFrame = defaultMaxFrame
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
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
