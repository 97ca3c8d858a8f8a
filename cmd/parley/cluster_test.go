package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley"
	"parley/actors/keys"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/internal/eventually"
	"parley/internal/freeport"
)

// The tests of clusters run NATS servers and nodes as processes, so that each can be killed.

// clusterServer is the command under which the test binary runs a server of the cluster.
const clusterServer = "parley-test-nats"

const clusterSize = 3

// serverOptions are the options of a server, passed on its command line.
type serverOptions struct {
	Name, Store string
	Address     string // host and port for clients
	Cluster     string // host and port for the other servers
	Routes      []string
	Space       string // the network namespace, or ""
}

// serveCluster runs a server until it is killed or the test process ends.
func serveCluster() {
	var o serverOptions
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		panic(err)
	}
	host, port := addressOf(o.Address)
	clusterHost, clusterPort := addressOf(o.Cluster)
	so := &natsserver.Options{
		ServerName: o.Name, Host: host, Port: port, NoSigs: true, LogFile: o.Store + ".log",
		JetStream: true, StoreDir: o.Store, SyncAlways: true,
		Cluster: natsserver.ClusterOpts{Name: "parley-test", Host: clusterHost, Port: clusterPort},
	}
	for _, address := range o.Routes {
		so.Routes = append(so.Routes, &url.URL{Scheme: "nats-route", Host: address})
	}
	srv, err := natsserver.NewServer(so)
	if err != nil {
		panic(err)
	}
	srv.ConfigureLogger()
	srv.Start()
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// addressOf returns the parts of an address.
func addressOf(address string) (host string, port int) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		panic(err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		panic(err)
	}
	return host, port
}

// process is a child process that can be killed.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// startWithin is startProcess in a network namespace; "" is that of the test.
func startWithin(t *testing.T, space, log, command string, args ...string) *process {
	t.Helper()
	if space == "" {
		return startProcess(t, log, command, args...)
	}
	return startProcess(t, log, "ip", append([]string{"netns", "exec", space, command}, args...)...)
}

// startProcess starts a command of the test binary. It appends the output to a log, which is shown if the test fails.
func startProcess(t *testing.T, log, command string, args ...string) *process {
	t.Helper()
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close() //nolint:errcheck // the process has its own copy
	p := &process{cmd: exec.Command(command, args...), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stdout, p.cmd.Stderr = out, out
	life, err := p.cmd.StdinPipe() // ends with this process
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait() // the state has the result
		_ = life.Close()
		close(p.ended)
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

type cluster struct {
	options [clusterSize]serverOptions
	servers [clusterSize]*process
	js      jetstream.JetStream
	dialer  nats.CustomDialer // nil: the test reaches the servers as any program does
}

// startCluster starts the servers and returns once they store messages.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	ports := freeport.Choose(t, 2*clusterSize)
	for i := range c.options {
		c.options[i] = serverOptions{Address: fmt.Sprint("127.0.0.1:", ports[i]), Cluster: fmt.Sprint("127.0.0.1:", ports[clusterSize+i])}
	}
	c.startAll(t)
	return c
}

// startAll starts the servers at their addresses, and returns once they store messages.
func (c *cluster) startAll(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	for i := range c.options {
		o := &c.options[i]
		o.Name, o.Store = fmt.Sprint("S", i), filepath.Join(folder, fmt.Sprint("S", i))
		for _, other := range c.options {
			o.Routes = append(o.Routes, other.Cluster)
		}
		c.start(t, i)
	}
	c.connect(t)
	eventually.Holds(t, "the cluster keeps streams", attempt(t, func(ctx context.Context) bool {
		s, err := c.js.CreateStream(ctx, jetstream.StreamConfig{Name: "READY", Replicas: clusterSize})
		return err == nil && s.CachedInfo().Cluster != nil && c.js.DeleteStream(ctx, "READY") == nil
	}))
}

func (c *cluster) start(t *testing.T, i int) {
	t.Helper()
	o, err := json.Marshal(c.options[i])
	if err != nil {
		t.Fatal(err)
	}
	c.servers[i] = startWithin(t, c.options[i].Space, c.options[i].Store+".out", clusterServer, string(o))
}

// URL returns the address of the cluster for nodes.
func (c *cluster) URL() string {
	urls := make([]string, clusterSize)
	for i, o := range c.options {
		urls[i] = "nats://" + o.Address
	}
	return strings.Join(urls, ",")
}

func (c *cluster) connect(t *testing.T) {
	t.Helper()
	options := []nats.Option{nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond)}
	if c.dialer != nil {
		options = append(options, nats.SetCustomDialer(c.dialer))
	}
	conn, err := nats.Connect(c.URL(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if c.js, err = jetstream.New(conn, jetstream.WithDefaultTimeout(time.Second)); err != nil {
		t.Fatal(err)
	}
}

// leader returns the server that leads a stream.
func (c *cluster) leader(t *testing.T, stream string) (leader int) {
	t.Helper()
	eventually.Holds(t, "the stream has a leader", attempt(t, func(ctx context.Context) bool {
		s, err := c.js.Stream(ctx, stream)
		if err != nil || s.CachedInfo().Cluster == nil {
			return false
		}
		for i, o := range c.options {
			if o.Name == s.CachedInfo().Cluster.Leader {
				leader = i
				return true
			}
		}
		return false
	}))
	return leader
}

// clusterNode is a state folder of a node whose journal is on the cluster, and the process that uses it.
type clusterNode struct {
	*process
	cluster *cluster
	folder  string
	space   string // the network namespace, or ""
	client  *client.Client
}

// onceClient returns a client of the node that does not repeat calls.
func onceClient(t *testing.T, folder string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Socket: filepath.Join(folder, socketFile), Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// folderOf makes a state folder for a node. If twin is given, it is for twin's node.
func (c *cluster) folderOf(t *testing.T, twin *clusterNode) *clusterNode {
	t.Helper()
	n := &clusterNode{cluster: c, folder: t.TempDir()}
	if twin != nil {
		key, err := os.ReadFile(filepath.Join(twin.folder, keys.FileName))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chmod(n.folder, 0o700), os.WriteFile(filepath.Join(n.folder, keys.FileName), key, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	n.client = onceClient(t, n.folder)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s:\n%s", n.folder, n.logged())
		}
	})
	return n
}

func (n *clusterNode) start(t *testing.T) {
	t.Helper()
	n.process = startWithin(t, n.space, filepath.Join(n.folder, logFile), "parley", "serve", "--state", n.folder, "--listen", "off",
		"--nats", n.cluster.URL(), "--replicas", fmt.Sprint(clusterSize))
}

// logged returns the log of the folder's processes.
func (n *clusterNode) logged() string {
	text, err := os.ReadFile(filepath.Join(n.folder, logFile))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (n *clusterNode) status(ctx context.Context) (s api.StatusResponse, err error) {
	err = n.client.Call(ctx, "status", api.NodeRequest{}, &s)
	return s, err
}

// runs waits until the node runs in this process.
func (n *clusterNode) runs(t *testing.T) api.StatusResponse {
	t.Helper()
	var status api.StatusResponse
	eventually.Holds(t, "the node answers", attempt(t, func(ctx context.Context) bool {
		n.isAlive(t)
		var err error
		status, err = n.status(ctx)
		return err == nil && status.PID == n.cmd.Process.Pid && status.Problem == nil
	}))
	return status
}

// waits waits until this process reports that it is a standby.
func (n *clusterNode) waits(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "the process is a standby", func() bool {
		n.isAlive(t)
		_, said, exit := runTest(t.Context(), n.folder, nil, "status")
		return exit == exitNotRunning && strings.Contains(said, fmt.Sprintf("process %d waits as a standby", n.cmd.Process.Pid))
	})
}

func (n *clusterNode) isAlive(t *testing.T) {
	t.Helper()
	select {
	case <-n.ended:
		t.Fatalf("the process has ended: %v", n.cmd.ProcessState)
	default:
	}
}

// must runs a command on the node's folder and returns its output.
func (n *clusterNode) must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, errs, exit := runTest(t.Context(), n.folder, strings.NewReader(stdin), args...)
	if exit != exitDone {
		t.Fatalf("parley %s: exit %d\n%s%s", strings.Join(args, " "), exit, out, errs)
	}
	return strings.TrimSpace(out)
}

// verify checks the log, once the servers that store it can be reached.
func (n *clusterNode) verify(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "the log is read", func() bool {
		out, errs, exit := runTest(t.Context(), n.folder, nil, "verify")
		if exit != exitDone && !strings.Contains(errs, string(parley.ReadOnly)) {
			t.Fatalf("parley verify: exit %d\n%s%s", exit, out, errs)
		}
		return strings.HasPrefix(out, "ok:")
	})
}

// pair starts a node and its standby.
func (c *cluster) pair(t *testing.T) (node, standby *clusterNode, status api.StatusResponse) {
	t.Helper()
	node = c.folderOf(t, nil)
	node.start(t)
	status = node.runs(t)
	standby = c.folderOf(t, node)
	standby.start(t)
	standby.waits(t)
	return node, standby, status
}

// attempt returns a condition that calls a server. Each attempt has a time limit: a server without a leader loses some
// requests.
func attempt(t *testing.T, holds func(context.Context) bool) func() bool {
	return func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return holds(ctx)
	}
}

// stoppedLoudly checks that a process ended by itself with an error, and logged the reason.
func (n *clusterNode) stoppedLoudly(t *testing.T) {
	t.Helper()
	eventually.Holds(t, "the process ends", func() bool {
		select {
		case <-n.ended:
			return true
		default:
			return false
		}
	})
	if s := n.cmd.ProcessState; !s.Exited() || s.ExitCode() == exitDone {
		t.Errorf("it ended with %v", s)
	}
	if e := lastFailure(n.logged()); e == nil || !strings.Contains(e.Message, "another process") {
		t.Errorf("it ended with %v", e)
	}
}

// isWhole reports whether every server has the whole journal of a node.
func (c *cluster) isWhole(ctx context.Context, status api.StatusResponse) bool {
	s, err := c.js.Stream(ctx, "PARLEY_"+status.Node.String())
	if err != nil || s.CachedInfo().Cluster == nil || len(s.CachedInfo().Cluster.Replicas) != clusterSize-1 {
		return false
	}
	for _, r := range s.CachedInfo().Cluster.Replicas {
		if !r.Current || r.Offline {
			return false
		}
	}
	return true
}
