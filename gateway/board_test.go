package gateway

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// TestBoardShowsExportedMetrics checks docs/grafana.json: each metric in it is one that /metrics has.
func TestBoardShowsExportedMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "docs", "grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(text) {
		t.Fatal("the board is no JSON")
	}
	h := openTestServer(t)
	described := make(chan *prometheus.Desc, 1000)
	h.server.metrics.calls.Describe(described)
	newCollector(h.server).Describe(described)
	close(described)
	exported := map[string]bool{}
	name := regexp.MustCompile(`fqName: "([^"]+)"`)
	for d := range described {
		exported[name.FindStringSubmatch(d.String())[1]] = true
	}
	shown := regexp.MustCompile(`\bparley_\w+`).FindAllString(string(text), -1)
	if len(shown) < 10 {
		t.Errorf("the board shows %d metrics", len(shown))
	}
	for _, m := range shown {
		if !exported[m] {
			t.Errorf("the board shows %s, which /metrics does not have", m)
		}
	}
}
