package gateway

import (
	"fmt"
	"testing"
)

func TestOutputIsReadFromItsEnd(t *testing.T) {
	t.Parallel()
	h := openTestServer(t)
	h.worker("w", "", `for n in 1 2 3; do echo "$PARLEY_PROMPT $n"; echo aside >&2; sleep 0.1; done`)
	k := h.dial("host")
	read := func(members string) (pieces []any, cursor float64) {
		f := k.ask("read_output", `,"agentId":"w"`+members)
		return f["pieces"].([]any), f["cursor"].(float64)
	}
	if pieces, cursor := read(`,"tail":0`); len(pieces) != 0 || cursor != 0 {
		t.Errorf("before there is any: %v, %v", pieces, cursor)
	}
	sent := k.ask("send_agent_message", `,"agentId":"w","text":"x"`)
	if f := k.ask("wait_for_finish", `,"agentId":"w"`); f["status"] != "idle" {
		t.Fatalf("got %v", f)
	}
	all, end := read("")
	if len(all) < 2 {
		t.Fatalf("got %v", all)
	}
	for _, p := range all {
		if piece := p.(map[string]any); piece["message"] != sent["message"] || piece["run"] == nil {
			t.Errorf("got %v, want what was put out for %v", piece, sent["message"])
		}
	}
	if pieces, cursor := read(`,"tail":0`); len(pieces) != 0 || cursor != end {
		t.Errorf("the cursor alone: %v, %v", pieces, cursor)
	}
	if pieces, cursor := read(`,"tail":1`); len(pieces) != 1 || fmt.Sprint(pieces[0]) != fmt.Sprint(all[len(all)-1]) || cursor != end {
		t.Errorf("the last: %v, %v", pieces, cursor)
	}
	if pieces, cursor := read(`,"tail":1000000`); fmt.Sprint(pieces) != fmt.Sprint(all) || cursor != end {
		t.Errorf("all: %v, %v", pieces, cursor)
	}
	if pieces, cursor := read(fmt.Sprintf(`,"after":%.0f`, end)); len(pieces) != 0 || cursor != end {
		t.Errorf("after the end: %v, %v", pieces, cursor)
	}
	for _, members := range []string{`"tail":-1`, `"tail":1,"after":1`, `"tail":1,"waitMs":1`, `"tail":1,"limit":1`} {
		k.send(`{"type":"read_output_request","requestId":"r","agentId":"w",` + members + `}`)
		if f := k.answer(); f["code"] != "INVALID_ARGUMENT" {
			t.Errorf("%s: got %v", members, f)
		}
	}
}
