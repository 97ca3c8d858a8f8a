package persistence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"parley"
	"parley/internal/eventually"
	"parley/internal/freeport"
)

// refusingServer is a NATS server with accounts, whose configuration changes while it runs.
type refusingServer struct {
	*natsserver.Server
	port           int
	folder, config string
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
  NODES { %s, users: [ { user: node, password: right, permissions: { publish: [ %s ], subscribe: [ %s ] } } ] }
  SYSTEM { users: [ { user: system, password: system } ] }
}
system_account: SYSTEM
`, s.port, s.folder, jetStream, subjects, subjects)
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

// TestServerThatRefusesANodeSaysWhy has an account of a NATS system refuse a node in each way that accounts have. The documented subjects are enough. Each
// refusal names itself and says what to do, nothing acknowledged is lost, and the journal goes on by itself when it is taken back.
func TestServerThatRefusesANodeSaysWhy(t *testing.T) {
	const plenty, none = "jetstream: { max_file: 1GB, max_streams: 20 }", "exports: []"
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
	says := func(what string, err error, hint string) {
		t.Helper()
		e := wantCode(t, err, parley.ReadOnly)
		if !strings.Contains(e.Message, what) || !strings.Contains(e.Hint, hint) {
			t.Errorf("%q, and not %q; the hint is %q, and not %q", e.Message, what, e.Hint, hint)
		}
	}

	o := testOptions(t)
	o.URL = s.url("wrong")
	_, err = Open(t.Context(), o)
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
