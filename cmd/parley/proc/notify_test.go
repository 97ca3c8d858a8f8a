//go:build unix

package proc

import (
	"net"
	"path/filepath"
	"testing"
)

func TestNotifyTellsServiceManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify("READY=1"); err != nil {
		t.Error("without a service manager:", err)
	}
	path := filepath.Join(t.TempDir(), "s")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close() //nolint:errcheck // the test is over
	t.Setenv("NOTIFY_SOCKET", path)
	if err := Notify("READY=1"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 64)
	if n, err := manager.Read(buf); err != nil || string(buf[:n]) != "READY=1" {
		t.Errorf("the manager got %q, %v", buf[:n], err)
	}
}
