//go:build unix

package exec

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/actors/runtime"
	"parley/capabilities"
)

func FuzzParseLine(f *testing.F) {
	for _, seed := range []string{
		`{"type":"output","text":"a"}`, `{"type":"ask","id":"a","prompt":"?","widgets":[{"type":"checkbox","options":["a"],"default":"a"}]}`,
		`{"type":"ask_user","id":"a","title":"?","fields":[{"name":"n","type":"number","default":1,"pattern":{"minimum":1}}],"timeoutMs":9223372036854775807}`,
		`{"type":"approval","id":"a","tool":"shell","input":{"command":"ls"}}`, `{"type":"send","to":"bob","text":"t"}`, `{"type":"error","message":"m"}`,
		`{"type":"done","text":"t","error":"e","run":"r"}`, `{"type":5}`, `{"type":"done"`, `[[[[`, "\xff{", `{"type":"ask","id":{"a":1}}`, `{"TYPE":"done","type":null}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, plain, err := parseLine(strings.ToValidUTF8(text, "\ufffd"))
		if len(l.ID) > runtime.MaxID {
			t.Errorf("an id of %d bytes", len(l.ID))
		}
		if err != nil {
			reply := refusal(l.ID, err).Line
			if !json.Valid(reply) || bytes.Count(reply, []byte("\n")) != 1 {
				t.Errorf("the refusal is %q", reply)
			}
		}
		if plain || err != nil {
			return
		}
		switch l.Type {
		case typeAsk, typeAskUser:
			q, err := l.question()
			if err == nil && (q.ID == "" || q.Timeout < 0 || len(q.Fields) == 0 || q.Description == "") {
				t.Errorf("asks %+v", q)
			}
		case typeApproval:
			c := l.call()
			if c.Tool == "" || !json.Valid([]byte(c.Input)) || capabilities.Nesting([]byte(c.Input)) > runtime.MaxDepth {
				t.Errorf("calls %+v", c)
			}
		case typeOutput, typeSend, typeError, typeDone:
		default:
			t.Errorf("type %q", l.Type)
		}
	})
}

func FuzzCutAt(f *testing.F) {
	f.Add("aé漢🙂b", 3)
	f.Add("\x80\x80\x80\x80\x80\x80", 5)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < utf8.UTFMax || limit >= len(text) {
			return
		}
		end := runtime.CutAt(text, limit)
		if end > limit || end <= limit-utf8.UTFMax || end == 0 {
			t.Errorf("%q is cut at %d of %d", text, end, limit)
		}
		if utf8.ValidString(text) && !utf8.ValidString(text[:end]) {
			t.Errorf("%q is cut through a character at %d", text, end)
		}
	})
}
