package projection

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"parley/capabilities"
	"parley/events"
)

// layout is the number of the layout of the file. A file with another one is made again.
const layout = 8

// schema makes the tables. The row of a message has the mailbox's number in its upper 32 bits, and that of the message in
// its lower ones, so the rows of a mailbox are together in every table.
const schema = `
CREATE TABLE mailbox (
	place   INTEGER PRIMARY KEY,
	agent   BLOB NOT NULL UNIQUE,
	version INTEGER NOT NULL, -- of the last event that is in the index
	at      INTEGER NOT NULL  -- the time of that event; 0 if it was passed over
) STRICT;
CREATE TABLE message (
	row       INTEGER PRIMARY KEY,
	id        BLOB NOT NULL,
	kind      TEXT NOT NULL,
	sender    BLOB NOT NULL,
	recipient BLOB NOT NULL,
	thread    BLOB NOT NULL, -- the first message of the thread
	date      INTEGER NOT NULL,
	priority  INTEGER NOT NULL,
	subject   TEXT NOT NULL,
	outcome   TEXT NOT NULL DEFAULT '', -- '' of a message, and of a form that is open
	decider   BLOB NOT NULL DEFAULT x'',
	decided   INTEGER NOT NULL DEFAULT 0,
	verdict   TEXT NOT NULL DEFAULT '', -- allowed or denied, of an approval that was answered
	call      INTEGER NOT NULL DEFAULT 0 -- of an approval that the mailbox's agent asked
) STRICT;
CREATE TABLE call (
	id      INTEGER PRIMARY KEY,
	place   INTEGER NOT NULL,
	key     BLOB NOT NULL, -- of the digest of the next three
	tool    TEXT NOT NULL,
	folder  TEXT NOT NULL,
	input   TEXT NOT NULL, -- '' if it is too long
	asked   INTEGER NOT NULL,
	allowed INTEGER NOT NULL DEFAULT 0,
	denied  INTEGER NOT NULL DEFAULT 0,
	allowed_last INTEGER NOT NULL DEFAULT -1, -- the number of the last approval that was decided so
	denied_last  INTEGER NOT NULL DEFAULT -1
) STRICT;
CREATE UNIQUE INDEX call_key ON call(place, key);
CREATE INDEX call_tool ON call(place, tool, id);
CREATE TABLE rule ( -- and mandates, and the policy with an empty ID
	place   INTEGER NOT NULL,
	id      BLOB NOT NULL,
	allow   INTEGER NOT NULL,
	mandate INTEGER NOT NULL,
	version INTEGER NOT NULL, -- of the event that made it, or changed its end
	PRIMARY KEY (place, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX rule_mandate ON rule(place) WHERE mandate;
CREATE TABLE ruled ( -- calls that were decided without a question
	id      INTEGER PRIMARY KEY,
	place   INTEGER NOT NULL,
	version INTEGER NOT NULL, -- of the event that says so
	last    INTEGER NOT NULL, -- of the last event about the same call
	at      INTEGER NOT NULL,
	rule    BLOB NOT NULL,
	tool    TEXT NOT NULL,
	key     BLOB NOT NULL, -- of the digest of tool and input
	verdict TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX ruled_last ON ruled(place, last);
CREATE INDEX ruled_at ON ruled(at, id);
CREATE VIRTUAL TABLE acted USING fts5(body, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2");
CREATE INDEX message_id ON message(id, row);
CREATE INDEX message_sender ON message(sender, row);
CREATE INDEX message_recipient ON message(recipient, row);
CREATE INDEX message_thread ON message(thread, row);
CREATE INDEX message_tool ON message(subject, row) WHERE kind = 'approval';
CREATE INDEX message_outcome ON message(outcome, row) WHERE outcome <> '';
CREATE INDEX message_decided ON message((row >> 32), decided) WHERE outcome <> '';
CREATE VIRTUAL TABLE asked USING fts5(subject, body, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE answered USING fts5(body, content='', contentless_delete=1, tokenize="unicode61 remove_diacritics 2");
`

// Index is an index in a file. It is safe for concurrent use: searches go on while events are added.
type Index struct {
	path string

	adding sync.Mutex // held by who adds
	use    sync.RWMutex
	db     *sql.DB
}

// Open opens the index in a file, or makes it. The folder has to be there. A file that is no index of this layout is
// replaced. The caller closes it.
func Open(ctx context.Context, path string) (*Index, error) {
	x := &Index{path: path}
	if err := x.open(ctx); err != nil {
		return nil, fmt.Errorf("open the index for searching: %w", err)
	}
	return x, nil
}

// open opens the file, at the second attempt a new one.
func (x *Index) open(ctx context.Context) error {
	err := x.tryOpen(ctx)
	if err == nil || ctx.Err() != nil {
		return err
	}
	if err := x.remove(); err != nil {
		return err
	}
	return x.tryOpen(ctx)
}

var errLayout = errors.New("the file has another layout")

func (x *Index) tryOpen(ctx context.Context) (err error) {
	if at, err := os.Lstat(x.path); err == nil && !at.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", filepath.Base(x.path))
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// One process has the file. So what SQLite shares between connections is on the heap (unix-excl), and not in a file that is mapped: a
	// write to that waits as long as a disk does, where nothing can stop the thread, and a collection of garbage stops all others for it.
	query := url.Values{"vfs": {"unix-excl"}, "_pragma": {"journal_mode(wal)", "synchronous(normal)", "busy_timeout(10000)", "cache_size(-4000)", "trusted_schema(off)"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: x.path}).EscapedPath()+"?"+query.Encode())
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(4)
	defer func() {
		if err != nil {
			_ = db.Close() // the error is told
		}
	}()
	var now int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&now); err != nil {
		return err
	}
	switch now {
	case layout:
	case 0:
		if _, err := db.ExecContext(ctx, fmt.Sprintf("BEGIN; %s PRAGMA user_version = %d; COMMIT", schema, layout)); err != nil {
			return err
		}
		if err := os.Chmod(x.path, 0o600); err != nil {
			return err
		}
	default:
		return errLayout
	}
	x.db = db
	return nil
}

// remove removes the file, and those that SQLite keeps beside it.
func (x *Index) remove() error {
	for _, end := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(x.path + end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Close closes the file.
func (x *Index) Close() error {
	x.use.Lock()
	defer x.use.Unlock()
	return x.db.Close()
}

// Remake empties the index: it is made again from the log.
func (x *Index) Remake(ctx context.Context) error {
	x.adding.Lock()
	defer x.adding.Unlock()
	return x.remake(ctx)
}

func (x *Index) remake(ctx context.Context) error {
	x.use.Lock()
	defer x.use.Unlock()
	_ = x.db.Close() // it may be damaged
	if err := x.remove(); err != nil {
		return err
	}
	return x.open(ctx)
}

// isCorrupt reports whether an error of any statement says that the file is damaged.
func isCorrupt(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && slices.Contains([]int{sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT}, e.Code()&0xff)
}

// isDamage reports whether an error of a statement that is always the same says that the file is damaged.
func isDamage(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_CONSTRAINT:
		return true // a wrong statement is a table that is gone
	}
	return isCorrupt(err)
}

// mended calls fn. If the file turns out to be damaged, it replaces it and calls fn again.
func (x *Index) mended(ctx context.Context, fn func(db *sql.DB) error) error {
	err := x.using(fn)
	if !isDamage(err) {
		return err
	}
	if err := x.remake(ctx); err != nil {
		return err
	}
	return x.using(fn)
}

func (x *Index) using(fn func(db *sql.DB) error) error {
	x.use.RLock()
	defer x.use.RUnlock()
	return fn(x.db)
}

// Mark is the last event of a mailbox that is in the index. The zero Mark is before the first.
type Mark struct {
	Version uint64
	At      capabilities.Time
}

// At returns how far a mailbox is in the index.
func (x *Index) At(ctx context.Context, mailbox capabilities.ID) (m Mark, err error) {
	x.adding.Lock()
	defer x.adding.Unlock()
	err = x.mended(ctx, func(db *sql.DB) error {
		_, m, err = place(ctx, db, mailbox)
		return err
	})
	return m, err
}

// querier is a database or a transaction.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// place returns the number of a mailbox in the index, and how far it is; 0 if it is not there.
func place(ctx context.Context, db querier, mailbox capabilities.ID) (n int64, m Mark, err error) {
	err = db.QueryRowContext(ctx, "SELECT place, version, at FROM mailbox WHERE agent = ?", idBytes(mailbox)).Scan(&n, &m.Version, &m.At)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return n, m, err
}

// idBytes returns the bytes of an ID; none for the zero ID.
func idBytes(id capabilities.ID) []byte {
	if id.IsZero() {
		return []byte{}
	}
	return append(id.ULID[:len(id.ULID):len(id.ULID)], id.Node.Bytes()...)
}

// Forget removes the rows of a mailbox. It is for one whose log is another than the index has.
func (x *Index) Forget(ctx context.Context, mailbox capabilities.ID) error {
	x.adding.Lock()
	defer x.adding.Unlock()
	return x.mended(ctx, func(db *sql.DB) error {
		return inTransaction(ctx, db, func(tx *sql.Tx) error {
			n, _, err := place(ctx, tx, mailbox)
			if err != nil || n == 0 {
				return err
			}
			first, last := n<<32, n<<32|0xffffffff
			for _, table := range []string{"message WHERE row", "asked WHERE rowid", "answered WHERE rowid"} {
				if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" BETWEEN ? AND ?", first, last); err != nil {
					return err
				}
			}
			if _, err := tx.ExecContext(ctx, "DELETE FROM acted WHERE rowid IN (SELECT id FROM ruled WHERE place = ?)", n); err != nil {
				return err
			}
			for _, table := range []string{"call", "ruled", "rule"} {
				if _, err := tx.ExecContext(ctx, "DELETE FROM "+table+" WHERE place = ?", n); err != nil {
					return err
				}
			}
			_, err = tx.ExecContext(ctx, "DELETE FROM mailbox WHERE place = ?", n)
			return err
		})
	})
}

// Skip has the index go on behind events that cannot be read now.
func (x *Index) Skip(ctx context.Context, mailbox capabilities.ID, to Mark) error {
	x.adding.Lock()
	defer x.adding.Unlock()
	return x.mended(ctx, func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "INSERT INTO mailbox (agent, version, at) VALUES (?, ?, ?) ON CONFLICT (agent) DO UPDATE SET version = excluded.version, at = excluded.at",
			idBytes(mailbox), int64(to.Version), int64(to.At))
		return err
	})
}

// Marks returns how far each mailbox is in the index, by the bytes of its ID.
func (x *Index) Marks(ctx context.Context) (versions map[string]uint64, err error) {
	x.adding.Lock()
	defer x.adding.Unlock()
	err = x.mended(ctx, func(db *sql.DB) error {
		versions = map[string]uint64{}
		rows, err := db.QueryContext(ctx, "SELECT agent, version FROM mailbox")
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // Err tells
		for rows.Next() {
			var agent []byte
			var version uint64
			if err := rows.Scan(&agent, &version); err != nil {
				return err
			}
			versions[string(agent)] = version
		}
		return rows.Err()
	})
	return versions, err
}

// Key returns the key of a mailbox in Marks.
func Key(mailbox capabilities.ID) string { return string(idBytes(mailbox)) }

func inTransaction(ctx context.Context, db *sql.DB, fn func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // it has no effect after Commit
	if err := fn(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Add adds the next events of a mailbox, those after At. The first has the version first.
func (x *Index) Add(ctx context.Context, mailbox capabilities.ID, first uint64, next []events.Recorded) error {
	if len(next) == 0 {
		return nil
	}
	x.adding.Lock()
	defer x.adding.Unlock()
	err := x.using(func(db *sql.DB) error {
		return inTransaction(ctx, db, func(tx *sql.Tx) error {
			n, m, err := place(ctx, tx, mailbox)
			if err != nil {
				return err
			}
			if first != m.Version+1 {
				return fmt.Errorf("%w: event %d after %d", ErrOrder, first, m.Version)
			}
			if n == 0 {
				made, err := tx.ExecContext(ctx, "INSERT INTO mailbox (agent, version, at) VALUES (?, 0, 0)", idBytes(mailbox))
				if err != nil {
					return err
				}
				if n, err = made.LastInsertId(); err != nil {
					return err
				}
			}
			a := adder{ctx: ctx, tx: tx, place: n, self: mailbox}
			for i, r := range next {
				a.version = first + uint64(i)
				if err := a.add(r); err != nil {
					return err
				}
			}
			last := next[len(next)-1]
			_, err = tx.ExecContext(ctx, "UPDATE mailbox SET version = ?, at = ? WHERE place = ?", first+uint64(len(next))-1, int64(last.At), n)
			return err
		})
	})
	if isDamage(err) { // the caller begins again
		if again := x.remake(ctx); again != nil {
			return again
		}
		return fmt.Errorf("%w: %w", ErrOrder, err)
	}
	return err
}

// ErrOrder reports events that do not follow those in the index: At says where to go on.
var ErrOrder = errors.New("events do not follow those in the index")
