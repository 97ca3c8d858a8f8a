package main

import (
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMCPConformance runs the official conformance suite against a node, for the scenarios that apply. The others are in
// testdata/mcp_conformance.yml with their reasons. PARLEY_CONFORMANCE is the suite's program, with a node beside it.
func TestMCPConformance(t *testing.T) {
	suite := os.Getenv("PARLEY_CONFORMANCE")
	if suite == "" {
		t.Skip("PARLEY_CONFORMANCE names no suite")
	}
	t.Parallel()
	h := openModelServer(t)
	node := &url.URL{Scheme: "http", Host: h.listen}
	front := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { // the suite shows no token
		r.SetURL(node)
		r.Out.Host = r.In.Host
		r.Out.Header.Set("Authorization", "Bearer "+h.token)
	}})
	defer front.Close()
	c := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(suite), "node"), suite, "server", "--url", front.URL+"/mcp",
		"--expected-failures", filepath.Join("testdata", "mcp_conformance.yml"), "--output-dir", t.TempDir())
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	for _, scenario := range []string{"server-initialize", "ping", "tools-list", "server-sse-multiple-streams", "dns-rebinding-protection"} {
		if !strings.Contains(string(out), "✓ "+scenario+":") {
			t.Errorf("%s has not passed", scenario)
		}
	}
}
