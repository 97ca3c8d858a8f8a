package gateway

import (
	"encoding/json"
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

	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/micro"
	"parley/internal/eventually"
	"parley/internal/natsauth"
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
		if s.service, err = micro.Connect(s.serviceOptions(url, natsauth.Access{})); err != nil {
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
	if !s.ReadyForConnections(eventually.Patience) {
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
	return h.conn.RequestMsg(m, eventually.Patience)
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
	m, err := h.conn.Request("$SRV.INFO.parley", nil, eventually.Patience)
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
