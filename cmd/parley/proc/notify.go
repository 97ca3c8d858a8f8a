package proc

import (
	"net"
	"os"
)

// Notify tells the service manager that started this process of its state, such as READY=1, as systemd's sd_notify does.
// It does nothing where there is none.
func Notify(state string) error {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close() //nolint:errcheck // a datagram has been sent whole or not
	_, err = c.Write([]byte(state))
	return err
}
