package actors

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley"
	"parley/actors/keys"
	"parley/capabilities"

	natsserver "github.com/nats-io/nats-server/v2/server"
)

// startSystem runs a NATS server for several nodes and returns its URL.
func startSystem(t *testing.T) string {
	t.Helper()
	srv, err := natsserver.NewServer(&natsserver.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, NoLog: true, NoSigs: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS system does not start")
	}
	t.Cleanup(func() {
		srv.Shutdown()
		srv.WaitForShutdown()
	})
	return srv.ClientURL()
}

func TestStandbyTakesOverLog(t *testing.T) {
	url := startSystem(t)
	first, second := t.TempDir(), t.TempDir()
	n, err := Open(t.Context(), Options{Folder: first, URL: url})
	if err != nil {
		t.Fatal(err)
	}
	asked := ask(t, guest(t, n, "fae"), parley.Form{})
	key, err := os.ReadFile(filepath.Join(first, keys.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(second, 0o700), os.WriteFile(filepath.Join(second, keys.FileName), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	waiting, opened := make(chan struct{}), make(chan *Node)
	go func() {
		n, err := Open(t.Context(), Options{Folder: second, URL: url, Standby: func() { close(waiting) }})
		if err != nil {
			t.Error(err)
		}
		opened <- n
	}()
	<-waiting
	closeNode(t, n)
	n = <-opened
	if n == nil {
		t.FailNow()
	}
	defer closeNode(t, n)
	if m, err := n.Host().Message(t.Context(), capabilities.FormID(asked.Form)); err != nil || !m.AnswerNeeded {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := n.Host().Answer(t.Context(), capabilities.FormID(asked.Form), parley.Answer{Values: text("a", "yes")}); err != nil {
		t.Fatal(err)
	}
}
