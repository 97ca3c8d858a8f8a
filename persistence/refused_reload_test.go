package persistence

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley"
	"parley/internal/eventually"
	"parley/internal/freeport"
)

// refusingServer is a NATS server with accounts, whose configuration changes while it runs.
type refusingServer struct {
	*natsserver.Server
	port           int
	folder, config string
	password       string // of the user node; "" for right
}

// documented are the subjects that docs/nats.md gives the user of a node.
const documented = `"$JS.API.>", "$JS.ACK.>", "PARLEY.>", "$KV.>", "$O.>", "parley.node.>", "_INBOX.>"`

// configure has the server give the user node subjects and its account's JetStream, which may be none.
func (s *refusingServer) configure(t *testing.T, subjects, jetStream string) {
	t.Helper()
	text := fmt.Sprintf(`
listen: 127.0.0.1:%d
jetstream { store_dir: %q, sync_interval: always }
accounts {
  NODES { %s, users: [ { user: node, password: %s, permissions: { publish: [ %s ], subscribe: [ %s ] } }, { user: keeper, password: keeper } ] }
  SYSTEM { users: [ { user: system, password: system } ] }
}
system_account: SYSTEM
`, s.port, s.folder, jetStream, cmp.Or(s.password, "right"), subjects, subjects)
	if err := os.WriteFile(s.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.Server != nil {
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *refusingServer) url(password string) string {
	return fmt.Sprintf("nats://node:%s@127.0.0.1:%d", password, s.port)
}

// plenty is a JetStream that a node does not fill.
const plenty = "jetstream: { max_file: 1GB, max_streams: 20 }"

func startRefusing(t *testing.T) *refusingServer {
	t.Helper()
	s := &refusingServer{port: freeport.Choose(t, 1)[0], folder: t.TempDir(), config: filepath.Join(t.TempDir(), "nats.conf")}
	s.configure(t, documented, plenty)
	options, err := natsserver.ProcessConfigFile(s.config)
	if err != nil {
		t.Fatal(err)
	}
	options.NoLog, options.NoSigs = true, true
	if s.Server, err = natsserver.NewServer(options); err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// TestLeaseOutlivesARefusal has a server refuse the user of a node until its lease has expired. When the user is let in again, the node has its lease
// again too, or a standby would take it over while it works.
func TestLeaseOutlivesARefusal(t *testing.T) {
	s := startRefusing(t)
	o := testOptions(t)
	o.URL = s.url("right")
	var l *Lease
	eventually.Holds(t, "the lease is there", func() (held bool) {
		var err error
		l, err = AcquireLease(t.Context(), o, nil)
		return err == nil
	})
	defer l.Close(t.Context()) //nolint:errcheck // the server may be gone
	conn, err := nats.Connect(strings.Replace(s.url("keeper"), "node:", "keeper:", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	isHeld := func() bool {
		kv, err := js.KeyValue(t.Context(), o.streamName()+"_lease")
		if err != nil {
			return false
		}
		held, err := kv.Get(t.Context(), leaseKey)
		return err == nil && string(held.Value()) == l.holder
	}
	if !isHeld() {
		t.Fatal("nobody has the lease")
	}
	s.password = "other"
	s.configure(t, documented, plenty)
	eventually.Holds(t, "the lease expires", func() bool { return !isHeld() })
	s.password = "right"
	s.configure(t, documented, plenty)
	eventually.Within(t, 30*time.Second, "the lease is held again", isHeld)
}

// TestIdleJournalOutlivesARefusal has a server refuse the user of a node that writes nothing meanwhile. The first write after that is stored.
func TestIdleJournalOutlivesARefusal(t *testing.T) {
	s := startRefusing(t)
	o := testOptions(t)
	o.URL = s.url("right")
	j, w := openEventually(t, o), make(writer)
	w.write(t, j, 1, 1)
	conn := j.connection().conn
	s.password = "other"
	s.configure(t, documented, plenty)
	eventually.Holds(t, "the journal is refused", func() bool { return errors.Is(conn.LastError(), nats.ErrAuthorization) })
	s.password = "right"
	s.configure(t, documented, plenty)
	eventually.Within(t, 30*time.Second, "the journal is connected again", func() bool { return j.connection().conn.IsConnected() })
	w.write(t, j, 1, 1)
	closeJournal(t, j)
}

// TestServerThatRefusesANodeSaysWhy has an account of a NATS system refuse a node in each way that accounts have. The documented subjects are enough. Each
// refusal names itself and says what to do, nothing acknowledged is lost, and the journal goes on by itself when it is taken back.
func TestServerThatRefusesANodeSaysWhy(t *testing.T) {
	const none = "exports: []"
	s := startRefusing(t)
	says := func(what string, err error, hint string) {
		t.Helper()
		e := wantCode(t, err, parley.ReadOnly)
		if !strings.Contains(e.Message, what) || !strings.Contains(e.Hint, hint) {
			t.Errorf("%q, and not %q; the hint is %q, and not %q", e.Message, what, e.Hint, hint)
		}
	}

	o := testOptions(t)
	o.URL = s.url("wrong")
	_, err := Open(t.Context(), o)
	says("the server refuses the node: nats: Authorization Violation", err, "--nats-creds or --nats-nkey")
	o.URL = s.url("right")
	j, w := openEventually(t, o), make(writer)
	w.write(t, j, 1, 1)
	goesOn := func(acknowledged uint64) {
		t.Helper()
		s.configure(t, documented, plenty)
		eventually.Holds(t, "the journal goes on", func() bool { return j.Reopen(t.Context()) == nil })
		if m, ok := j.Mailbox(mailboxID(1)); !ok || m.Version < acknowledged {
			t.Errorf("version %d of %d", m.Version, acknowledged)
		} else {
			w[1] = m.Version
		}
		w.write(t, j, 1, 1)
	}
	for _, c := range []struct{ subjects, jetStream, says, hint string }{
		{strings.Replace(documented, `"PARLEY.>", `, "", 1), plenty, "permissions violation", "docs/nats.md"},
		{documented, "jetstream: { max_file: 1KB, max_streams: 20 }", "resource limits exceeded", "limits of its JetStream"},
		{documented, none, "no such journal", "takes mail again"},
	} {
		acknowledged := w[1]
		s.configure(t, c.subjects, c.jetStream)
		says(c.says, await(t, j, j.Append(w.section(t, 1, 1))), "")
		says(c.says, j.Err(), c.hint)
		goesOn(acknowledged)
	}
	closeJournal(t, j)
	w.check(t, openEventually(t, o))
}
