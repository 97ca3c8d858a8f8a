package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"parley/gateway/api"
)

// authority signs the certificates of a test.
type authority struct {
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	folder string
	file   string // its certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{folder: t.TempDir()}
	a.file, _ = a.make(t, "authority", true)
	return a
}

// make makes a certificate for this machine, and returns its file and that of its key.
func (a *authority) make(t *testing.T, name string, isCA bool) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: isCA,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if isCA {
		c.ExtKeyUsage = nil
		a.cert, a.key = c, k
	}
	text, err := x509.CreateCertificate(rand.Reader, c, a.cert, k.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(a.folder, name+".pem"), filepath.Join(a.folder, name+".key")
	writePEM(t, cert, "CERTIFICATE", text)
	writePEM(t, key, "PRIVATE KEY", secret)
	return cert, key
}

func writePEM(t *testing.T, file, kind string, text []byte) {
	t.Helper()
	writeSecret(t, file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: text}))
}

func writeSecret(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// serverTLS returns the settings of a server whose clients show certificates.
func (a *authority) serverTLS(t *testing.T) *tls.Config {
	t.Helper()
	cert, key := a.make(t, "server", false)
	c, err := natsserver.GenTLSConfig(&natsserver.TLSConfigOpts{CertFile: cert, KeyFile: key, CaFile: a.file, Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newKey returns a key, its public part and its seed.
func newKey(t *testing.T, make func() (nkeys.KeyPair, error)) (k nkeys.KeyPair, public string, seed []byte) {
	t.Helper()
	k, err := make()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = k.PublicKey(); err != nil {
		t.Fatal(err)
	}
	if seed, err = k.Seed(); err != nil {
		t.Fatal(err)
	}
	return k, public, seed
}

// runProtected runs a NATS server that speaks TLS with those who have a certificate of the authority.
func runProtected(t *testing.T, a *authority, o *natsserver.Options) string {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", natsserver.RANDOM_PORT, true, true
	o.TLSConfig, o.TLSVerify, o.TLSTimeout, o.AuthTimeout = a.serverTLS(t), true, 30, 30
	s, err := natsserver.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the NATS server is not ready")
	}
	return "nats://" + s.Addr().String()
}

// withOperator adds an operator and an account. It returns the credentials of two users of it: one that may do what
// docs/nats.md says that the user of --service needs, and one that may do everything.
func withOperator(t *testing.T, o *natsserver.Options) (limited, free []byte) {
	t.Helper()
	operator, operatorKey, _ := newKey(t, nkeys.CreateOperator)
	account, accountKey, _ := newKey(t, nkeys.CreateAccount)
	encode := func(c interface {
		Encode(nkeys.KeyPair) (string, error)
	}, by nkeys.KeyPair) string {
		text, err := c.Encode(by)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	trusted, err := jwt.DecodeOperatorClaims(encode(jwt.NewOperatorClaims(operatorKey), operator))
	if err != nil {
		t.Fatal(err)
	}
	accounts := &natsserver.MemAccResolver{}
	if err := accounts.Store(accountKey, encode(jwt.NewAccountClaims(accountKey), operator)); err != nil {
		t.Fatal(err)
	}
	o.TrustedOperators, o.AccountResolver = []*jwt.OperatorClaims{trusted}, accounts
	user := func(limit func(*jwt.UserClaims)) []byte {
		_, public, seed := newKey(t, nkeys.CreateUser)
		claims := jwt.NewUserClaims(public)
		limit(claims)
		creds, err := jwt.FormatUserConfig(encode(claims, account), seed)
		if err != nil {
			t.Fatal(err)
		}
		return creds
	}
	limited = user(func(c *jwt.UserClaims) {
		c.Sub.Allow.Add("parley.rpc.*.*", "$SRV.>")
		c.Pub.Allow.Add("_INBOX.>")
	})
	return limited, user(func(*jwt.UserClaims) {})
}

// journalPermissions returns what docs/nats.md says that the user of --nats needs.
func journalPermissions() *natsserver.Permissions {
	all := &natsserver.SubjectPermission{Allow: []string{"$JS.API.>", "$JS.ACK.>", "PARLEY.>", "$KV.>", "$O.>", "parley.node.>", "_INBOX.>"}}
	return &natsserver.Permissions{Publish: all, Subscribe: all}
}

// serveInside runs parley serve in this process. stop ends it and returns what it wrote.
func serveInside(t *testing.T, state string, args ...string) (stop func() (string, int)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var errs strings.Builder
	ended := make(chan int, 1)
	go func() {
		p := &program{
			environment: environment{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &errs, lookup: func(string) (string, bool) { return "", false }},
			args:        append([]string{"--state", state, "serve", "--listen", "off"}, args...),
		}
		ended <- p.run(ctx)
	}()
	return func() (string, int) { cancel(); exit := <-ended; return errs.String(), exit }
}

func TestServeReachesProtectedNATS(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.make(t, "node", false)
	_, user, seed := newKey(t, nkeys.CreateUser)
	nkey, creds, caller := filepath.Join(ca.folder, "user.nk"), filepath.Join(ca.folder, "user.creds"), filepath.Join(ca.folder, "caller.creds")
	writeSecret(t, nkey, seed)
	journal := runProtected(t, ca, &natsserver.Options{Nkeys: []*natsserver.NkeyUser{{Nkey: user, Permissions: journalPermissions()}}, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true})
	o := &natsserver.Options{}
	limited, free := withOperator(t, o)
	writeSecret(t, creds, limited)
	writeSecret(t, caller, free)
	service := runProtected(t, ca, o)

	state := t.TempDir()
	stop := serveInside(t, state,
		"--nats", journal, "--nats-nkey", nkey, "--nats-tls-ca", ca.file, "--nats-tls-cert", cert, "--nats-tls-key", key,
		"--service", service, "--service-creds", creds, "--service-tls-ca", ca.file, "--service-tls-cert", cert, "--service-tls-key", key)
	out, said, exit := runTest(t.Context(), state, nil, "status", "--wait", "30s", "--json")
	var status api.StatusResponse
	if err := json.Unmarshal([]byte(out), &status); err != nil || exit != 0 || !status.External || status.Service == "" {
		log, _ := stop()
		t.Fatalf("%s %s\n%s", out, said, log)
	}
	conn, err := nats.Connect(service, nats.UserCredentials(caller), nats.RootCAs(ca.file), nats.ClientCert(cert, key))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if m, err := conn.Request("$SRV.PING.parley", nil, 30*time.Second); err != nil || !strings.Contains(string(m.Data), status.Node.String()) {
		t.Errorf("the service does not answer: %v %v", m, err)
	}
	if out, said, exit := runTest(t.Context(), state, nil, "send", "HOST", "kept"); exit != 0 {
		t.Errorf("nothing is written: %s %s", out, said)
	}
	if log, exit := stop(); exit != 0 || strings.Contains(log, string(seed)) || strings.Contains(log, "ermission") {
		t.Errorf("%d %s", exit, log)
	}
	for name, args := range map[string][]string{
		"without the nkey":        {"--nats-tls-ca", ca.file, "--nats-tls-cert", cert, "--nats-tls-key", key},
		"without the authority":   {"--nats-nkey", nkey, "--nats-tls-cert", cert, "--nats-tls-key", key},
		"without the certificate": {"--nats-nkey", nkey, "--nats-tls-ca", ca.file},
	} {
		_, said, exit := runTest(t.Context(), t.TempDir(), nil, append([]string{"serve", "--listen", "off", "--nats", journal}, args...)...)
		if exit == 0 || !strings.Contains(said, "READ_ONLY") {
			t.Errorf("%s: %d %s", name, exit, said)
		}
	}
}

func TestServeRefusesUnusableCredentials(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	cert, key := ca.make(t, "node", false)
	_, other := ca.make(t, "other", false)
	_, _, account := newKey(t, nkeys.CreateAccount)
	_, _, seed := newKey(t, nkeys.CreateUser)
	wrong, user := filepath.Join(ca.folder, "account.nk"), filepath.Join(ca.folder, "user.nk")
	writeSecret(t, wrong, account)
	writeSecret(t, user, seed)
	there := []string{"--nats", "nats://127.0.0.1:1"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{append(there, "--nats-nkey", wrong), "SU"},
		{append(there, "--nats-nkey", filepath.Join(ca.folder, "none")), "no such file"},
		{append(there, "--nats-creds", user), "JWT"},
		{append(there, "--nats-creds", ca.folder), "no file"},
		{append(there, "--nats-creds", user, "--nats-nkey", user), "not both"},
		{append(there, "--nats-tls-ca", user), "PEM"},
		{append(there, "--nats-tls-cert", cert), "needs its key"},
		{append(there, "--nats-tls-cert", cert, "--nats-tls-key", other), "do not belong together"},
		{[]string{"--nats-nkey", user}, "--nats-nkey needs --nats"},
		{[]string{"--service-tls-ca", key}, "--service-tls-ca needs --service"},
		{[]string{"--service", "nats://127.0.0.1:1", "--service-tls-ca", key}, "--service"},
	} {
		for _, command := range []string{"serve", "restart"} {
			_, said, exit := runTest(t.Context(), t.TempDir(), nil, append([]string{command, "--listen", "off"}, c.args...)...)
			if exit != exitUsage || !strings.Contains(said, c.want) || strings.Contains(said, string(seed)) || strings.Contains(said, string(account)) {
				t.Errorf("%s %v: %d %s", command, c.args, exit, said)
			}
		}
	}
}

func TestStartPassesNATSFilesOn(t *testing.T) {
	t.Parallel()
	var s serveOptions
	for _, a := range s.accesses() {
		*a.file = a.flag + ".pem"
	}
	line := strings.Join(s.args(), " ")
	for _, a := range s.accesses() {
		if file, err := filepath.Abs(a.flag + ".pem"); err != nil || !strings.Contains(line, "--"+a.flag+" "+file) {
			t.Errorf("%s: %v %v", line, a.flag, err)
		}
	}
}
