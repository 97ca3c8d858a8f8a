package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	natsmicro "github.com/nats-io/nats.go/micro"

	"parley/actors"
	"parley/actors/view"
	"parley/events"
	"parley/gateway/api"
	"parley/internal/eventually"
)

func TestServiceReconnectsToItsServer(t *testing.T) {
	t.Parallel()
	s, stop := runNATS(t, anyPort, 0)
	port := s.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port()
	url := s.ClientURL()
	h := openNATSTestServer(t, url, nil)
	h.guest("fae")
	h.call("fae", "send", `{"recipient":"HOST","text":"before"}`, nil)
	for _, word := range []string{"after", "and again"} {
		stop()
		eventually.Holds(t, "both have lost the connection", func() bool { return !h.server.service.IsConnected() && !h.conn.IsConnected() })
		_, stop = runNATS(t, int(port), 0)
		eventually.Holds(t, "the service answers", func() bool {
			m, err := h.ask("list_names", "Bearer "+h.tokens["host"], `{}`)
			return err == nil && m.Header.Get(natsmicro.ErrorHeader) == ""
		})
		h.call("fae", "send", `{"recipient":"HOST","text":"`+word+`"}`, nil)
	}
	var mail struct{ Messages []view.Message }
	if h.call("host", "list_messages", `{}`, &mail); len(mail.Messages) != 3 || mail.Messages[2].Text != "and again" {
		t.Errorf("%v", mail.Messages)
	}
	stop()
	eventually.Holds(t, "the server has lost the connection", func() bool { return !h.server.service.IsConnected() })
	began := time.Now()
	if h.close(); time.Since(began) > 20*time.Second {
		t.Errorf("without its NATS system the node took %v to stop", time.Since(began))
	}
}

func TestNodeStartsBeforeNATS(t *testing.T) {
	t.Parallel()
	s, stop := runNATS(t, anyPort, 0)
	port, url := s.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port(), s.ClientURL()
	stop()
	h := openNATSTestServer(t, url, nil)
	if _, err := h.node.Host().Make(t.Context(), actors.NewAgent{Kind: events.Guest, Name: "fae"}); err != nil {
		t.Fatal(err)
	}
	runNATS(t, int(port), 0)
	eventually.Holds(t, "the service answers", func() bool {
		m, err := h.ask("list_names", "Bearer "+h.tokens["host"], `{}`)
		return err == nil && strings.Contains(string(m.Data), `"fae"`)
	})
}

func TestStoppingNodeAnswersNATSWaits(t *testing.T) {
	t.Parallel()
	s, _ := runNATS(t, anyPort, 0)
	inside := make(chan bool)
	h := openNATSTestServer(t, s.ClientURL(), func(s *Server) {
		waitingOp(s, "linger", api.ScopeRead, func(ctx context.Context, _ api.NodeRequest) (api.Done, error) {
			inside <- true
			<-ctx.Done()
			return api.Done{}, nil
		})
	})
	answered := make(chan string, 1)
	go func() {
		m, err := h.ask("linger", "Bearer "+h.tokens["host"], `{}`)
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- string(m.Data)
	}()
	<-inside
	h.close()
	if got := <-answered; got != "{}\n" {
		t.Errorf("who waited is told %q", got)
	}
	if _, err := h.ask("list_names", "Bearer "+h.tokens["host"], `{}`); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("after its end: %v", err)
	}
}

func TestServiceLimitsCallsPerAgent(t *testing.T) {
	t.Parallel()
	s, _ := runNATS(t, anyPort, 0)
	inside, leave := make(chan bool), make(chan bool)
	h := openLimitedNATSTestServer(t, s.ClientURL(), api.Limits{"calls": 1}, func(s *Server) {
		serverOp(s, "hold", api.ScopeRead, func(context.Context, api.NodeRequest) (api.Done, error) {
			inside <- true
			<-leave
			return api.Done{}, nil
		})
		nodeOp(s, "panic", api.ScopeRead, func(context.Context, api.NodeRequest) (api.Done, error) { panic("secret") })
	})
	h.guest("fae")
	h.guest("bob")
	host := "Bearer " + h.tokens["host"]
	held := make(chan error, 1)
	go func() {
		m, err := h.ask("hold", "Bearer "+h.tokens["fae"], `{}`)
		if err == nil && string(m.Data) != "{}\n" {
			err = fmt.Errorf("%s", m.Data)
		}
		held <- err
	}()
	<-inside
	if m, err := h.ask("list_names", "Bearer "+h.tokens["fae"], `{}`); err != nil || m.Header.Get(natsmicro.ErrorCodeHeader) != "429" {
		t.Errorf("%v %v", m, err)
	}
	h.call("bob", "list_names", `{}`, nil)
	if status, body := h.post("list_names", host, `{}`); status != 200 {
		t.Errorf("the host is refused what one agent has too much of: %d %s", status, body)
	}
	close(leave)
	if err := <-held; err != nil {
		t.Error(err)
	}
	eventually.Holds(t, "no call is under way", func() bool { return h.server.service.Calls() == 0 })
	if m, err := h.ask("panic", host, `{}`); err != nil || m.Header.Get(natsmicro.ErrorCodeHeader) != "500" || strings.Contains(string(m.Data), "secret") {
		t.Errorf("%v %v", m, err)
	}
	eventually.Holds(t, "no call is under way", func() bool {
		return h.server.service.Calls() == 0 && h.server.now(api.KindCalls) == 0
	})
	h.call("host", "list_names", `{}`, nil)
	eventually.Holds(t, "no call is under way", func() bool { return h.server.service.Calls() == 0 })
	want := map[string]string{"hold": "1, 0 ", "panic": "1, 1 INTERNAL", "list_names": "3, 1 RATE_LIMITED"}
	eventually.Holds(t, fmt.Sprint("the statistics say ", want), func() bool { // a call is counted after its response
		counted := map[string]string{}
		m, err := h.conn.Request("$SRV.STATS.parley", nil, eventually.Patience)
		if err != nil {
			t.Fatal(err)
		}
		var stats natsmicro.Stats
		if err := json.Unmarshal(m.Data, &stats); err != nil {
			t.Fatal(err)
		}
		for _, e := range stats.Endpoints {
			if e.NumRequests > 0 && e.AverageProcessingTime != e.ProcessingTime/time.Duration(e.NumRequests) {
				t.Errorf("%s took %v, on average %v", e.Name, e.ProcessingTime, e.AverageProcessingTime)
			}
			if want[e.Name] != "" {
				counted[e.Name] = fmt.Sprintf("%d, %d %s", e.NumRequests, e.NumErrors, e.LastError)
			}
		}
		return maps.Equal(counted, want)
	})
}

func TestServiceIgnoresCallsWithoutReplyInbox(t *testing.T) {
	t.Parallel()
	s, _ := runNATS(t, anyPort, 0)
	h := openNATSTestServer(t, s.ClientURL(), nil)
	fae := h.guest("fae")
	sent, err := h.conn.SubscribeSync("$JS.API.>")
	if err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"$JS.API.STREAM.DELETE.x", h.subject("list_names"), "PARLEY.x", ""} {
		m := nats.NewMsg(h.subject("send"))
		m.Reply, m.Data = reply, []byte(`{"recipient":"HOST","text":"hi"}`)
		m.Header.Set("Authorization", "Bearer "+h.tokens["fae"])
		if err := h.conn.PublishMsg(m); err != nil {
			t.Fatal(err)
		}
	}
	h.call("fae", "send", `{"recipient":"HOST","text":"the last"}`, nil) // handled after them, because it has the same subject
	if in, err := fae.Mail().Inbox(t.Context(), view.MessageFilter{All: true}); err != nil || len(in.Messages) != 1 {
		t.Errorf("what could not be answered was done: %v %v", in.Messages, err)
	}
	if n, _, err := sent.Pending(); err != nil || n != 0 {
		t.Errorf("%d answers went to the NATS system itself, %v", n, err)
	}
}

func TestOversizedNATSResponseIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := runNATS(t, anyPort, 32<<10)
	h := openNATSTestServer(t, s.ClientURL(), nil)
	h.guest("fae")
	for range 4 {
		h.call("fae", "send", `{"recipient":"HOST","text":"`+strings.Repeat("x", 10<<10)+`"}`, nil)
	}
	m, err := h.ask("list_messages", "Bearer "+h.tokens["host"], `{}`)
	if err != nil || m.Header.Get(natsmicro.ErrorCodeHeader) != "413" {
		t.Errorf("%v %v", m, err)
	}
	h.call("host", "list_messages", `{"limit":1}`, nil)
}
