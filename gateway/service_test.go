package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	natsmicro "github.com/nats-io/nats.go/micro"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/micro"
	"parley/internal/eventually"
)

// natsTestServer is a server on a NATS system, with a client of that system.
type natsTestServer struct {
	*testServer
	conn *nats.Conn
}

// openNATSTestServer starts a server on the NATS system at url. change, if given, changes the server before it serves.
func openNATSTestServer(t *testing.T, url string, change func(*Server)) *natsTestServer {
	t.Helper()
	return openLimitedNATSTestServer(t, url, nil, change)
}

func openLimitedNATSTestServer(t *testing.T, url string, limits api.Limits, change func(*Server)) *natsTestServer {
	t.Helper()
	h := &natsTestServer{testServer: &testServer{t: t, folder: t.TempDir(), tokens: map[string]string{}, clients: map[string]*wsClient{}, limits: limits}}
	h.open(func(s *Server) {
		var err error
		if s.service, err = micro.Connect(s.serviceOptions(url)); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(s)
		}
	})
	t.Cleanup(func() {
		if !h.shut {
			h.close()
		}
	})
	h.tokens["host"] = makeToken(t, h.node.Host(), "read", "ask", "answer", "admin")
	conn, err := nats.Connect(url, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	h.conn = conn
	return h
}

// runNATS runs a NATS server until stop is called or the test ends.
func runNATS(t *testing.T, port int, maxPayload int32) (s *natsserver.Server, stop func()) {
	t.Helper()
	s, err := natsserver.NewServer(&natsserver.Options{Host: "127.0.0.1", Port: port, MaxPayload: maxPayload, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	stop = func() { s.Shutdown(); s.WaitForShutdown() }
	t.Cleanup(stop)
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("the NATS server is not ready")
	}
	return s, stop
}

const anyPort = natsserver.RANDOM_PORT

func (h *natsTestServer) subject(operation string) string {
	return micro.Subject + "." + h.node.State().Node.String() + "." + operation
}

// ask calls an operation; authorization is the header's whole value.
func (h *natsTestServer) ask(operation, authorization, body string) (*nats.Msg, error) {
	m := nats.NewMsg(h.subject(operation))
	if m.Data = []byte(body); authorization != "" {
		m.Header.Set("Authorization", authorization)
	}
	return h.conn.RequestMsg(m, 20*time.Second)
}

// call calls an operation for an agent, and fails the test on an error.
func (h *natsTestServer) call(agent, operation, body string, into any) {
	h.t.Helper()
	m, err := h.ask(operation, "Bearer "+h.tokens[agent], body)
	if err != nil {
		h.t.Fatalf("%s: %v", operation, err)
	}
	if problem := m.Header.Get(natsmicro.ErrorHeader); problem != "" {
		h.t.Fatalf("%s: %s", operation, problem)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(m.Data, into); err != nil {
		h.t.Fatalf("%s: %s %v", operation, m.Data, err)
	}
}

func TestEveryOperationIsAServiceEndpoint(t *testing.T) {
	t.Parallel()
	s, _ := runNATS(t, anyPort, 0)
	h := openNATSTestServer(t, s.ClientURL(), nil)
	h.guest("fae")
	m, err := h.conn.Request("$SRV.INFO.parley", nil, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var info natsmicro.Info
	if err := json.Unmarshal(m.Data, &info); err != nil || info.Metadata["node"] != h.node.State().Node.String() {
		t.Fatalf("%s %v", m.Data, err)
	}
	var offered, there []string
	for _, e := range info.Endpoints {
		offered = append(offered, e.Subject)
	}
	for _, o := range api.Operations() {
		there = append(there, h.subject(o.Name))
	}
	if slices.Sort(offered); !slices.Equal(offered, slices.Sorted(slices.Values(there))) {
		t.Errorf("it offers %v", offered)
	}
	for _, o := range api.Operations() {
		if o.Name == "stop" {
			continue
		}
		m, err := h.ask(o.Name, "Bearer "+h.tokens["host"], `{"waitMs":50}`)
		if err != nil || !json.Valid(m.Data) || m.Header.Get(natsmicro.ErrorCodeHeader) == "500" {
			t.Errorf("%s: %v %v", o.Name, m, err)
		}
	}
}

func TestAskIsAnsweredOverNATS(t *testing.T) {
	t.Parallel()
	s, _ := runNATS(t, anyPort, 0)
	h := openNATSTestServer(t, s.ClientURL(), nil)
	h.guest("fae")
	var asked view.Asked
	h.call("fae", "form", `{"recipient":"HOST","description":"Which port?","fields":[{"name":"port","type":"number"}]}`, &asked)
	awaited := make(chan string, 1)
	go func() {
		m, err := h.ask("await", "Bearer "+h.tokens["fae"], `{"id":"`+asked.Promise.String()+`"}`)
		if err != nil {
			awaited <- err.Error()
			return
		}
		awaited <- string(m.Data)
	}()
	eventually.Holds(t, "one waits", func() bool { return h.server.now(api.KindWaits) == 1 })
	var mail struct {
		Messages []view.Message
		Cursor   uint64
	}
	h.call("host", "list_messages", `{"pending":true}`, &mail)
	if len(mail.Messages) != 1 {
		t.Fatalf("%v", mail)
	}
	var empty struct{ Messages []view.Message }
	h.call("host", "follow_messages", fmt.Sprintf(`{"cursor":%d,"waitMs":50}`, mail.Cursor), &empty)
	if len(empty.Messages) != 0 {
		t.Fatalf("%v", empty)
	}
	h.call("host", "respond_form", `{"number":0,"values":{"port":443}}`, nil)
	want(t, <-awaited, `"status":"answered"`, `"port":443`)

	eventually.Holds(t, "nobody waits", func() bool { return h.server.now(api.KindWaits) == 0 })
	followed := make(chan string, 1)
	go func() {
		m, err := h.ask("follow_messages", "Bearer "+h.tokens["host"], fmt.Sprintf(`{"cursor":%d,"pending":true}`, mail.Cursor))
		if err != nil {
			followed <- err.Error()
			return
		}
		followed <- string(m.Data)
	}()
	eventually.Holds(t, "one waits", func() bool { return h.server.now(api.KindWaits) == 1 })
	h.call("fae", "form", `{"recipient":"HOST","description":"And which host?","fields":[{"name":"host"}]}`, nil)
	want(t, <-followed, `"cursor"`, "And which host?")
}

// All edges refuse the same calls, with the same status and text.
func TestServiceRefusesAsHTTP(t *testing.T) {
	t.Parallel()
	s, _ := runNATS(t, anyPort, 8<<20)
	h := openNATSTestServer(t, s.ClientURL(), nil)
	fae := h.guest("fae")
	reads := "Bearer " + makeToken(t, fae, "read")
	host := "Bearer " + h.tokens["host"]
	for name, c := range map[string]struct {
		operation, authorization, body string
		status                         int
		code                           parley.Code
	}{
		"no token":                 {"list_names", "", `{}`, 401, parley.Unauthenticated},
		"no token of ours":         {"list_names", "Bearer x", `{}`, 401, parley.Unauthenticated},
		"a token by itself":        {"list_names", h.tokens["host"], `{}`, 401, parley.Unauthenticated},
		"another secret":           {"list_names", host[:len(host)-1] + "_", `{}`, 401, parley.Unauthenticated},
		"beyond its scopes":        {"send", reads, `{"recipient":"HOST","text":"hi"}`, 403, parley.NotPermitted},
		"as another":               {"list_names", reads, `{"as":"fae"}`, 403, parley.NotPermitted},
		"about the node":           {"status", reads, `{}`, 403, parley.NotPermitted},
		"not JSON":                 {"send", host, `{"recipient"`, 400, parley.InvalidArgument},
		"not UTF-8":                {"send", host, "{\"recipient\":\"\xff\"}", 400, parley.InvalidArgument},
		"too deep":                 {"respond_form", host, `{"values":{"a":` + strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64) + `}}`, 413, parley.TooLarge},
		"too large":                {"send", host, `{"text":"` + strings.Repeat("x", api.MaxBody) + `"}`, 413, parley.TooLarge},
		"no such message":          {"get_message", host, `{"number":7}`, 404, parley.NoSuchMessage},
		"words with line breaks":   {"lookup", host, `{"name":"a\r\nNats-Service-Error-Code: 200\r\n"}`, 0, ""},
		"a wrong answer in fields": {"form", host, `{"recipient":"fae","description":"x","fields":[{"name":"a","requierd":true}]}`, 422, parley.InvalidForm},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := h.ask(c.operation, c.authorization, c.body)
			if err != nil {
				t.Fatal(err)
			}
			status, body := h.post(c.operation, c.authorization, c.body)
			if got := strings.TrimSpace(body); got != string(m.Data) || fmt.Sprint(status) != m.Header.Get(natsmicro.ErrorCodeHeader) || status < 400 {
				t.Errorf("%v %s, but over HTTP %d %s", m.Header, m.Data, status, got)
			}
			if c.status != 0 && (status != c.status || !strings.HasPrefix(m.Header.Get(natsmicro.ErrorHeader), string(c.code)+": ")) {
				t.Errorf("%d %v, want %d %s", status, m.Header, c.status, c.code)
			}
		})
	}
	if in, err := h.node.Host().Mail().Inbox(t.Context(), view.MessageFilter{All: true}); err != nil || len(in.Messages) != 0 {
		t.Errorf("what was refused was done: %v %v", in.Messages, err)
	}
	if m, err := h.ask("send", "", `{"text":"`+strings.Repeat("x", api.MaxBody)+`"}`); err != nil || m.Header.Get(natsmicro.ErrorCodeHeader) != "401" {
		t.Errorf("too large, and from nobody: %v %v", m, err)
	}
	if _, err := h.ask("fly", host, `{}`); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("an operation that there is not: %v", err)
	}
}

// post calls an operation over HTTP.
func (h *testServer) post(operation, authorization, body string) (int, string) {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, "http://"+h.server.Address()+api.CallPath+operation, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Authorization", authorization)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
