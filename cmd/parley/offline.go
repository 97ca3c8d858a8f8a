package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"parley"
	"parley/actors"
	"parley/actors/keys"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/api"
	"parley/persistence"
)

// What is done to a journal while no node runs on it. Whoever does it holds the state folder's lock.

// offlineOptions say which journal stands in the state folder.
func (p *program) offlineOptions() (persistence.Options, error) {
	key, err := keys.Load(p.options.state)
	if errors.Is(err, fs.ErrNotExist) {
		return persistence.Options{}, parley.Refuse(parley.NotRunning, "there is no node in %s", p.options.state).
			WithHint("parley start makes one")
	}
	if err != nil {
		return persistence.Options{}, err
	}
	id, err := keys.NodeOf(key)
	if err != nil {
		return persistence.Options{}, err
	}
	if _, err := os.Stat(filepath.Join(p.options.state, "lease")); err == nil {
		if _, err := os.Stat(filepath.Join(p.options.state, "journal")); errors.Is(err, fs.ErrNotExist) {
			return persistence.Options{}, parley.Refuse(parley.NotRunning, "the journal of this node is in a NATS system, and no node runs here").
				WithHint("start it with --nats as before")
		}
	}
	return persistence.Options{Folder: p.options.state, Node: id, Log: slog.New(slog.DiscardHandler)}, nil
}

// withJournal opens the journal, gives it to use, and closes it.
func (p *program) withJournal(ctx context.Context, use func(*persistence.Journal) error) (err error) {
	o, err := p.offlineOptions()
	if err != nil {
		return err
	}
	l, err := p.lockState()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	journal, err := persistence.Open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close(ctx)) }()
	return use(journal)
}

func (p *program) verifyOffline(ctx context.Context) (api.VerifyResponse, error) {
	var report persistence.Report
	err := p.withJournal(ctx, func(j *persistence.Journal) (err error) {
		report, err = j.Verify(ctx)
		return err
	})
	return gateway.Verified(report), err
}

func (p *program) backupOffline(ctx context.Context, w io.Writer) error {
	return p.withJournal(ctx, func(j *persistence.Journal) error { return j.Backup(ctx, w) })
}

// keySeed gives the text of the node's key.
func (p *program) keySeed() ([]byte, error) {
	seed, err := os.ReadFile(filepath.Join(p.options.state, keys.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, parley.Refuse(parley.NotRunning, "there is no node in %s", p.options.state).WithHint("parley start makes one")
	}
	return seed, err
}

// restoreOffline puts a key and a journal into an empty state folder. The key comes last: a folder with
// half a journal and no key is no node.
func (p *program) restoreOffline(ctx context.Context, seed []byte, journal io.Reader) error {
	aside := filepath.Join(p.options.state, "restore")
	if err := os.Mkdir(aside, 0o700); err != nil {
		return terminal.Unwritable(p.options.state, err)
	}
	defer os.RemoveAll(aside) //nolint:errcheck // what is left has no key in a place that counts
	if err := os.WriteFile(filepath.Join(aside, keys.FileName), seed, 0o600); err != nil {
		return terminal.Unwritable(p.options.state, err)
	}
	key, err := keys.Load(aside)
	if err != nil {
		return err
	}
	id, err := keys.NodeOf(key)
	if err != nil {
		return err
	}
	o := persistence.Options{Folder: p.options.state, Node: id, Log: slog.New(slog.DiscardHandler)}
	if err := persistence.Restore(ctx, o, journal); err != nil {
		return fmt.Errorf("restore the journal: %w", err)
	}
	if err := actors.HoldPrograms(p.options.state); err != nil {
		return terminal.Unwritable(p.options.state, err)
	}
	return install(filepath.Join(aside, keys.FileName), filepath.Join(p.options.state, keys.FileName))
}

// install moves a file to its place and sees to it that both are on disk.
func install(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(from, to)); err != nil {
		return err
	}
	return persistence.SyncFolder(filepath.Dir(to))
}
