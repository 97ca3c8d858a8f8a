package persistence

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"parley"
)

const (
	serverStart = 30 * time.Second
	never       = 100 * 365 * 24 * time.Hour
)

func journalFolder(folder string) string { return filepath.Join(folder, "journal") }

// blockFolder returns the folder of the stream's blocks.
func blockFolder(o *Options) string { return blockFolderOf(o, o.streamName()) }

func blockFolderOf(o *Options, stream string) string {
	return filepath.Join(journalFolder(o.Folder), "jetstream", "$G", "streams", stream, "msgs")
}

// startServer starts a server in this process, without a listener. Acknowledged messages are written but not flushed.
func startServer(o *Options, logger *serverLog) (*natsserver.Server, error) {
	srv, err := natsserver.NewServer(&natsserver.Options{
		ServerName:             "parley-" + o.Node.String(),
		DontListen:             true,
		NoSigs:                 true,
		NoLog:                  true, // serverLog is set below
		DisableJetStreamBanner: true,
		JetStream:              true,
		StoreDir:               journalFolder(o.Folder),
		JetStreamMaxStore:      1 << 50, // the disk is the limit
		JetStreamMaxMemory:     256 << 20,
		SyncInterval:           never, // see flusher
		MaxPayload:             embeddedPayload,
	})
	if err != nil {
		return nil, parley.Refuse(parley.ReadOnly, "the journal's server does not start: %v", err)
	}
	srv.SetLoggerV2(logger, false, false, false)
	srv.Start()
	if last := logger.last.Load(); last != nil || !srv.ReadyForConnections(serverStart) || !srv.JetStreamEnabled() {
		stopServer(srv)
		e := parley.Refuse(parley.ReadOnly, "the journal's server does not start").
			WithHint("see the log; the disk may be full or the folder not writable")
		if last != nil {
			e.Message += ": " + cause(*last).Error()
		}
		return nil, e
	}
	return srv, nil
}

func stopServer(srv *natsserver.Server) {
	srv.Shutdown()
	srv.WaitForShutdown()
}

// serverLog is the log of the embedded server. The server sends no answer to a failed write, and only logs it.
// serverLog calls onFailure then.
type serverLog struct {
	log       *slog.Logger
	stream    string
	onFailure atomic.Pointer[func(error)]
	last      atomic.Pointer[string] // its last failure during the start
}

func (e *serverLog) Noticef(format string, v ...any) { e.log.Debug(e.line(format, v)) }
func (e *serverLog) Debugf(string, ...any)           {}
func (e *serverLog) Tracef(string, ...any)           {}
func (e *serverLog) Warnf(format string, v ...any)   { e.log.Warn(e.line(format, v)) }

func (e *serverLog) Fatalf(format string, v ...any) {
	line := e.line(format, v)
	e.last.Store(&line)
	e.log.Error(line)
}

func (e *serverLog) Errorf(format string, v ...any) {
	line := e.line(format, v)
	e.log.Warn(line)
	onFailure := e.onFailure.Load()
	if onFailure != nil && strings.Contains(line, "failed to store") && strings.Contains(line, e.stream) {
		(*onFailure)(cause(line))
	}
}

// cause returns a short reason for a failed write. The full line has paths, and is only for the log.
func cause(line string) error {
	if strings.Contains(line, "no space left") {
		return errors.New("the disk is full")
	}
	return errors.New("the disk refused it: " + line[strings.LastIndex(line, ": ")+2:])
}

func (e *serverLog) line(format string, v []any) string {
	return "journal's server: " + strings.TrimSpace(fmt.Sprintf(format, v...))
}
