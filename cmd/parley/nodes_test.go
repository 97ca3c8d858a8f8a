package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// fakeNode starts a server with a fixed response for each operation, and returns its state folder.
func fakeNode(t *testing.T, says map[string]string) string {
	t.Helper()
	state := t.TempDir()
	socket, err := net.Listen("unix", filepath.Join(state, socketFile))
	if err != nil {
		t.Fatal(err)
	}
	node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(says[path.Base(r.URL.Path)])) // the client may have gone away
	}))
	_ = node.Listener.Close() // replaced by the node's socket
	node.Listener = socket
	node.Start()
	t.Cleanup(node.Close)
	return state
}

const (
	testNode = "NAF7DXHFFWTNQ26QE4GW2RDIQQPTRTKCEH53L72DHOCWU3GNHQZDXAVE"
	testForm = "01J00000000000000000000000@" + testNode
)

func TestNodesCommandOutput(t *testing.T) {
	t.Parallel()
	asked := `{"form":"` + testForm + `","promise":"` + testForm + `","number":0,"unreachable":true}`
	state := fakeNode(t, map[string]string{
		"form": asked, "request": asked,
		"await":        `{"status":"answered","values":{"a":"x"}}`,
		"send":         `{"message":"` + testForm + `","number":0,"unreachable":true}`,
		"reply":        `{"message":"` + testForm + `","number":1,"unreachable":true}`,
		"respond_form": `{"status":"answering"}`, "resolve": `{"status":"answering"}`,
		"decline_form": `{"status":"answering"}`, "reject": `{"status":"answering"}`,
		"invite":           `{"id":"` + testForm + `","name":"bob","until":"2026-02-25T10:00:00.000Z","locator":"parley://x"}`,
		"list_invitations": `{"invitations":[{"id":"` + testForm + `","name":"b\u202e","until":"2026-02-25T10:00:00.000Z"}]}`,
		"accept":           `{"name":"alice","node":"` + testNode + `","host":"` + testForm + `"}`,
		"list_nodes": `{"nodes":[{"node":"` + testNode + `","name":"alice","reachable":true,"lastHeard":"2026-02-25T10:00:00.000Z","waiting":0,"traffic":{}},
			{"node":"` + testNode + `","reachable":false,"waiting":12,"traffic":{}}]}`,
		"status": `{"node":"` + testNode + `","peers":{"known":2,"reachable":1,"waiting":3,"traffic":{}}}`,
	})
	const (
		later = `the node of "bob" cannot be reached now; it is sent when it can` + "\n"
		kept  = " is kept, and goes to its home when that can be reached\n"
	)
	for _, x := range []struct{ args, out, errs string }{
		{"form bob D --field a:A", "a: x\n", "parley: note: " + later},
		{"form bob D --field a:A --no-wait", testForm + "\n", "parley: note: " + later},
		{"form bob D --field a:A --no-wait --json", asked + "\n", ""},
		{"request bob D", "a: x\n", "parley: note: " + later},
		{"send bob hi", testForm + "\n", "parley: note: " + later},
		{"send bob hi --json", `{"message":"` + testForm + `","number":0,"unreachable":true}` + "\n", ""},
		{"reply 3 hi", testForm + "\n", "parley: note: the node of whoever sent 3 cannot be reached now; it is sent when it can\n"},
		{"answer 0 --value a:x", "form 0: the answer" + kept, ""},
		{"answer 0 --value a:x --json", `{"status":"answering"}` + "\n", ""},
		{"resolve 0 bob", "form 0: the answer" + kept, ""},
		{"decline 0 no", "form 0: the refusal" + kept, ""},
		{"reject 0 no", "form 0: the refusal" + kept, ""},
		{"invite bob", "parley://x\n", ""},
		{"invite bob --json", `{"id":"` + testForm + `","name":"bob","until":"2026-02-25T10:00:00.000Z","locator":"parley://x"}` + "\n", ""},
		{"invite --list", `b\u{202e} until 2026-02-25T10:00:00.000Z` + "\n", ""},
		{"accept alice parley://x", "alice is the host of node " + testNode + "\n", ""},
		{"nodes", "alice  " + testNode + "  reachable    last heard 2026-02-25T10:00:00.000Z  0 waiting\n" +
			"-      " + testNode + "  unreachable  never heard                          12 waiting\n", ""},
	} {
		out, errs, exit := runTest(t.Context(), state, nil, strings.Fields(x.args)...)
		if out != x.out || errs != x.errs || exit != exitDone {
			t.Errorf("%s: exit %d\n%s%s\nwant\n%s%s", x.args, exit, out, errs, x.out, x.errs)
		}
	}
	out, _, _ := runTest(t.Context(), state, nil, "status")
	if !strings.Contains(out, "\npeers:      2 known, 1 reachable, 3 waiting\n") {
		t.Error(out)
	}
}

func TestInvitationIsReadFromStandardInput(t *testing.T) {
	t.Parallel()
	var got string
	state := fakeNode(t, map[string]string{"accept": `{"name":"alice","node":"` + testNode + `","host":"` + testForm + `"}`})
	for in, want := range map[string]string{
		"\n parley://x \r\n":                 "",
		" \n":                                "parley: INVALID_ARGUMENT: standard input has no invitation",
		strings.Repeat("x", maxInvitation):   "",
		strings.Repeat("x", maxInvitation+1): "parley: TOO_LARGE: standard input has more than 8192 bytes",
	} {
		if _, got, _ = runTest(context.Background(), state, strings.NewReader(in), "accept", "alice"); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%.20q: %s", in, got)
		}
	}
	if _, got, _ = runTest(t.Context(), state, nil, "accept", "alice", strings.Repeat("x", maxInvitation+1)); !strings.HasPrefix(got, "parley: TOO_LARGE") {
		t.Error(got)
	}
}
