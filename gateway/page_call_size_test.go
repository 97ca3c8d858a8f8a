package gateway

import (
	"net/url"
	"strings"
	"testing"
)

// TestPageShowsLargestCall opens calls of the largest input, in the list and whole. Each is decided from its own page.
func TestPageShowsLargestCall(t *testing.T) {
	t.Parallel()
	h := openPageServer(t)
	const largest = 256 << 10
	inputOf := func(before, piece, after string) string {
		left := largest - len(before) - len(after)
		return before + strings.Repeat(piece, left/len(piece)) + strings.Repeat("x", left%len(piece)) + after
	}
	for name, test := range map[string]struct{ tool, input string }{
		"lines":         {"Write", inputOf(`{"file_path":"/srv/a","content":"`, `\"<\\&>\n`, `last"}`)},
		"one line":      {"Write", inputOf(`{"file_path":"/srv/a","content":"`, `\"<`, `last"}`)},
		"a description": {"Bash", inputOf(`{"command":"make","description":"`, `\"<`, `last"}`)},
		"a long value":  {"mcp__db__query", inputOf(`{"sql":"`, `\"<`, `last"}`)},
		"many keys":     {"mcp__db__query", inputOf(`{"sql":[`, `[],`, `"last"]}`)},
		"an edit":       {"Edit", inputOf(`{"file_path":"/srv/a","old_string":"`+strings.Repeat(`a\n`, 40_000)+`","new_string":"`, `b\n`, `last"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			p := h.approve(test.tool, test.input)
			if status, _, body := h.get("/questions", "text/html"); status != 200 || len(body) > 200<<10 || !strings.Contains(body, "the raw input") {
				t.Errorf("the list: %d, %d bytes", status, len(body))
			}
			path := "/forms/" + p.Form.String()
			status, _, body := h.get(path, "text/html")
			if status != 200 || !strings.Contains(body, "last") || !strings.Contains(body, h.digest(p)) {
				t.Fatalf("its page: %d, %d bytes", status, len(body))
			}
			if status, _, body := h.postForm(path, url.Values{"do": {"answer"}, "f0": {"once"}}); status != 303 {
				t.Fatalf("decided: %d %.500s", status, body)
			}
			if !h.permitted(p) {
				t.Error("it is not allowed")
			}
		})
	}
}
