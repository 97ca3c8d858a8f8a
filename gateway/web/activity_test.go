package web

import (
	"fmt"
	"strings"
	"testing"

	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// piecesOf returns pieces of output from texts as "stream: text".
func piecesOf(texts ...string) []view.OutputPiece {
	pieces := make([]view.OutputPiece, len(texts))
	for i, s := range texts {
		stream, text, _ := strings.Cut(s, ": ")
		pieces[i] = view.OutputPiece{Cursor: uint64(10 + i), Stream: stream, Text: text, At: capabilities.Time(100 * (i + 1))}
	}
	return pieces
}

func sketch(all []moment) string {
	var b strings.Builder
	for _, m := range all {
		fmt.Fprintf(&b, "%s %s: %s%s", m.Key, m.Kind, m.HTML, m.Text)
		if m.Kind == "tool" {
			fmt.Fprintf(&b, "%s %s", m.Tool.Line, m.Tool.Sign())
		}
		for _, e := range m.Plan {
			fmt.Fprintf(&b, "%s %s ", e.Sign(), e.Content)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestActivityShowsWhatAgentReports(t *testing.T) {
	all, _ := merge(piecesOf(
		"output: I **fix** it.\n", "output: Now ", "output: really.\n",
		`notice: {"sessionUpdate":"tool_call","toolCallId":"c1","title":"Edit","status":"pending","parley/line":"edit checkout.go +9 −4 · pending"}`,
		`notice: {"sessionUpdate":"plan","entries":[{"content":"old","status":"pending"}]}`,
		"errors: warning\n",
		`notice: {"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`,
		`notice: {"sessionUpdate":"plan","entries":[{"content":"fix","status":"completed"},{"content":"test","status":"in_progress"}]}`,
		`notice: {"sessionUpdate":"agent_thought_chunk","text":"I "}`, `notice: {"sessionUpdate":"agent_thought_chunk","text":"think"}`,
		`notice: {"sessionUpdate":["hostile"]}`, "notice: no JSON", `notice: {"sessionUpdate":"tool_call","toolCallId":"c2"}`,
		"output: \x1b[32mdone\x1b[0m <b>\n",
	), nil, false, false, position{endOfOutput, 0})
	const want = `o10 said: I <strong>fix</strong> it.
Now really.
o13 tool: edit checkout.go +9 −4 ✓
o15 errors: warning
o17 plan: ✓ fix ◌ test 
o18 thought: I think
o22 tool: a tool ○
o23 output: <span class="f2">done</span> &lt;b&gt;
`
	if got := sketch((&page{}).moments(local{}, all, true)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestActivityCutsBothSourcesAtOneTime has more output than mail before the window, and a message with a date to come.
func TestActivityCutsBothSourcesAtOneTime(t *testing.T) {
	mail := []view.Message{{Number: 3, Date: 50}, {Number: 4, Date: 150}, {Number: 5, Date: 1 << 60}, {Number: 6, Date: 250}}
	all, next := merge(piecesOf("output: a", "output: b", "output: c"), mail, true, false, position{endOfOutput, 7})
	var keys []string
	for _, s := range all {
		keys = append(keys, s.key)
	}
	if got := strings.Join(keys, " "); got != "o10 m4 o11 m5 m6 o12" || next != (position{10, 4}) {
		t.Errorf("got %s, and before it %v", got, next)
	}
	if p, err := parsePosition(next.String()); err != nil || p != next {
		t.Errorf("%v, %v", p, err)
	}
}

func TestActivityIsDrawnInBoundedBlocks(t *testing.T) {
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprintf("output: %d %s\n", i, strings.Repeat("x", 1000)))
	}
	all, _ := merge(piecesOf(texts...), nil, false, false, position{endOfOutput, 0})
	drawn := (&page{}).moments(local{}, all, false)
	if len(drawn) != 5 {
		t.Errorf("%d blocks", len(drawn))
	}
	for _, m := range drawn {
		if len(m.HTML) > 2*maxBlock {
			t.Errorf("a block of %d bytes", len(m.HTML))
		}
	}
	if m := (&page{}).moments(local{}, []source{{ended: &events.RunEnded{Error: "exit 1"}, key: "e1"}}, false); m[0].Text != "Failed: exit 1" {
		t.Errorf("%+v", m)
	}
}
