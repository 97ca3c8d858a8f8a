package client_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/actors"
	"parley/gateway"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/internal/freeport"
)

// nodeFolder is the variable that makes the test binary run a node, so that tests can kill it.
const (
	nodeFolder  = "PARLEY_CLIENT_TEST_FOLDER"
	nodeAddress = "PARLEY_CLIENT_TEST_ADDRESS"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(nodeFolder); folder != "" {
		if err := serve(folder, os.Getenv(nodeAddress)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve runs a node until its standard input ends, and prints its address.
func serve(folder, address string) error {
	ctx := context.Background()
	node, err := actors.Open(ctx, actors.Options{Folder: folder, Name: "test"})
	if err != nil {
		return err
	}
	server, err := gateway.Listen(node, gateway.Options{
		Socket: filepath.Join(folder, "parley.sock"), Listen: address, Version: "test", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	server.Serve()
	fmt.Println(server.Address())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := server.Drain(ctx); err != nil {
		return err
	}
	return node.Close(ctx)
}

// testServer is a node in a process of its own.
type testServer struct {
	folder  string
	address string // kept over a restart
	process *exec.Cmd
	stdin   io.WriteCloser
}

// openTestServer runs a node on an address.
func openTestServer(address string) (*testServer, error) {
	folder, err := os.MkdirTemp("", "parley-client-")
	if err != nil {
		return nil, err
	}
	h := &testServer{folder: folder, address: address}
	return h, h.start()
}

func (h *testServer) start() error {
	h.process = exec.Command(os.Args[0], "-test.run=^$")
	h.process.Env = append(os.Environ(), nodeFolder+"="+h.folder, nodeAddress+"="+h.address)
	h.process.Stderr = os.Stderr
	out, err := h.process.StdoutPipe()
	if err != nil {
		return err
	}
	if h.stdin, err = h.process.StdinPipe(); err != nil {
		return err
	}
	if err := h.process.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("the node does not start: %w", err)
	}
	h.address = strings.TrimSpace(line)
	return nil
}

// kill ends the node as a crash does.
func (h *testServer) kill() {
	_ = h.process.Process.Kill() // it runs
	_ = h.process.Wait()         // the error is that it was killed
}

// stop ends the node in order.
func (h *testServer) stop() {
	_ = h.stdin.Close()  // it ends then
	_ = h.process.Wait() // what it says is on standard error
}

func (h *testServer) close() {
	h.kill()
	_ = os.RemoveAll(h.folder) // a remaining folder does no harm
}

func (h *testServer) socket() string { return filepath.Join(h.folder, "parley.sock") }
func (h *testServer) url() string    { return "http://" + h.address }

// host connects on the node's own socket.
func (h *testServer) host(ctx context.Context) (*client.Client, error) {
	return client.Connect(ctx, client.Options{Socket: h.socket()})
}

// token makes an agent, and a token for it.
func (h *testServer) token(ctx context.Context, name string) (string, error) {
	host, err := h.host(ctx)
	if err != nil {
		return "", err
	}
	defer host.Close()
	if _, err := api.MakeAgent.Do(ctx, host, api.MakeAgentRequest{Name: name}); err != nil {
		return "", err
	}
	var made struct {
		Token string `json:"token"`
	}
	err = host.Call(ctx, "create_token", map[string]any{"as": name, "scopes": []string{"read", "ask", "answer"}}, &made)
	return made.Token, err
}

// limit is the longest time of one step of a test.
const limit = 30 * time.Second

// openTest runs a node for a test, and connects as its host, and by URL as the guest fae.
func openTest(t *testing.T) (h *testServer, host, fae *client.Client) {
	t.Helper()
	h, err := openTestServer(freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	if host, err = h.host(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	token, err := h.token(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	if fae, err = client.Connect(t.Context(), client.Options{URL: h.url(), Token: token}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fae.Close)
	return h, host, fae
}
