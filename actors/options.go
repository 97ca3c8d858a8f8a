package actors

import (
	"log/slog"
	"os"
	"time"

	"parley/actors/runtime"
	"parley/persistence"
)

// Options say how a node is to run. Only Folder is needed.
type Options struct {
	Folder   string        // the state folder: key, journal, high-water mark
	Name     string        // the node's display name; default: the host's name
	URL      string        // NATS system to keep the journal on; default: embedded
	Replicas int           // of the journal on that NATS system; default 1
	Peers    string        // address on which other nodes reach this one; default: none
	Public   string        // address that they are told instead, where the way there leads through another
	Unproved int           // connections from one address to Peers that have not proved a node's key; default 128
	Log      *slog.Logger  // default: nothing is logged
	Idle     time.Duration // a mailbox not used for so long is put to rest; default 30 s
	Runs     int           // programs of agents that may run at once; default 256

	Quotas     map[string]int64 // of each agent, by name, where they differ from mailbox.AgentQuotas; -1 is none
	PeerQuotas map[string]int64 // of each other node, where they differ from mailbox.PeerQuotas
	Programs   ProgramDefaults  // what holds for all of them
	TakeOver   bool             // the process is the node's alone: what programs leave behind becomes its own, and is ended

	// Standby, if any, is called when, with a URL, the node runs in another process: Open waits until that ends.
	Standby func()

	Clock     func() time.Time        // default time.Now
	Failpoint func(step string) error // for tests: see persistence.Options
}

// ProgramDefaults hold for all programs of a node.
type ProgramDefaults = runtime.Defaults

const (
	defaultIdle      = 30 * time.Second
	defaultRuns      = 256
	maxLoading       = 4        // mailboxes that are read from the log at once, at a start too
	maxTaking        = 8 << 20  // bytes of packets of one other node that are being taken in
	maxQueuedMailbox = 4096     // calls waiting for one mailbox
	maxQueuedNode    = 65536    // calls waiting in all
	maxBacklog       = 64 << 20 // bytes appended and not yet durable
	maxSectionBytes  = 700 << 10
	snapshotEvents   = 2000 // at least so many events between snapshots of a mailbox: reading fewer takes some 40 ms
)

func (o Options) withDefaults() Options {
	if o.Name == "" {
		o.Name, _ = os.Hostname() // a node without a name is still a node
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Idle <= 0 {
		o.Idle = defaultIdle
	}
	if o.Runs <= 0 {
		o.Runs = defaultRuns
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}

func (o Options) journal() persistence.Options {
	return persistence.Options{
		Folder: o.Folder, URL: o.URL, Replicas: o.Replicas, Log: o.Log, Clock: o.Clock, Failpoint: o.Failpoint,
	}
}
