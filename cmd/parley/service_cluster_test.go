package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"parley/internal/eventually"
	"parley/internal/freeport"
)

// natsCluster is a NATS cluster of three whose accounts an operator has signed.
type natsCluster struct {
	servers           []*natsserver.Server
	urls              string
	operator, account nkeys.KeyPair
	accountKey        string
	claims            *jwt.AccountClaims
}

func signed(t *testing.T, c jwt.Claims, by nkeys.KeyPair) string {
	t.Helper()
	text, err := c.Encode(by)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// runCluster runs three servers with JetStream, which speak TLS with those who have a certificate of the authority.
func runCluster(t *testing.T, ca *authority) *natsCluster {
	t.Helper()
	c := &natsCluster{}
	var operatorKey, systemKey string
	c.operator, operatorKey, _ = newKey(t, nkeys.CreateOperator)
	c.account, c.accountKey, _ = newKey(t, nkeys.CreateAccount)
	_, systemKey, _ = newKey(t, nkeys.CreateAccount)
	trusted, err := jwt.DecodeOperatorClaims(signed(t, jwt.NewOperatorClaims(operatorKey), c.operator))
	if err != nil {
		t.Fatal(err)
	}
	c.claims = jwt.NewAccountClaims(c.accountKey)
	c.claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: 1 << 30, MemoryStorage: 1 << 20, Streams: 20, Consumer: 100}
	accounts := &natsserver.MemAccResolver{}
	for key, claims := range map[string]*jwt.AccountClaims{c.accountKey: c.claims, systemKey: jwt.NewAccountClaims(systemKey)} {
		if err := accounts.Store(key, signed(t, claims, c.operator)); err != nil {
			t.Fatal(err)
		}
	}
	ports := freeport.Choose(t, 6)
	var routes []*url.URL
	for _, port := range ports[3:] {
		routes = append(routes, &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	var urls []string
	for i := range 3 {
		o := &natsserver.Options{
			ServerName: fmt.Sprintf("s%d", i), Host: "127.0.0.1", Port: ports[i], NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
			TrustedOperators: []*jwt.OperatorClaims{trusted}, AccountResolver: accounts, SystemAccount: systemKey, Routes: routes,
			Cluster: natsserver.ClusterOpts{Name: "nodes", Host: "127.0.0.1", Port: ports[3+i]},
		}
		o.TLSConfig, o.TLSVerify, o.TLSTimeout, o.AuthTimeout = ca.serverTLS(t), true, 30, 30
		s, err := natsserver.NewServer(o)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		c.servers = append(c.servers, s)
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", ports[i]))
	}
	c.urls = strings.Join(urls, ",")
	eventually.Holds(t, "the cluster has a leader", func() bool {
		for _, s := range c.servers {
			if s.JetStreamIsLeader() {
				return true
			}
		}
		return false
	})
	return c
}

// user writes the credentials of a user that may do what docs/nats.md says that the user of --nats needs.
func (c *natsCluster) user(t *testing.T, file string, change func(*jwt.UserClaims)) (public string) {
	t.Helper()
	_, public, seed := newKey(t, nkeys.CreateUser)
	claims := jwt.NewUserClaims(public)
	all := journalPermissions().Publish.Allow
	claims.Pub.Allow.Add(all...)
	claims.Sub.Allow.Add(all...)
	if change != nil {
		change(claims)
	}
	creds, err := jwt.FormatUserConfig(signed(t, claims, c.account), seed)
	if err != nil {
		t.Fatal(err)
	}
	writeSecret(t, file, creds)
	return public
}

// update has each server of the cluster take the claims of the account as they are now.
func (c *natsCluster) update(t *testing.T) {
	t.Helper()
	text := signed(t, c.claims, c.operator)
	for _, s := range c.servers {
		if err := s.AccountResolver().Store(c.accountKey, text); err != nil {
			t.Fatal(err)
		}
		claims, err := jwt.DecodeAccountClaims(text)
		if err != nil {
			t.Fatal(err)
		}
		if a, err := s.LookupAccount(c.accountKey); err == nil {
			s.UpdateAccountClaims(a, claims)
		}
	}
}

// TestClusterTakesNewCredentials has the node of a cluster with JWTs and TLS lose its user, by a revocation and by time. Status says that the servers
// refuse it, reading goes on, and new credentials in the same file are taken without a restart. Nothing acknowledged is lost.
func TestClusterTakesNewCredentials(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.make(t, "node", false)
	c := runCluster(t, ca)
	creds := filepath.Join(ca.folder, "node.creds")
	user := c.user(t, creds, nil)
	state := t.TempDir()
	stop := serveInside(t, state, "--nats", c.urls, "--replicas", "3", "--nats-creds", creds, "--nats-tls-ca", ca.file, "--nats-tls-cert", cert, "--nats-tls-key", key)
	if _, said, exit := runTest(t.Context(), state, nil, "status", "--wait", "60s"); exit != 0 {
		log, _ := stop()
		t.Fatalf("%s\n%s", said, log)
	}
	sent := 0
	send := func() (said string, exit int) {
		_, said, exit = runTest(t.Context(), state, nil, "send", "HOST", fmt.Sprintf("message %d", sent), "--key", fmt.Sprintf("key %d", sent))
		if exit == 0 {
			sent++
		}
		return said, exit
	}
	goesOn := func() {
		t.Helper()
		eventually.Holds(t, "the node goes on", func() bool { _, exit := send(); return exit == 0 })
	}
	refused := func(what string) {
		t.Helper()
		eventually.Holds(t, what+": the node is refused", func() bool {
			said, exit := send()
			return exit != 0 && strings.Contains(said, "READ_ONLY: the server refuses the node") && strings.Contains(said, "hint: it does not know the user, or not any more: --nats-creds")
		})
		if out, _, exit := runTest(t.Context(), state, nil, "status"); exit != 0 || !strings.Contains(out, "the server refuses the node: nats: ") {
			t.Errorf("%s: %d %s", what, exit, out)
		}
		if out, said, exit := runTest(t.Context(), state, nil, "inbox", "--all", "--last", "0"); exit != 0 || !strings.Contains(out, "message 0") {
			t.Errorf("%s: nothing is read: %d %s", what, exit, said)
		}
	}
	goesOn()
	if _, said, exit := runTest(t.Context(), state, nil, "send", "HOST", "with a file", "--attach", cert); exit != 0 {
		t.Error(said)
	}
	c.claims.Revoke(user)
	c.update(t)
	refused("revoked")
	c.user(t, creds, func(u *jwt.UserClaims) { u.Expires = time.Now().Add(5 * time.Second).Unix() })
	goesOn()
	refused("expired")
	c.user(t, creds, nil)
	goesOn()
	out, said, _ := runTest(t.Context(), state, nil, "inbox", "--all", "--last", "0", "--json")
	for n := range sent {
		if strings.Count(out, fmt.Sprintf(`"message %d"`, n)) != 1 {
			t.Errorf("message %d is there %d times: %s", n, strings.Count(out, fmt.Sprintf(`"message %d"`, n)), said)
		}
	}
	if out, said, exit := runTest(t.Context(), state, nil, "verify"); exit != 0 || !strings.Contains(out, "1 files") {
		t.Errorf("%s %s", out, said)
	}
	if log, _ := stop(); !strings.Contains(log, "the journal is back") {
		t.Error(log)
	}
}

// TestClusterThatRefusesANodeSaysWhy starts nodes that a cluster refuses: each is told what the matter is, and what to do.
func TestClusterThatRefusesANodeSaysWhy(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	cert, key := ca.make(t, "node", false)
	c := runCluster(t, ca)
	creds := filepath.Join(ca.folder, "node.creds")
	c.user(t, creds, nil)
	plenty := c.claims.Limits
	signs, shows := []string{"--nats-tls-ca", ca.file}, []string{"--nats-tls-cert", cert, "--nats-tls-key", key}
	all := slices.Concat(signs, shows, []string{"--replicas", "3"})
	for _, r := range []struct {
		name       string
		change     func()
		args       []string
		says, hint string
	}{
		{"another authority", nil, slices.Concat([]string{"--nats-tls-ca", other.file}, shows), "certificate", "--nats-tls-ca"},
		{"no authority", nil, nil, "certificate", "--nats-tls-ca"},
		{"no certificate", nil, signs, "tls", "--nats-tls-cert"},
		{"too many replicas", nil, slices.Concat(signs, shows, []string{"--replicas", "5"}), "no suitable peers", "--replicas"},
		{"no JetStream", func() { c.claims.Limits.JetStreamLimits = jwt.JetStreamLimits{} }, all, "jetstream not enabled", "JetStream"},
		{"no connections", func() { c.claims.Limits.Conn = 0 }, all, "connections", "raise their limit"},
		{"no permission", func() {
			c.user(t, creds, func(u *jwt.UserClaims) {
				u.Permissions = jwt.Permissions{Pub: jwt.Permission{Allow: jwt.StringList{"none"}}, Sub: jwt.Permission{Allow: jwt.StringList{"none"}}}
			})
		}, all, "ermissions violation", "docs/nats.md"},
		{"revoked", func() { c.user(t, creds, nil); c.claims.Revoke("*") }, all, "uthorization", "--nats-creds"},
	} {
		if c.claims.Limits = plenty; r.change != nil {
			r.change()
		}
		c.update(t)
		_, said, exit := runTest(t.Context(), t.TempDir(), nil, slices.Concat([]string{"serve", "--listen", "off", "--nats", c.urls, "--nats-creds", creds}, r.args)...)
		hint := said[max(0, strings.LastIndex(said, "hint:")):]
		if exit != exitRefused || !strings.Contains(said, "READ_ONLY: the server refuses the node") || !strings.Contains(said, r.says) || !strings.Contains(hint, r.hint) {
			t.Errorf("%s: %d %s", r.name, exit, said)
		}
	}
}
