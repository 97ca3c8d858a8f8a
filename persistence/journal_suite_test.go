package persistence_test

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/internal/eventually"
	"parley/persistence"
	"parley/persistence/journaltest"
)

// storedLog is a log of a server. A failpoint makes its storage fail.
type storedLog struct {
	options persistence.Options
	rival   string // folder of a second writer
	mode    atomic.Int64
}

func newStoredLog(t *testing.T, url string) *storedLog {
	l := &storedLog{rival: t.TempDir()}
	l.options = persistence.Options{Folder: t.TempDir(), Node: journaltest.Node(), URL: url, Failpoint: l.step}
	if url == "" {
		l.rival = l.options.Folder
	}
	return l
}

func (l *storedLog) step(step string) error {
	mode := journaltest.Mode(l.mode.Load())
	switch {
	case mode == journaltest.Works:
		return nil
	case mode == journaltest.Refuses && step == "before "+persistence.StepPublish,
		mode == journaltest.InDoubt && (step == "after "+persistence.StepPublish || step == "before "+persistence.StepSettle):
		return errors.New("no space left on device, for the test")
	}
	return nil
}

func (l *storedLog) Set(m journaltest.Mode) { l.mode.Store(int64(m)) }

func (l *storedLog) Open(ctx context.Context) (journaltest.Journal, error) {
	return persistence.Open(ctx, l.options)
}

// OpenRival opens a second journal: of another process in the same folder, or on the same server.
func (l *storedLog) OpenRival(ctx context.Context) (journaltest.Journal, error) {
	o := l.options
	o.Folder = l.rival
	j, err := persistence.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return j, nil
}

func TestEmbeddedJournalConforms(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journaltest.Log { return newStoredLog(t, "") })
}

func TestExternalJournalConforms(t *testing.T) {
	journaltest.Run(t, func(t *testing.T) journaltest.Log { return newStoredLog(t, persistence.StartExternal(t)) })
}

// clusterEnv has TestClusterJournalConforms run, which takes longer than others.
const clusterEnv = "PARLEY_CLUSTER_JOURNAL"

// TestClusterJournalConforms runs the suite on three servers, which begin without streams each time.
func TestClusterJournalConforms(t *testing.T) {
	if os.Getenv(clusterEnv) == "" {
		t.Skip(clusterEnv + " is not set")
	}
	urls := persistence.StartServers(t)
	c, err := nats.Connect(urls, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	js, err := jetstream.New(c, jetstream.WithDefaultTimeout(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the cluster keeps streams", func() bool {
		_, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "READY", Replicas: 3})
		return err == nil
	})
	journaltest.Run(t, func(t *testing.T) journaltest.Log {
		t.Cleanup(func() { removeStreams(t, js) })
		l := newStoredLog(t, urls)
		l.options.Replicas = 3
		return l
	})
}

// removeStreams removes all streams of a cluster.
func removeStreams(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	eventually.Holds(t, "the cluster has no streams", func() bool {
		names := js.StreamNames(context.Background())
		left := 0
		for name := range names.Name() {
			if js.DeleteStream(context.Background(), name) != nil {
				left++
			}
		}
		return names.Err() == nil && left == 0
	})
}
