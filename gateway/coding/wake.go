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
	"parley/actors"
	"parley/capabilities"
	"parley/events"
	"parley/internal/regular"
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
	ready := (s.wakes || s.waits > 0) && (!s.works && time.Since(s.woken) >= 0 || time.Since(s.woken) > wakeAgain && time.Since(s.active) > wakeAgain)
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
	file := s.wakes
	if fresh {
		s.seen, s.woken = newest, time.Now()
		select {
		case s.nudge <- struct{}{}:
		default:
		}
	}
	l.mu.Unlock()
	if !fresh || !file {
		return nil
	}
	return l.touch(s)
}

// AwaitWake waits until the session of a process is to be woken, and returns the coding agent's ID of it: "" if ctx ends before. The
// process may serve another session later: which returns the agent of the present one, or nil.
func (l *Sessions) AwaitWake(ctx context.Context, which func() *actors.Agent) string {
	for ctx.Err() == nil {
		if id := awaitWake(ctx, l, which()); id != "" {
			return id
		}
	}
	return ""
}

// awaitWake is AwaitWake for one session, and for a moment.
func awaitWake(ctx context.Context, l *Sessions, agent *actors.Agent) string {
	var nudge chan struct{} // nil never tells
	if agent != nil {
		if s := l.of(agent.ID()); s != nil {
			l.with(func() { s.waits++ })
			defer l.with(func() { s.waits-- })
			l.want(s)
			nudge = s.nudge
		}
	}
	select {
	case <-ctx.Done():
		return ""
	case <-time.After(sweepEvery):
		return ""
	case <-nudge:
	}
	var id string
	if s := l.of(agent.ID()); s != nil {
		l.with(func() { id = s.id })
	}
	return id
}

// waits returns a number that changes with the mail that would wake a session; 0 for none. What has low priority does not, but where
// the session was told of it and nothing came of that. In a time of quiet nothing does; the next sweep after it looks again.
func (l *Sessions) waits(ctx context.Context, s *session) (newest uint64, err error) {
	set, err := actors.AttentionOf(ctx, l.agent(s.address))
	if err != nil || set.IsQuiet {
		return 0, err
	}
	boxes, err := l.boxes(ctx, s)
	if err != nil {
		return 0, err
	}
	for _, box := range boxes {
		waiting, _, err := l.unoffered(ctx, s, box)
		if err != nil {
			return 0, err
		}
		for _, m := range waiting {
			if m.Priority != events.Low {
				newest += m.Number + 1
			}
		}
	}
	for _, id := range []capabilities.ID{s.agent, s.address} {
		offers, err := l.agent(id).Offers(ctx, s.agent)
		if err != nil {
			return 0, err
		}
		for _, o := range offers {
			for _, n := range ignored(l, s, id, o, false, nil) {
				newest += n + 1
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
	f, err := regular.OpenOrCreate(path)
	if err != nil {
		return "", err
	}
	return path, f.Close()
}

func (l *Sessions) wakePath(s *session) string {
	return filepath.Join(l.wakes, s.agent.ULID.String())
}

// hasWakeFile reports whether a session was given a wake file.
func hasWakeFile(l *Sessions, s *session) bool {
	if l.wakes == "" {
		return false
	}
	_, err := os.Lstat(l.wakePath(s))
	return err == nil
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
