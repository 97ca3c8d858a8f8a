package transport

import (
	"os"
	"path/filepath"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"parley"
	"parley/internal/eventually"
	"parley/internal/natsauth"
)

func TestHubWithNKey(t *testing.T) {
	t.Parallel()
	key, err := nkeys.CreateUser()
	must(t, err)
	public, err := key.PublicKey()
	must(t, err)
	seed, err := key.Seed()
	must(t, err)
	file := filepath.Join(t.TempDir(), "user.nk")
	must(t, os.WriteFile(file, seed, 0o600))
	url := openHubWith(t, &natsserver.Options{Nkeys: []*natsserver.NkeyUser{{Nkey: public}}})
	a := openTransport(t, Options{Hub: url, Access: natsauth.Access{NKey: file}})
	b := openTransport(t, Options{Hub: url, Access: natsauth.Access{NKey: file}})
	eventually.Holds(t, "both are at the hub", func() bool { return a.hub.connected() && b.hub.connected() })
	mustCall(t, a, b, "hello")
	if w, err := Open(testContext(t), Options{Identity: newIdentity(t), Receive: echo, Hub: url, Access: natsauth.Access{NKey: file + "x"}}); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("%v %v", w, err)
	}
}
