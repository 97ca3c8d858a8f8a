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
	"reflect"
	"strings"
	"testing"

	_ "github.com/cockroachdb/datadriven" // for its flag -rewrite

	"parley/gateway/api"
	"parley/gateway/client"
)

func TestTheDescriptionIsStable(t *testing.T) {
	text := func() []byte {
		b, err := json.MarshalIndent(document(table(), "test"), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		return append(b, '\n')
	}
	got := text()
	if !bytes.Equal(got, text()) {
		t.Error("it is not the same twice")
	}
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

func TestTheDescriptionHasEveryOperation(t *testing.T) {
	h := openTestServer(t)
	h.guest("fae")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.server.Address()+openAPIPath, nil)
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
	r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, "http://parley"+openAPIPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(public, fetch(t, socket, r, http.StatusOK)) {
		t.Error("the doors describe different things")
	}
	var doc apiDocument
	if err := json.Unmarshal(public, &doc); err != nil {
		t.Fatal(err)
	}
	for _, o := range api.Operations() {
		if p := doc.Paths[rpcPath+o.Name].Post; p == nil || p.Scope != o.Scope {
			t.Errorf("%s: %v", o.Name, p)
		}
	}
	var all any
	if err := json.Unmarshal(public, &all); err != nil {
		t.Fatal(err)
	}
	checkRefs(t, all, doc.Components.Schemas)
}

// checkRefs fails where a schema is referred to that there is not.
func checkRefs(t *testing.T, node any, known schemas) {
	switch node := node.(type) {
	case map[string]any:
		if ref, ok := node["$ref"].(string); ok && known[strings.TrimPrefix(ref, schemaPlace)] == nil {
			t.Errorf("there is no %s", ref)
		}
		for _, v := range node {
			checkRefs(t, v, known)
		}
	case []any:
		for _, v := range node {
			checkRefs(t, v, known)
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

// TestNoResponseHasMembersOfItsFrame holds for what stands inline beside them.
func TestNoResponseHasMembersOfItsFrame(t *testing.T) {
	made := schemas{}
	for _, o := range api.Operations() {
		name := strings.TrimPrefix(made.of(o.Response).Ref, schemaPlace)
		if name == "actors.Envelope" {
			continue // it stands under "message"
		}
		if name == "" {
			t.Errorf("the response of %s is %v, which is no object", o.Name, o.Response.Kind() == reflect.Struct)
			continue
		}
		for _, own := range []string{"type", "requestId"} {
			if made[name].Properties[own] != nil {
				t.Errorf("the response of %s has a member %q", o.Name, own)
			}
		}
	}
}
