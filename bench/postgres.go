package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
)

// postgres is a table of questions. Each caller has a connection that asks and answers, and one that listens.
type postgres struct {
	*program
	calls, waits []*pgx.Conn
}

const makeTable = `create table question (
	id bigint generated always as identity primary key, asker int not null, fields jsonb not null, answer jsonb, answered_at timestamptz)`

func startPostgres(ctx context.Context, o options) (_ running, err error) {
	folder := filepath.Join(o.folder, "postgres")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	who, err := unprivileged(o.folder, folder)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	initdb := exec.CommandContext(ctx, postgresTool("initdb"), "-D", data, "-U", "bench", "-A", "trust")
	initdb.SysProcAttr, initdb.Dir = who(), folder
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	cmd := exec.Command(postgresTool("postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "max_connections=300")
	cmd.SysProcAttr, cmd.Dir = who(), folder
	p := &postgres{}
	if p.program, err = startProgram(o, cmd); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	connect := func(ctx context.Context) (*pgx.Conn, error) {
		return pgx.Connect(ctx, "host="+folder+" user=bench dbname=postgres")
	}
	if err := p.ready(ctx, func(ctx context.Context) error {
		c, err := connect(ctx)
		if err != nil {
			return err
		}
		_, err = c.Exec(ctx, makeTable)
		return errors.Join(err, c.Close(ctx))
	}); err != nil {
		return nil, err
	}
	for i := range o.callers {
		call, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		wait, err := connect(ctx)
		if err != nil {
			return nil, err
		}
		if _, err := wait.Exec(ctx, fmt.Sprintf("listen asker_%d", i)); err != nil {
			return nil, err
		}
		p.calls, p.waits = append(p.calls, call), append(p.waits, wait)
	}
	return p, nil
}

func (p *postgres) cycle(ctx context.Context, caller int) error {
	call, wait := p.calls[caller], p.waits[caller]
	fields, err := json.Marshal(question)
	if err != nil {
		return err
	}
	var id int64
	if err := call.QueryRow(ctx, "insert into question (asker, fields) values ($1, $2) returning id", caller, fields).Scan(&id); err != nil {
		return err
	}
	answer, err := json.Marshal(answered)
	if err != nil {
		return err
	}
	batch := &pgx.Batch{} // one transaction
	batch.Queue("update question set answer = $2, answered_at = now() where id = $1 and answer is null", id, answer)
	batch.Queue("select pg_notify($1, $2)", "asker_"+strconv.Itoa(caller), strconv.FormatInt(id, 10))
	if err := call.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if _, err := wait.WaitForNotification(ctx); err != nil {
		return err
	}
	var text []byte
	if err := wait.QueryRow(ctx, "select answer from question where id = $1", id).Scan(&text); err != nil {
		return err
	}
	return wantAnswer(text)
}

func (p *postgres) close() {
	for _, c := range append(p.calls, p.waits...) {
		_ = c.Close(context.Background()) // its server ends next
	}
	p.program.close()
}

// postgresTool returns the path of one of PostgreSQL's programs. Debian has initdb outside the PATH.
func postgresTool(name string) string {
	if found, err := exec.LookPath(name); err == nil {
		return found
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name) // the pattern is good
	if len(found) == 0 {
		return name
	}
	return found[len(found)-1]
}

// unprivileged gives a folder to the user postgres if this process is root's, which PostgreSQL refuses. It returns the
// attributes of a process that runs as that user.
func unprivileged(parent, folder string) (func() *syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return func() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	return func() *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}, errors.Join(os.Chmod(parent, 0o711), os.Chown(folder, uid, gid))
}
