package httpd

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"parley/gateway/client"
)

// ListenUnix listens on a Unix socket of mode 0600 at path, and replaces a file that is there. The socket is made in a
// folder that nobody else can enter, and then moved. So others can never open it.
func ListenUnix(path string) (net.Listener, error) {
	nest, err := os.MkdirTemp(filepath.Dir(path), ".socket-")
	if err != nil {
		return nil, fmt.Errorf("make the socket: %w", err)
	}
	defer os.RemoveAll(nest) //nolint:errcheck // an empty folder left behind does no harm
	made := filepath.Join(nest, "s")
	listener, err := bindUnix(made)
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false) // the socket was renamed after it was bound
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("make the socket: %w", err), listener.Close())
	}
	return listener, nil
}

func bindUnix(path string) (*net.UnixListener, error) {
	address, done, err := client.SocketAddress(path)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make the socket: %w", err)
	}
	return l, nil
}
