package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"parley"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/persistence"
)

func (p *program) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read the whole log and say whether it is whole",
		Long: `Reads the whole log and checks that no commit is missing, damaged or out of place. The running node does
it; where none runs, this program does. Damage is CORRUPT_LOG, with the first bad commit.`,
		Example: "  parley verify",
		RunE: func(c *cobra.Command, _ []string) error {
			var found api.VerifyResponse
			err := p.call(c.Context(), "verify", api.NodeRequest{Acting: p.acting()}, &found)
			if parley.CodeOf(err) == parley.NotRunning {
				found, err = p.verifyOffline(c.Context())
			}
			if err != nil {
				return err
			}
			return p.say(found, func() string {
				return fmt.Sprintf("ok: %d commits, %d events, %d mailboxes", found.Commits, found.Events, found.Mailboxes)
			})
		},
	}
}

func (p *program) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the node's key and log to a file",
		Long: `Writes the node's key and its whole log to a file, also while the node runs. FILE must not exist yet.
Whoever has the file can be the node: keep it as safe as the state folder.`,
		Example: "  parley backup parley-2026-01-31.backup",
		Args:    p.exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			size, err := p.backup(c.Context(), args[0])
			if err != nil {
				return err
			}
			return p.say(map[string]any{"file": args[0], "bytes": size}, func() string {
				return fmt.Sprintf("wrote %s, %d bytes", args[0], size)
			})
		},
	}
}

func (p *program) restoreCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Make a node again from a backup",
		Long: `Puts the key and the log of a backup into an empty state folder. The node is then the one that it was: do
not run it in two places. It starts no programs until "parley programs start", whatever is queued for them.`,
		Example: "  parley restore parley-2026-01-31.backup --state ~/.local/state/parley",
		Args:    p.exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := p.restore(c.Context(), args[0]); err != nil {
				return err
			}
			found, err := p.verifyOffline(c.Context())
			if err != nil {
				return err
			}
			return p.say(found, func() string {
				return fmt.Sprintf("restored %d commits, %d events, %d mailboxes", found.Commits, found.Events, found.Mailboxes)
			})
		},
	}
}

const (
	keyEntry     = "node.key"
	journalEntry = "journal"
)

// backup writes the file under another name first: it is there whole or not at all.
func (p *program) backup(ctx context.Context, path string) (size int64, err error) {
	if _, err := os.Lstat(path); err == nil {
		return 0, parley.Refuse(parley.InvalidArgument, "%s exists already", path)
	}
	seed, err := p.keySeed()
	if err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".parley-backup-") // of mode 0600
	if err != nil {
		return 0, parley.Refuse(parley.InvalidArgument, "cannot write %s: %v", path, terminal.Reason(err))
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is gone if all went well
	size, err = writeBackup(f, seed, func(w io.Writer) error { return p.writeJournal(ctx, w) })
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return 0, fmt.Errorf("backup: %w", err)
	}
	return size, errors.Join(os.Rename(f.Name(), path), persistence.SyncFolder(filepath.Dir(path)))
}

// writeJournal has the journal written by the node, or from its folder where none runs.
func (p *program) writeJournal(ctx context.Context, w io.Writer) error {
	client := p.client()
	defer client.Close()
	err := client.Backup(ctx, w)
	if parley.CodeOf(err) == parley.NotRunning {
		return p.backupOffline(ctx, w)
	}
	return err
}

// writeBackup writes a tar of the key and the journal. How long the journal is, is known only once it is
// written, so that its header is written twice: GNU headers have one length whatever the size.
func writeBackup(f *os.File, seed []byte, journal func(io.Writer) error) (int64, error) {
	w := tar.NewWriter(f)
	key := &tar.Header{Name: keyEntry, Mode: 0o600, Size: int64(len(seed)), Format: tar.FormatGNU}
	if err := w.WriteHeader(key); err != nil {
		return 0, err
	}
	if _, err := w.Write(seed); err != nil {
		return 0, err
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	header, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	const block = 512
	start := header + block
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return 0, err
	}
	if err := journal(f); err != nil {
		return 0, err
	}
	end, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	if _, err := f.Seek(header, io.SeekStart); err != nil {
		return 0, err
	}
	err = w.WriteHeader(&tar.Header{Name: journalEntry, Mode: 0o600, Size: end - start, Format: tar.FormatGNU})
	if err != nil {
		return 0, err
	}
	size := (end+block-1)/block*block + 2*block // the end of a tar is two empty blocks
	return size, f.Truncate(size)
}

// restore wants a state folder in which there is nothing.
func (p *program) restore(ctx context.Context, path string) (err error) {
	f, err := os.Open(path)
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "cannot read %s: %v", path, terminal.Reason(err))
	}
	defer f.Close() //nolint:errcheck // only read from
	l, err := p.lockState()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	if err := p.wantEmpty(); err != nil {
		return err
	}
	archive := tar.NewReader(f)
	if err := entryOf(archive, keyEntry); err != nil {
		return err
	}
	seed, err := io.ReadAll(io.LimitReader(archive, 4<<10))
	if err != nil {
		return notABackup(err)
	}
	if err := entryOf(archive, journalEntry); err != nil {
		return err
	}
	return p.restoreOffline(ctx, seed, archive)
}

func (p *program) wantEmpty() error {
	there, err := os.ReadDir(p.options.state)
	if err != nil {
		return terminal.Unwritable(p.options.state, err)
	}
	for _, e := range there {
		if name := e.Name(); name != lockFile && name != logFile {
			return parley.Refuse(parley.InvalidArgument, "the state folder %s is not empty: it has %s", p.options.state, name).
				WithHint("restore into another with --state")
		}
	}
	return nil
}

func entryOf(archive *tar.Reader, name string) error {
	h, err := archive.Next()
	if err != nil {
		return notABackup(err)
	}
	if h.Name != name {
		return notABackup(fmt.Errorf("it has %.40q where %s should be", h.Name, name))
	}
	return nil
}

func notABackup(err error) error {
	return parley.Refuse(parley.InvalidArgument, "this is no backup of a node: %v", err)
}
