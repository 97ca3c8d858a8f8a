package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	_ "github.com/cockroachdb/datadriven" // for its flag -rewrite

	"parley/gateway/api"
	"parley/gateway/api/openapi"
	"parley/gateway/client"
)

func TestOpenAPIDocumentIsStable(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(openapi.Describe("test"), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	golden := filepath.Join("testdata", "openapi.json")
	if f := flag.Lookup("rewrite"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is another: look at what changed, and run go test -run %s -rewrite ./gateway if it is wanted", golden, t.Name())
	}
}

func TestOpenAPIDocumentIsServed(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.guest("fae")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.server.Address()+api.OpenAPIPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	refused := fetch(t, http.DefaultClient, r, http.StatusUnauthorized)
	want(t, string(refused), "UNAUTHENTICATED")
	r.Header.Set("Authorization", "Bearer "+h.tokens["fae"])
	public := fetch(t, http.DefaultClient, r, http.StatusOK)

	socket := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return client.Dial(ctx, h.server.socketPath)
	}}}
	r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, "http://parley"+api.OpenAPIPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(public, fetch(t, socket, r, http.StatusOK)) {
		t.Error("the socket and the TCP address describe different operations")
	}
	var doc openapi.Document
	if err := json.Unmarshal(public, &doc); err != nil {
		t.Fatal(err)
	}
	for _, o := range api.Operations() {
		if p := doc.Paths[api.CallPath+o.Name].Post; p == nil || p.Scope != o.Scope {
			t.Errorf("%s: %v", o.Name, p)
		}
	}
}

func fetch(t *testing.T, c *http.Client, r *http.Request, status int) []byte {
	t.Helper()
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != status {
		t.Fatalf("%d %s %v, want %d", resp.StatusCode, text, err, status)
	}
	return text
}
