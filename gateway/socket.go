package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"parley"
)

// maxSocketPath is what every system takes as a Unix socket's address; Linux has room for 107.
const maxSocketPath = 100

// listenUnix makes a Unix socket of mode 0600 at path. It is made inside a folder that nobody else can
// enter and then moved into place, so that there is no moment at which others could open it, and what
// stood there is replaced in one step.
func listenUnix(path string) (net.Listener, error) {
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
	listener.SetUnlinkOnClose(false) // its name is not what it was bound to
	if err := errors.Join(os.Chmod(made, 0o600), os.Rename(made, path)); err != nil {
		return nil, errors.Join(fmt.Errorf("make the socket: %w", err), listener.Close())
	}
	return listener, nil
}

func bindUnix(path string) (*net.UnixListener, error) {
	address, done, err := socketAddress(path)
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

// dialUnix opens a connection to the Unix socket at path.
func dialUnix(ctx context.Context, path string) (net.Conn, error) {
	address, done, err := socketAddress(path)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", address)
}

// socketAddress gives an address for path that is short enough for a Unix socket: path itself, or its
// folder by way of an open file. The address is good until done is called.
func socketAddress(path string) (address string, done func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	byFile := fmt.Sprintf("/proc/self/fd/%d", folder.Fd())
	if _, err := os.Stat(byFile); err != nil {
		_ = folder.Close() // opened for reading: nothing can be lost
		return "", nil, parley.Refuse(parley.InvalidArgument, "the path of the socket is too long for this system: %s", path).
			WithHint("choose a shorter --state folder")
	}
	return filepath.Join(byFile, filepath.Base(path)), func() { _ = folder.Close() }, nil
}
