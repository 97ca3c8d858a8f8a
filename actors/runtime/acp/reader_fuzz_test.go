//go:build unix

package acp

import (
	"bufio"
	"encoding/json"
	"strings"
	"testing"

	"parley/actors/runtime"
)

// FuzzReader checks that the reader passes on one message a line, of a kind that it counts.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{}}`, `{"id":1,"result":{}}`, `{"method":"session/update"}`, `{"id":null,"method":"x"}`,
		`{"method":"$/cancel_request","params":{"requestId":1}}`, `{"id":{},"method":"session/update"}`, `{"error":5}`, `[]`, "\x00", `{"METHOD":"session/update"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, strays := make(chan runtime.Piece), 0
		g := newReader(out, func(string) { strays++ })
		lines := 0
		go func() {
			defer close(out)
			for l := range strings.Lines(strings.ToValidUTF8(text, "\ufffd")) {
				out <- runtime.Piece{Text: l}
			}
		}()
		for in := bufio.NewReader(g); ; lines++ {
			l, err := in.ReadString('\n')
			if err != nil {
				for range out {
				}
				break
			}
			var m message
			if err := json.Unmarshal([]byte(l), &m); err != nil {
				t.Errorf("%q is let through: %v", l, err)
			}
			switch {
			case m.Method == "" && m.ID != nil, m.Method == "$/cancel_request" && m.ID == nil:
			case m.Method == "session/update" && m.ID == nil:
				g.handle(true, m.Params)
			case m.Method != "session/update" && m.ID != nil:
				g.handle(false, m.Params)
				g.answer()
			default:
				t.Errorf("%q is let through", l)
			}
		}
		if g.notified != g.handled || g.requested != 0 || g.held != 0 {
			t.Errorf("%d came and %d were handled; %d are open; %d bytes are held", g.notified, g.handled, g.requested, g.held)
		}
	})
}
