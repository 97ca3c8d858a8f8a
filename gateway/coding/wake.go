package coding

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"parley"
	"parley/events"
)

// How often the sessions are looked at that nothing has happened to.
const (
	sweepEvery   = 2 * time.Second
	archiveEvery = 10 * time.Minute
	wakeAgain    = 30 * time.Second // that has not claimed its mail, or works: a person may have interrupted it without a word
)

// Run wakes sessions that have mail, and ends those whose processes are gone, until ctx ends.
func (l *Sessions) Run(ctx context.Context) {
	sweep, archive := time.NewTicker(sweepEvery), time.NewTicker(archiveEvery)
	defer sweep.Stop()
	defer archive.Stop()
	for {
		select {
		case <-ctx.Done():
			l.close()
			return
		case <-l.changed:
			for _, s := range l.take() {
				if err := l.wake(ctx, s); err != nil && ctx.Err() == nil && parley.CodeOf(err) != parley.NotRunning {
					l.log.Warn("a session is not told of its mail", "session", s.agent, "error", err)
				}
			}
		case <-sweep.C:
			l.sweep(ctx)
		case <-archive.C:
			l.archiveEnded(ctx, time.Now().Add(-keepEnded))
		}
	}
}

// wake changes the wake file of a session that has mail for it and nothing to do. One that works asks by itself when it stops.
func (l *Sessions) wake(ctx context.Context, s *session) error {
	l.mu.Lock()
	ready := s.wakes && (!s.works && time.Since(s.woken) >= 0 || time.Since(s.woken) > wakeAgain && time.Since(s.active) > wakeAgain)
	again := time.Since(s.woken) > wakeAgain
	l.mu.Unlock()
	if !ready {
		return nil
	}
	newest, err := l.waits(ctx, s)
	if err != nil || newest == 0 {
		return err
	}
	l.mu.Lock()
	fresh := newest != s.seen || again
	if fresh {
		s.seen, s.woken = newest, time.Now()
	}
	l.mu.Unlock()
	if !fresh {
		return nil
	}
	return l.touch(s)
}

// waits returns a number that changes with the mail that would wake a session; 0 for none. What has low priority does not.
func (l *Sessions) waits(ctx context.Context, s *session) (newest uint64, err error) {
	for _, box := range l.boxes(s) {
		waiting, _, err := box.Unoffered(ctx, s.agent, maxNotice)
		if err != nil {
			return 0, err
		}
		for _, m := range waiting {
			if m.Priority != events.Low {
				newest += m.Number + 1
			}
		}
	}
	return newest, nil
}

// wakeFile returns the path of the wake file of a session, which is made; "" if there are none.
func (l *Sessions) wakeFile(s *session) (string, error) {
	if l.wakes == "" {
		return "", nil
	}
	if err := os.MkdirAll(l.wakes, 0o700); err != nil {
		return "", err
	}
	path := l.wakePath(s)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	return path, f.Close()
}

func (l *Sessions) wakePath(s *session) string {
	return filepath.Join(l.wakes, s.agent.ULID.String())
}

// touch changes the wake file of a session.
func (l *Sessions) touch(s *session) error {
	if l.wakes == "" {
		return nil
	}
	return os.WriteFile(l.wakePath(s), strconv.AppendInt(nil, time.Now().UnixNano(), 10), 0o600)
}

// unwake removes the wake file of a session that has ended.
func (l *Sessions) unwake(s *session) {
	if l.wakes == "" {
		return
	}
	if err := os.Remove(l.wakePath(s)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return // it is as empty as one that is never changed
	}
}
