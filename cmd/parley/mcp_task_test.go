package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/gateway/client"
)

// taskCall makes a request of protocol 2026-07-28 over HTTP, of a client that takes tasks or not. It returns the result, or
// the error.
func (h *modelServer) taskCall(method, name, params string, takesTasks bool) string {
	h.t.Helper()
	extensions := ""
	if takesTasks {
		extensions = `"extensions":{"io.modelcontextprotocol/tasks":{}}`
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
		`"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{%s}}}}`, method, params, extensions)
	r, err := http.NewRequestWithContext(h.t.Context(), http.MethodPost, "http://"+h.listen+"/mcp", strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for key, value := range map[string]string{
		"Authorization": "Bearer " + h.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		if value != "" {
			r.Header.Set(key, value)
		}
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
			text = []byte(data)
		}
	}
	var response struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(text, &response); err != nil {
		h.t.Fatalf("%s: %s", method, text)
	}
	return string(response.Result) + string(response.Error)
}

// formTask is a task as a client reads it.
type formTask struct {
	ResultType, TaskID, Status, CreatedAt, LastUpdatedAt string
	TTL                                                  *int64 `json:"ttlMs"`
	Result                                               struct {
		StructuredContent struct {
			Status string
			Values map[string]any
		}
	}
}

func (h *modelServer) task(id string) (t formTask) {
	h.t.Helper()
	got := h.taskCall("tasks/get", id, `"taskId":"`+id+`",`, true)
	if err := json.Unmarshal([]byte(got), &t); err != nil || t.ResultType != "complete" || t.TaskID != id {
		h.t.Fatalf("tasks/get: %s", got)
	}
	return t
}

// TestFormIsTask has a client that takes tasks ask a form. The form's ID is the task's, also after a restart of the node.
func TestFormIsTask(t *testing.T) {
	t.Parallel()
	h := openModelServer(t)
	host := nodeClient(t, h.folder, "")
	const question = `"name":"ask_user","arguments":{"message":"Which?","fields":[{"name":"a"}]%s},`
	if got := h.taskCall("server/discover", "", "", true); !strings.Contains(got, `"extensions":{"io.modelcontextprotocol/tasks":{}}`) {
		t.Errorf("discovered %s", got)
	}
	if got := h.taskCall("tools/call", "ask_user", fmt.Sprintf(question, `,"timeoutSeconds":0`), false); !strings.Contains(got, `"status":"pending"`) || strings.Contains(got, "taskId") {
		t.Errorf("a client without tasks got %s", got)
	}
	if got := h.taskCall("tools/call", "list_inbox", `"name":"list_inbox","arguments":{},`, true); strings.Contains(got, "taskId") {
		t.Errorf("a call that does not wait is %s", got)
	}
	create := func() formTask {
		t.Helper()
		var made formTask
		got := h.taskCall("tools/call", "ask_user", fmt.Sprintf(question, ""), true)
		if err := json.Unmarshal([]byte(got), &made); err != nil || made.ResultType != "task" || made.Status != "working" || made.TTL != nil ||
			!strings.Contains(got, `"ttlMs":null`) || made.CreatedAt == "" || made.LastUpdatedAt == "" {
			t.Fatalf("made %s", got)
		}
		return made
	}

	made := create()
	h.close()
	h.open()
	if got := h.task(made.TaskID); got.Status != "working" {
		t.Errorf("an open form is %+v", got)
	}
	if got := h.taskCall("tasks/update", made.TaskID, `"taskId":"`+made.TaskID+`","inputResponses":{"x":{}},`, true); !strings.HasSuffix(got, `"resultType":"complete"}`) {
		t.Errorf("updated %s", got)
	}
	if _, err := host.Answer(t.Context(), client.ID(made.TaskID), map[string]any{"a": "this"}); err != nil {
		t.Fatal(err)
	}
	if got := h.task(made.TaskID); got.Status != "completed" || got.Result.StructuredContent.Status != "answered" || got.Result.StructuredContent.Values["a"] != "this" {
		t.Errorf("an answered form is %+v", got)
	}

	made = create()
	if _, err := host.Decline(t.Context(), client.ID(made.TaskID), "no"); err != nil {
		t.Fatal(err)
	}
	if got := h.task(made.TaskID); got.Status != "completed" || got.Result.StructuredContent.Status != "declined" {
		t.Errorf("a declined form is %+v", got)
	}

	made = create()
	for range 2 { // it may be repeated
		if got := h.taskCall("tasks/cancel", made.TaskID, `"taskId":"`+made.TaskID+`",`, true); !strings.HasSuffix(got, `"resultType":"complete"}`) {
			t.Errorf("cancelled %s", got)
		}
	}
	if got := h.task(made.TaskID); got.Status != "cancelled" {
		t.Errorf("a cancelled form is %+v", got)
	}

	received, err := host.Ask(t.Context(), client.Form{To: "fae", Description: "?", Fields: []client.Field{{Name: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{"none": "x", "a number": "0", "received": string(received.Form), "unknown": strings.Replace(made.TaskID, "0", "1", 1)} {
		for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
			if got := h.taskCall(method, id, `"taskId":"`+id+`",`, true); !strings.Contains(got, `"code":-32602`) {
				t.Errorf("%s, %s: %s", name, method, got)
			}
		}
	}
	if got := h.taskCall("tasks/get", "another", `"taskId":"`+made.TaskID+`",`, true); !strings.Contains(got, `"code":-32020`) {
		t.Errorf("another task in the header: %s", got)
	}
	for _, method := range []string{"tasks/list", "tasks/result"} {
		if got := h.taskCall(method, made.TaskID, `"taskId":"`+made.TaskID+`",`, true); !strings.Contains(got, `"code":-32601`) {
			t.Errorf("%s: %s", method, got)
		}
	}
}
