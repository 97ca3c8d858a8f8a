package persistence

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"parley"
	"parley/internal/eventually"
	"parley/internal/freeport"
)

const (
	childServer = "PARLEY_TEST_SERVER_PORT"
	childFolder = "PARLEY_TEST_SERVER_FOLDER"
)

// serveAsChild runs a NATS server until the process is killed. Ports are its own for clients or, if it is one of a cluster,
// that, its own for servers, and those of all servers.
func serveAsChild(ports, folder string) {
	var all []int
	for _, text := range strings.Fields(ports) {
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		all = append(all, n)
	}
	o := &natsserver.Options{Host: "127.0.0.1", Port: all[0], JetStream: true, StoreDir: folder, SyncAlways: true, NoLog: true}
	if len(all) > 1 {
		o.ServerName = fmt.Sprint("s", all[1])
		o.Cluster = natsserver.ClusterOpts{Name: "parley-test", Host: o.Host, Port: all[1]}
		for _, n := range all[2:] {
			o.Routes = append(o.Routes, &url.URL{Scheme: "nats-route", Host: fmt.Sprintf("%s:%d", o.Host, n)})
		}
	}
	srv, err := natsserver.NewServer(o)
	if err != nil {
		panic(err)
	}
	srv.Start()
	srv.WaitForShutdown()
}

// externalServer is a NATS server in a process of its own.
type externalServer struct {
	port   int
	peers  []int // ports for servers: its own, and those of the whole cluster
	folder string
	cmd    *exec.Cmd
}

func startExternal(t testing.TB) *externalServer {
	t.Helper()
	e := &externalServer{port: freeport.Choose(t, 1)[0], folder: t.TempDir()}
	e.start(t)
	t.Cleanup(func() { e.kill() })
	return e
}

// startServers starts three servers of one cluster, and returns their URLs.
func startServers(t testing.TB) string {
	t.Helper()
	var urls []string
	ports := freeport.Choose(t, 6)
	for i := range 3 {
		e := &externalServer{port: ports[i], peers: append([]int{ports[3+i]}, ports[3:]...), folder: t.TempDir()}
		e.start(t)
		t.Cleanup(func() { e.kill() })
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", e.port))
	}
	return strings.Join(urls, ",")
}

func (e *externalServer) start(t testing.TB) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e.cmd = exec.Command(self)
	e.cmd.Env = append(os.Environ(), childServer+"="+strings.Trim(fmt.Sprint(append([]int{e.port}, e.peers...)), "[]"), childFolder+"="+e.folder)
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually.Holds(t, "the server listens", func() bool {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", e.port), time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// kill ends the server with SIGKILL.
func (e *externalServer) kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

func (e *externalServer) options(t testing.TB) Options {
	o := testOptions(t)
	o.URL = fmt.Sprintf("nats://127.0.0.1:%d", e.port)
	return o
}

func TestJournalReopensAfterServerKill(t *testing.T) {
	e := startExternal(t)
	o := e.options(t)
	var j *Journal
	eventually.Holds(t, "the journal opens", func() (ok bool) { // JetStream starts after the port is open
		var err error
		j, err = Open(t.Context(), o)
		return err == nil
	})
	t.Cleanup(func() { closeJournal(t, j) })
	w := make(writer)
	w.write(t, j, 1, 20)
	e.kill()
	version := w[1]
	pos := j.Append(w.section(t, 1, 1))
	wantCode(t, await(t, j, pos), parley.ReadOnly)
	if !j.Lost(pos) || j.Fenced() {
		t.Fatalf("lost %v, fenced %v", j.Lost(pos), j.Fenced())
	}
	w[1] = version
	e.start(t)
	reopen(t, j)
	w.write(t, j, 1, 20)
	w.check(t, j)
}

func TestServerRestartBetweenCommits(t *testing.T) {
	e := startExternal(t)
	j := openEventually(t, e.options(t))
	w := make(writer)
	w.write(t, j, 1, 5)
	e.kill()
	e.start(t)
	eventually.Holds(t, "the client has reconnected", j.connection().conn.IsConnected)
	pos := j.Append(w.section(t, 1, 1))
	if err := await(t, j, pos); err != nil { // the server may still be reading its files
		w[1]--
		reopen(t, j)
	}
	w.write(t, j, 1, 5)
	w.check(t, j)
}

func openEventually(t testing.TB, o Options) (j *Journal) {
	t.Helper()
	eventually.Holds(t, "the journal opens", func() bool {
		var err error
		j, err = Open(t.Context(), o)
		return err == nil
	})
	t.Cleanup(func() { closeJournal(t, j) })
	return j
}

// reopen retries until the journal is open again.
func reopen(t testing.TB, j *Journal) {
	t.Helper()
	eventually.Holds(t, "the journal works again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := j.Reopen(ctx)
		if err != nil {
			t.Logf("reopen: %v", err)
		}
		return err == nil
	})
}

func TestSecondWriterIsFenced(t *testing.T) {
	e := startExternal(t)
	first := openEventually(t, e.options(t))
	w := make(writer)
	w.write(t, first, 1, 3)
	second := openEventually(t, e.options(t)) // in a folder of its own
	w.write(t, second, 1, 1)
	changed := first.Changed()
	behind := writer{1: 3}
	wantCode(t, await(t, first, first.Append(behind.section(t, 1, 1))), parley.ReadOnly)
	<-changed
	if !first.Fenced() {
		t.Fatalf("not fenced: %v", first.Err())
	}
	wantCode(t, first.Reopen(t.Context()), parley.ReadOnly)
	w.write(t, second, 1, 3)
	w.check(t, second)
}

func TestSecondProcessOfAFolderIsRefused(t *testing.T) {
	o := testOptions(t)
	open(t, o)
	_, err := Open(t.Context(), o)
	wantCode(t, err, parley.AlreadyRunning)
}

// TestJournalWaitsForItsStream opens a journal on a server that does not have it yet, as a server of a cluster may report
// while it starts. The journal was durable, so it is not created again, and it is not lost.
func TestJournalWaitsForItsStream(t *testing.T) {
	testJournalWaits(t, "the server does not have the journal yet", func(*writer, *externalServer, *Journal) string { return t.TempDir() })
}

// TestJournalWaitsForTheEndOfItsStream opens a journal on a server that lacks its newest commits, as one that was just
// elected leader may report, or one that was cut off.
func TestJournalWaitsForTheEndOfItsStream(t *testing.T) {
	testJournalWaits(t, "the server does not have the newest commits yet", func(w *writer, e *externalServer, j *Journal) string {
		earlier := t.TempDir()
		if err := os.CopyFS(earlier, os.DirFS(e.folder)); err != nil {
			t.Fatal(err)
		}
		w.write(t, j, 1, 5)
		return earlier
	})
}

// testJournalWaits has a server begin with another folder, and get the whole one when the journal has warned. behind returns
// the other folder.
func testJournalWaits(t *testing.T, warning string, behind func(*writer, *externalServer, *Journal) string) {
	e := startExternal(t)
	o := e.options(t)
	j := openEventually(t, o)
	w := make(writer)
	w.write(t, j, 1, 5)
	earlier := behind(&w, e, j)
	closeJournal(t, j)
	e.kill()
	whole := e.folder
	e.folder = earlier
	e.start(t)

	opened, looks := make(chan error, 1), make(chan struct{}, 1)
	o.Log = slog.New(warnings{slog.NewTextHandler(t.Output(), nil), func(message string) {
		if message == warning {
			signal(looks)
		}
	}})
	go func() {
		var err error
		j, err = Open(t.Context(), o)
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Fatalf("opened without the whole stream: %v", err)
	case <-looks:
	}
	e.kill()
	e.folder = whole
	e.start(t)
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeJournal(t, j) })
	w.check(t, j)
}

// warnings is a handler that also calls fn with each message.
type warnings struct {
	slog.Handler
	fn func(message string)
}

func (w warnings) Handle(ctx context.Context, r slog.Record) error {
	w.fn(r.Message)
	return w.Handler.Handle(ctx, r)
}
