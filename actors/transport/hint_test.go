package transport

import (
	"net"
	"slices"
	"strings"
	"testing"

	"parley"
)

func TestHintsOfListener(t *testing.T) {
	here := openListening(t, Options{})
	if got, want := here.Hints(), []string{"nats://" + here.Address()}; !slices.Equal(got, want) {
		t.Errorf("hints %q, want %q", got, want)
	}
	everywhere := openTransport(t, Options{Listen: ":0"})
	hints := everywhere.Hints()
	list, err := servers(hints)
	must(t, err)
	if len(list) == 0 || len(list) > maxOwnHints || !slices.Equal(list, hints) {
		t.Errorf("hints %q, read as %q", hints, list)
	}
	_, port, err := net.SplitHostPort(everywhere.Address())
	must(t, err)
	must(t, here.Dial(testContext(t), everywhere.me, []string{"tls://localhost:" + port}, ""))
	nowhere := openTransport(t, Options{})
	if nowhere.Hints() != nil || nowhere.Address() != "" {
		t.Errorf("without a listener: %q at %q", nowhere.Hints(), nowhere.Address())
	}
}

func TestInvalidHintsAreRefused(t *testing.T) {
	for _, hint := range []string{"nats://host.example:4222", "tls://10.0.0.1:1", "nats://[2001:db8::1]:65535", "nats://a_b-c:80"} {
		if _, err := servers([]string{hint}); err != nil {
			t.Errorf("%s: %v", hint, err)
		}
	}
	for _, hint := range []string{
		"", "host:4222", "nats://host", "nats://:4222", "nats://host:0", "nats://host:65536", "nats://host:port", "nats://u@host:1",
		"nats://u:p@host:1", "nats://@host:1", "nats://host:1/", "nats://host:1/path", "nats://host:1?a=b", "nats://host:1?", "nats://host:1#f", "nats://host:1#",
		"http://host:1", "ws://host:1", "file:///etc/passwd", "nats://a,nats://b:1", "nats://a:1,b:2", "nats://[fe80::1%25eth0]:1",
		"nats://ho st:1", "nats://h\x00:1", "nats://host:1\n", "nats:host:1", "nats://[::1:1", "nats://" + strings.Repeat("a", 255) + ":1",
	} {
		if list, err := servers([]string{hint}); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%q: read as %q, %v", hint, list, err)
		}
	}
	if _, err := servers(slices.Repeat([]string{"nats://host:1"}, maxHints+1)); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("too many: %v", err)
	}
	if _, err := servers(nil); parley.CodeOf(err) != parley.NodeUnreachable {
		t.Errorf("none: %v", err)
	}
}
