package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/httpd"
	"parley/internal/eventually"
)

// rawPost sends a body unchanged.
func rawPost(t *testing.T, s *Server, path string, body []byte) (int, parley.Error) {
	t.Helper()
	h := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return client.Dial(ctx, s.socketPath) },
	}}
	r, err := h.Post("http://parley"+path, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var f api.Failure
	if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
		t.Fatal(err)
	}
	if f.Error == nil {
		return r.StatusCode, parley.Error{}
	}
	return r.StatusCode, *f.Error
}

func TestOnlyPOSTCalls(t *testing.T) {
	t.Parallel()
	_, s := serveLimited(t, api.Limits{})
	conn, err := client.Dial(t.Context(), s.socketPath)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /rpc/status HTTP/1.0\r\n\r\n")
	text, err := io.ReadAll(conn)
	if err != nil || !strings.Contains(string(text), "405") || !strings.Contains(string(text), "INVALID_ARGUMENT") {
		t.Errorf("got %s %v", text, err)
	}
}

func TestOnlyHealthNeedsNoToken(t *testing.T) {
	t.Parallel()
	_, s := serveLimited(t, api.Limits{})
	for path, want := range map[string]int{"/healthz": 200, "/rpc/status": 401, "/metrics": 401, "/": 401} {
		r, err := http.Get("http://" + s.Address() + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != want || want == 401 && !strings.Contains(string(text), "UNAUTHENTICATED") {
			t.Errorf("%s: %d %s %v", path, r.StatusCode, text, err)
		}
		_ = r.Body.Close()
	}
}

func TestErrorsKeepTheirDetails(t *testing.T) {
	t.Parallel()
	c, s := serveLimited(t, api.Limits{})
	sent := parley.Refuse(parley.InvalidAnswer, "port: want a number").WithHint("as in 443")
	sent.Fields = map[string]string{"port": "want a number"}
	nodeOp(s, "fail", api.ScopeRead, func(context.Context, api.NodeRequest) (api.Done, error) { return api.Done{}, sent })
	nodeOp(s, "break", api.ScopeRead, func(context.Context, api.NodeRequest) (api.Done, error) {
		return api.Done{}, fmt.Errorf("disk 7 at address secret")
	})
	nodeOp(s, "panic", api.ScopeRead, func(context.Context, api.NodeRequest) (api.Done, error) { panic("secret") })

	err := c.Call(t.Context(), "fail", api.NodeRequest{}, nil)
	if got := parley.AsError(err); got.Code != sent.Code || got.Message != sent.Message || got.Hint != sent.Hint || got.Fields["port"] != "want a number" {
		t.Errorf("got %#v", got)
	}
	for _, name := range []string{"break", "panic", "fail"} {
		err := c.Call(t.Context(), name, api.NodeRequest{}, nil)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCallsBeyondTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	c, s := serveLimited(t, api.Limits{"calls.host": 1, "waits.host": 1})
	inside, leave := make(chan bool), make(chan bool)
	nodeOp(s, "hold", api.ScopeRead, func(context.Context, api.NodeRequest) (api.Done, error) {
		inside <- true
		<-leave
		return api.Done{}, nil
	})
	held := make(chan error, 1)
	go func() { held <- c.Call(t.Context(), "hold", api.NodeRequest{}, nil) }()
	<-inside
	if err := c.Call(t.Context(), "list_names", api.ListNamesRequest{}, nil); parley.CodeOf(err) != parley.RateLimited {
		t.Errorf("got %v", err)
	}
	wait := int64(50)
	if err := c.Call(t.Context(), "follow_messages", api.FollowMessagesRequest{WaitMs: &wait}, nil); err != nil {
		t.Errorf("a wait was refused for the calls under way: %v", err)
	}
	close(leave)
	if err := <-held; err != nil {
		t.Error(err)
	}
	if err := c.Call(t.Context(), "list_names", api.ListNamesRequest{}, nil); err != nil {
		t.Errorf("the place was not given back: %v", err)
	}
}

func TestLongWaitIsCutAndRepeated(t *testing.T) {
	t.Parallel()
	c, s := serveLimited(t, api.Limits{})
	form := askHost(t, c)
	var o view.Outcome
	wait := int64(60)
	err := c.Call(t.Context(), "await", api.AwaitRequest{Acting: api.Acting{As: "fae"}, FormRef: api.RefTo(form.Form.String()), WaitMs: &wait}, &o)
	if err != nil || o.Status != view.StatusOpen {
		t.Fatalf("got %v %v", o, err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := asFae(t, s).Await(t.Context(), client.ID(form.Form.String()))
		done <- err
	}()
	eventually.Holds(t, "one waits", func() bool { return s.now(api.KindWaits) > 0 })
	answer := api.RespondFormRequest{FormRef: api.RefTo("0"), Answer: parley.Answer{Texts: []events.FieldText{{Name: "a", Text: "x"}}}}
	if err := c.Call(t.Context(), "respond_form", answer, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestClosedConnectionEndsItsWait(t *testing.T) {
	t.Parallel()
	c, s := serveLimited(t, api.Limits{})
	form := askHost(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := asFae(t, s).Await(ctx, client.ID(form.Form.String()))
		done <- err
	}()
	eventually.Holds(t, "one waits", func() bool { return s.now(api.KindWaits) > 0 })
	cancel()
	if err := <-done; err == nil {
		t.Error("the wait ended well")
	}
	eventually.Holds(t, "nobody waits", func() bool { return s.now(api.KindWaits) == 0 })
}

// asFae returns a client that acts for fae.
func asFae(t *testing.T, s *Server) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Socket: s.socketPath, As: "fae"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// askHost makes fae and sends a form of one field from fae to the host.
func askHost(t *testing.T, c *client.Client) view.Asked {
	t.Helper()
	if err := c.Call(t.Context(), "make_agent", api.MakeAgentRequest{Name: "fae"}, nil); err != nil {
		t.Fatal(err)
	}
	var asked view.Asked
	req := api.FormRequest{Acting: api.Acting{As: "fae"}, Form: parley.Form{To: "HOST", Description: "D", Fields: []events.Field{{Name: "a", Label: "A"}}}}
	if err := c.Call(t.Context(), "form", req, &asked); err != nil {
		t.Fatal(err)
	}
	return asked
}

func TestDrainCutsWaitsAndRemovesSocket(t *testing.T) {
	t.Parallel()
	c, s := serveLimited(t, api.Limits{})
	form := askHost(t, c)
	cut := make(chan error, 1)
	go func() {
		var o view.Outcome
		cut <- c.Call(t.Context(), "await", api.AwaitRequest{Acting: api.Acting{As: "fae"}, FormRef: api.RefTo(form.Form.String())}, &o)
	}()
	eventually.Holds(t, "one waits", func() bool { return s.now(api.KindWaits) > 0 })
	began := time.Now()
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s", took)
	}
	if err := <-cut; err != nil {
		t.Errorf("the wait was not cut but broken: %v", err)
	}
	if _, err := os.Lstat(s.socketPath); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := c.Call(t.Context(), "status", api.NodeRequest{}, nil); parley.CodeOf(err) != parley.NotRunning {
		t.Errorf("got %v", err)
	}
}

func TestSocketsOfAnyPath(t *testing.T) {
	t.Parallel()
	long := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{t.TempDir(), long} {
		path := filepath.Join(folder, "s")
		for range 2 { // the second time with a socket left behind
			l, err := httpd.ListenUnix(path)
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v %v", info.Mode(), err)
			}
			conn, err := client.Dial(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
			_ = l.Close()
		}
		left, err := os.ReadDir(folder)
		if err != nil || len(left) != 1 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
}
