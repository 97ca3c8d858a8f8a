//go:build !client

package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/actors"
	"parley/actors/keys"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/api"
	"parley/gateway/backend"
	"parley/internal/disk"
	"parley/internal/regular"
	"parley/persistence"
)

func verifyCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Verify the log",
		Long: `Reads the whole log and checks that no commit is missing, damaged or out of place. The running node does
it; where none runs, this program does. Damage is CORRUPT_LOG, with the first bad commit. Then it reads the files that messages
carry: one that has lost a piece is FILE_DAMAGED, by its digest.`,
		Example: "  parley verify",
		RunE: func(c *cobra.Command, _ []string) error {
			found, err := api.Verify.Do(c.Context(), env, api.NodeRequest{Acting: env.acting()})
			if parley.CodeOf(err) == parley.NotRunning {
				found, err = verifyOffline(c.Context(), env)
			}
			if err != nil {
				return err
			}
			if err := env.print(found, func() string { return "ok: " + verified(found) }); err != nil || len(found.Damaged) == 0 {
				return err
			}
			return parley.Refuse(parley.FileDamaged, "%s", terminal.Visible(strings.Join(found.Damaged, "; "))).
				WithHint("the log is whole; to send or store such a file again makes it whole")
		},
	}
}

// verified returns the size of a log, and where its archive takes over.
func verified(found api.VerifyResponse) string {
	text := fmt.Sprintf("%d commits, %d events, %d mailboxes", found.Commits, found.Events, found.Mailboxes)
	if found.Archived > 0 {
		text += fmt.Sprintf(", up to commit %d in the archive", found.Archived)
	}
	if found.Files > 0 || len(found.Damaged) > 0 {
		text += fmt.Sprintf(", %d files", found.Files)
	}
	if len(found.Elsewhere) > 0 {
		text += fmt.Sprintf("\nnot read: %d segments of the archive, which are elsewhere: %v", len(found.Elsewhere), found.Elsewhere)
	}
	if found.Unmarked {
		text += "\nthe file high-water was missing when the log was opened: whether the log had more commits cannot be known"
	}
	return text
}

// checkTime bounds the wait for a node that says who calls.
const checkTime = 10 * time.Second

// checkOutside refuses with NOT_PERMITTED what a coding agent has started. It is for commands that by themselves change or copy
// the node's files, or change the agent's hooks. The running node says who calls, which it does for every operation of the
// host. Where none runs its file says so. Of other nodes it is asked too, since --state is the caller's to choose.
func (env *environment) checkOutside(ctx context.Context, others ...stateFolder) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	asked := map[stateFolder]bool{"": true}
	for _, folder := range append([]stateFolder{env.options.state}, others...) {
		if asked[folder] {
			continue
		}
		asked[folder] = true
		of := *env
		of.options.state = folder
		err := api.ListNodes.Run(ctx, &of, api.ListNodesRequest{Paging: api.Paging{Limit: 1}})
		if parley.CodeOf(err) == parley.NotRunning {
			err = gateway.CheckOutside(folder.coders())
		}
		if err != nil { // a node that cannot say is none that allows
			return err
		}
	}
	return nil
}

func backupCommand(env *environment) *cobra.Command {
	var folder string
	c := &cobra.Command{
		Use:   "backup FILE | --to FOLDER",
		Short: "Back up the node's key and log",
		Long: `Writes the node's key and its whole log to a file, also while the node runs. FILE must not exist yet.
With --to it adds a file with what is new since the last time to a folder; all files there are one backup.
Whoever has the file or the folder can be the node: keep it as safe as the state folder.`,
		Example: "  parley backup parley-2026-01-31.backup\n  parley backup --to /mnt/backups/parley",
		Args: func(c *cobra.Command, args []string) error {
			if folder != "" {
				return exactly()(c, args)
			}
			return exactly("FILE")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := env.checkOutside(c.Context()); err != nil {
				return err
			}
			if folder != "" {
				return backUpTo(c.Context(), env, folder)
			}
			size, err := makeBackup(c.Context(), env, args[0])
			if err != nil {
				return err
			}
			return env.print(map[string]any{"file": args[0], "bytes": size}, func() string {
				return fmt.Sprintf("wrote %s, %d bytes", args[0], size)
			})
		},
	}
	c.Flags().StringVar(&folder, "to", "", "add what is new to this folder")
	return c
}

// backUpTo adds a part with what is new to a folder, which has the node's key too.
func backUpTo(ctx context.Context, env *environment, folder string) error {
	seed, err := keySeed(env)
	if err != nil {
		return err
	}
	key, err := keys.Load(string(env.options.state))
	if err != nil {
		return err
	}
	node, err := keys.NodeOf(key)
	if err != nil {
		return err
	}
	shown := env.progress("backed up", folder)
	defer shown.end()
	if err := persistence.MakeFolder(folder); err != nil {
		return unwritten(folder, err)
	}
	there, err := keys.ReadSeed(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return parley.Refuse(parley.InvalidArgument, "cannot back up to %s: %v", folder, err)
	case !bytes.Equal(there, seed):
		return parley.Refuse(parley.InvalidArgument, "%s has the backup of another node", folder)
	}
	p, err := persistence.AddPart(folder, node, func(after persistence.Mark, to io.Writer) error {
		w := progressWriter{shown, to}
		client := env.client()
		defer client.Close()
		out := counter{w: w}
		err := client.BackupAfter(ctx, after.String(), &out)
		if parley.CodeOf(err) == parley.NotRunning && out.bytes == 0 {
			return withJournal(ctx, env, func(j *persistence.Journal) error { return j.BackupAfter(ctx, after, w) })
		}
		return err
	})
	shown.end()
	if err != nil {
		return unwritten(folder, err)
	}
	if err := writeKey(folder, seed); err != nil {
		return err
	}
	first := p.After.Number + 1
	if p.Path == "" {
		return env.print(map[string]any{"folder": folder, "last": p.Last.Number}, func() string {
			return fmt.Sprintf("nothing is new since commit %d", p.Last.Number)
		})
	}
	return env.print(map[string]any{"folder": folder, "file": p.Path, "bytes": p.Bytes, "first": first, "last": p.Last.Number}, func() string {
		return fmt.Sprintf("wrote %s, %d bytes: commits %d to %d", p.Path, p.Bytes, first, p.Last.Number)
	})
}

// writeKey puts the node's key into a folder, on disk, if it is not there.
func writeKey(folder string, seed []byte) error {
	path := filepath.Join(folder, keys.FileName)
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	f, err := regular.Create(path + ".new")
	if err == nil {
		_, err = f.Write(seed)
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = install(path+".new", path)
	}
	return unwritten(folder, err)
}

// unwritten returns the error of a backup that its own disk refused, or err.
func unwritten(to string, err error) error {
	_, isOf := errors.AsType[*fs.PathError](err)
	if code := parley.CodeOf(err); code != parley.Internal || !isOf {
		return err
	}
	return parley.Refuse(parley.ReadOnly, "the backup cannot be written to %s: %v", to, terminal.Reason(err)).
		WithHint("%s", cmp.Or(disk.Hint(err), "back up to another place"))
}

// counter counts the bytes that are written. Behind some of a backup no other one may follow.
type counter struct {
	w     io.Writer
	bytes int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.bytes += int64(n)
	return n, err
}

func restoreCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE|FOLDER",
		Short: "Restore a node from a backup",
		Long: `Puts the key and the log of a backup into an empty state folder. The node is then the one that it was: do
not run it in two places. It starts no programs until "parley node programs start", whatever is queued for them.`,
		Example: "  parley restore parley-2026-01-31.backup --state ~/.local/state/parley",
		Args:    exactly("FILE|FOLDER"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := env.checkOutside(c.Context()); err != nil {
				return err
			}
			if err := restoreBackup(c.Context(), env, args[0]); err != nil {
				return err
			}
			found, err := verifyOffline(c.Context(), env)
			if err != nil {
				return err
			}
			return env.print(found, func() string {
				return "restored " + verified(found)
			})
		},
	}
}

const (
	keyEntry     = "node.key"
	journalEntry = "journal"
)

// makeBackup writes a backup under another name first, so that the file is there whole or not at all.
func makeBackup(ctx context.Context, env *environment, path string) (size int64, err error) {
	if _, err := os.Lstat(path); err == nil {
		return 0, parley.Refuse(parley.InvalidArgument, "%s exists already", path)
	}
	seed, err := keySeed(env)
	if err != nil {
		return 0, err
	}
	shown := env.progress("backed up", filepath.Dir(path))
	defer shown.end()
	f, err := os.CreateTemp(filepath.Dir(path), ".parley-backup-") // of mode 0600
	if err != nil {
		return 0, parley.Refuse(parley.InvalidArgument, "cannot write %s: %v", path, terminal.Reason(err))
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is gone if all went well
	size, err = writeBackup(f, seed, func(w io.Writer) error { return writeJournal(ctx, env, progressWriter{shown, w}) })
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, fmt.Errorf("backup: %w", unwritten(path, err))
	}
	return size, errors.Join(os.Rename(f.Name(), path), persistence.SyncFolder(filepath.Dir(path)))
}

// writeJournal writes the journal: the node does it, or this process where no node runs.
func writeJournal(ctx context.Context, env *environment, w io.Writer) error {
	client := env.client()
	defer client.Close()
	out := counter{w: w}
	err := client.Backup(ctx, &out)
	if parley.CodeOf(err) == parley.NotRunning && out.bytes == 0 {
		return backupOffline(ctx, env, w)
	}
	return err
}

// writeBackup writes a tar of the key and the journal. The length of the journal is known only after it is written,
// so its header is written twice: GNU headers have one length for every size.
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

// restoreBackup restores a backup into an empty state folder.
func restoreBackup(ctx context.Context, env *environment, path string) (err error) {
	tune()
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return notABackup(fmt.Errorf("%s is neither a file nor a folder", path)) // to open a pipe would wait for its writer
	}
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "cannot read %s: %v", path, terminal.Reason(err))
	}
	f, err := os.Open(path)
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "cannot read %s: %v", path, terminal.Reason(err))
	}
	defer f.Close() //nolint:errcheck // only read from
	l, err := env.options.state.lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	if err := wantEmpty(env); err != nil {
		return err
	}
	defer func() {
		if err != nil { // else the next try, with a good backup, would find the folder not empty
			err = errors.Join(err, env.options.state.clear())
		}
	}()
	if info.IsDir() {
		return restoreFolder(ctx, env, path)
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
	return restoreOffline(ctx, env, seed, archive)
}

// restoreFolder restores the parts in a folder.
func restoreFolder(ctx context.Context, env *environment, folder string) error {
	key, err := keys.Load(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return notABackup(fmt.Errorf("%s has no %s", folder, keys.FileName))
	}
	if parley.CodeOf(err) == parley.Internal {
		return notABackup(err)
	}
	if err != nil {
		return err
	}
	node, err := keys.NodeOf(key)
	if err != nil {
		return err
	}
	seed, err := keys.ReadSeed(folder)
	if err != nil {
		return err
	}
	parts, err := persistence.Parts(folder, node)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return notABackup(fmt.Errorf("%s has no part of one", folder))
	}
	journal, err := persistence.OpenParts(parts, node)
	if err != nil {
		return err
	}
	return errors.Join(restoreOffline(ctx, env, seed, journal), journal.Close())
}

func wantEmpty(env *environment) error {
	there, err := os.ReadDir(string(env.options.state))
	if err != nil {
		return env.options.state.unwritable(err)
	}
	for _, e := range there {
		if name := e.Name(); !isBesideJournal(name) {
			return parley.Refuse(parley.InvalidArgument, "the state folder %s is not empty: it has %s", env.options.state, name).
				WithHint("restore into another with --state")
		}
	}
	return nil
}

// isBesideJournal reports whether a file is there although no node ever was.
func isBesideJournal(name string) bool { return name == lockFile || name == logFile }

// clear removes what a restore that failed has left in a folder that was empty.
func (s stateFolder) clear() error {
	left, err := os.ReadDir(string(s))
	for _, e := range left {
		if !isBesideJournal(e.Name()) {
			err = errors.Join(err, os.RemoveAll(s.in(e.Name())))
		}
	}
	return err
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

// What is done to a journal while no node runs on it. Whoever does it holds the state folder's lock.

// offlineOptions returns the options of the journal in the state folder.
func offlineOptions(env *environment) (persistence.Options, error) {
	key, err := keys.Load(string(env.options.state))
	if errors.Is(err, fs.ErrNotExist) {
		return persistence.Options{}, env.noKey()
	}
	if err != nil {
		return persistence.Options{}, err
	}
	id, err := keys.NodeOf(key)
	if err != nil {
		return persistence.Options{}, err
	}
	if _, err := os.Stat(env.options.state.lease()); err == nil {
		if _, err := os.Stat(env.options.state.journal()); errors.Is(err, fs.ErrNotExist) {
			return persistence.Options{}, parley.Refuse(parley.NotRunning, "the journal of this node is in a NATS system, and no node runs here").
				WithHint("start it with --nats as before")
		}
	}
	return persistence.Options{Folder: string(env.options.state), Node: id, Log: slog.New(slog.DiscardHandler)}, nil
}

// withJournal opens a copy of the journal for a function that reads it. No node may run.
func withJournal(ctx context.Context, env *environment, use func(*persistence.Journal) error) (err error) {
	tune()
	o, err := offlineOptions(env)
	if err != nil {
		return err
	}
	_, locked := env.sayWaiting(func() string {
		return fmt.Sprintf("the lock of the state folder was not taken within %s: the disk of %s hangs", sayAfter, env.options.state)
	})
	l, err := env.options.state.lock() // writes to it
	locked()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	journal, remove, err := persistence.OpenCopy(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, journal.Close(ctx), remove()) }()
	return use(journal)
}

func verifyOffline(ctx context.Context, env *environment) (api.VerifyResponse, error) {
	var report persistence.Report
	err := withJournal(ctx, env, func(j *persistence.Journal) (err error) {
		report, err = j.Verify(ctx)
		return err
	})
	return backend.Verified(report), err
}

func backupOffline(ctx context.Context, env *environment, w io.Writer) error {
	return withJournal(ctx, env, func(j *persistence.Journal) error { return j.Backup(ctx, w) })
}

// keySeed returns the text of the node's key.
func keySeed(env *environment) ([]byte, error) {
	seed, err := keys.ReadSeed(string(env.options.state))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, env.noKey()
	}
	return seed, err
}

// noKey returns the error of a state folder without a key: of a node that has lost it, or of none.
func (env *environment) noKey() error {
	if err := keys.Lost(string(env.options.state)); err != nil {
		return err
	}
	return parley.Refuse(parley.NotRunning, "there is no node in %s", env.options.state).WithHint("parley start makes one")
}

// restoreOffline puts a key and a journal into an empty state folder. It writes the key last: a folder with part of a
// journal and no key is no node.
func restoreOffline(ctx context.Context, env *environment, seed []byte, journal io.Reader) error {
	aside := env.options.state.restore()
	if err := os.Mkdir(aside, 0o700); err != nil {
		return env.options.state.unwritable(err)
	}
	defer os.RemoveAll(aside) //nolint:errcheck // what is left has no key in a place that counts
	if err := os.WriteFile(filepath.Join(aside, keys.FileName), seed, 0o600); err != nil {
		return env.options.state.unwritable(err)
	}
	key, err := keys.Load(aside)
	if err != nil {
		return err
	}
	id, err := keys.NodeOf(key)
	if err != nil {
		return err
	}
	o := persistence.Options{Folder: string(env.options.state), Node: id, Log: slog.New(slog.DiscardHandler)}
	shown := env.progress("restored", string(env.options.state))
	err = persistence.Restore(ctx, o, progressReader{shown, journal})
	shown.end()
	if err != nil {
		return fmt.Errorf("restore the journal: %w", err)
	}
	if err := actors.HoldPrograms(string(env.options.state)); err != nil {
		return env.options.state.unwritable(err)
	}
	return install(filepath.Join(aside, keys.FileName), env.options.state.key())
}

// install moves a file to its place, and syncs the file and both folders.
func install(from, to string) error {
	f, err := os.OpenFile(from, os.O_RDWR, 0) // some systems flush only what can be written
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(from, to)); err != nil {
		return err
	}
	return errors.Join(persistence.SyncFolder(filepath.Dir(to)), persistence.SyncFolder(filepath.Dir(from)))
}
