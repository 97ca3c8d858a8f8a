package transport

import (
	"net"
	"strings"
	"testing"
)

// FuzzHint reads any text as the address of a node. An address that is taken has a host and a port, and no more.
func FuzzHint(f *testing.F) {
	for _, hint := range []string{"nats://a:1", "tls://[::1]:4222", "nats://u:p@a:1", "nats://a:1?x", "nats://a:0", "nats://a:99999", "http://a:1", "nats://a:1/#", "nats://[fe80::1%25eth0]:1"} {
		f.Add(hint)
	}
	f.Fuzz(func(t *testing.T, hint string) {
		address, ok := readHint(hint)
		if !ok {
			return
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil || host == "" || port == "" || strings.ContainsAny(address, " @/?#\r\n\x00") {
			t.Errorf("%q is taken as %q, %v", hint, address, err)
		}
		if again, ok := readHint("nats://" + address); !ok || again != address {
			t.Errorf("%q is read again as %q, %t", address, again, ok)
		}
	})
}
