package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/client"
)

// scrape reads the metrics twice on one connection, as a monitoring system does, and returns the second.
func scrape(t *testing.T, s *Server) string {
	t.Helper()
	conn, err := client.Dial(t.Context(), s.socketPath)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in, text := bufio.NewReader(conn), []byte(nil)
	for range 2 {
		fmt.Fprint(conn, "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n")
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text, err = io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/plain") {
			t.Fatalf("%d %v %v", r.StatusCode, r.Header, err)
		}
	}
	return string(text)
}

func TestMetricsDescribeTheNode(t *testing.T) {
	t.Parallel()
	c, s := serveLimited(t, api.Limits{})
	askHost(t, c)
	if err := c.Call(t.Context(), "get_message", api.MessageRequest{FormRef: api.RefTo("7")}, nil); err == nil {
		t.Fatal("there is a message 7")
	}
	lines := strings.Split(scrape(t, s), "\n")
	for _, want := range []string{
		"parley_agents 2", "parley_open_forms 1", "parley_read_only 0", "parley_disk_flush_seconds 0", "parley_peers_known 0", "parley_peers_refused_letters_total 0",
		`parley_calls_total{code="OK",operation="form"} 1`, `parley_calls_total{code="NO_SUCH_MESSAGE",operation="get_message"} 1`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("there is no %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}

func TestMetricNamesFollowConventions(t *testing.T) {
	t.Parallel()
	problems, err := promlint.New(strings.NewReader(scrape(t, serveServer(t)))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "parley_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestMetricsAreOnlyRead(t *testing.T) {
	t.Parallel()
	if status, e := rawPost(t, serveServer(t), metricsPath, nil); status != http.StatusMethodNotAllowed || e.Code == "" {
		t.Errorf("%d %v", status, e)
	}
}

func TestMetricsAreForTheHostOnly(t *testing.T) {
	t.Parallel()
	c, s := serveLimited(t, api.Limits{})
	askHost(t, c)
	fae, err := s.node.ActAs(t.Context(), "fae")
	if err != nil {
		t.Fatal(err)
	}
	get := func(token string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Address()+metricsPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	for name, x := range map[string]struct {
		token  string
		status int
		want   string
	}{
		"no token":                 {"", 401, "UNAUTHENTICATED"},
		"no token of ours":         {"secret", 401, "UNAUTHENTICATED"},
		"of a guest":               {makeToken(t, fae, "read", "ask", "answer"), 403, "NOT_PERMITTED"},
		"of the host, not to read": {makeToken(t, s.node.Host(), "ask", "answer", "admin"), 403, "NOT_PERMITTED"},
		"of the host":              {makeToken(t, s.node.Host(), "read"), 200, "parley_open_forms 1\n"},
	} {
		if status, body := get(x.token); status != x.status || !strings.Contains(body, x.want) {
			t.Errorf("%s: %d %.300s, want %d and %q", name, status, body, x.status, x.want)
		}
	}
	names := func(text string) (found []string) {
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "# TYPE ") {
				found = append(found, line)
			}
		}
		return found
	}
	if _, body := get(makeToken(t, s.node.Host(), "read")); !slices.Equal(names(body), names(scrape(t, s))) {
		t.Errorf("it is not what the socket has:\n%s", body)
	}
}

// Labels that anybody could add without a bound would fill the memory of the monitoring system.
func TestCallersCannotAddMetrics(t *testing.T) {
	t.Parallel()
	c, s := serveLimited(t, api.Limits{})
	for i := range 5 {
		if err := c.Call(t.Context(), fmt.Sprint("fly", i), api.NodeRequest{}, nil); err == nil {
			t.Fatal("it flies")
		}
	}
	if text := scrape(t, s); strings.Contains(text, "fly") {
		t.Error(text)
	}
}

// manyPeersCollector is the collector of a node that knows more nodes than have metrics.
type manyPeersCollector struct{ *collector }

func (c manyPeersCollector) Collect(to chan<- prometheus.Metric) {
	known := make([]view.Peer, maxPeerMetrics+1)
	for i := range known {
		known[i] = view.Peer{Node: capabilities.NodeOf([32]byte{byte(i), byte(i >> 8)}), Waiting: 2}
	}
	c.collectPeers(to, known, view.Traffic{})
}

func TestNodesWithMetricsAreBounded(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(manyPeersCollector{newCollector(nil)})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		metrics := f.GetMetric()
		if strings.HasPrefix(f.GetName(), "parley_peer_") && len(metrics) != maxPeerMetrics {
			t.Errorf("%s is there %d times, want %d", f.GetName(), len(metrics), maxPeerMetrics)
		}
		if f.GetName() == "parley_peers_waiting_parcels" && metrics[0].GetGauge().GetValue() != 2*(maxPeerMetrics+1) {
			t.Errorf("outbox items wait: %v", metrics)
		}
	}
}
