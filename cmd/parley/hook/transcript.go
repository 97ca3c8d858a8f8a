package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"parley/gateway/api"
)

// maxTranscript bounds how much of a transcript is read, from its end.
const maxTranscript = 16 << 20

// entryOf is what is read of one line of Claude Code's transcript. Other members are ignored, and lines that are no such
// entries too: the format is the program's own.
type entryOf struct {
	Type    string `json:"type"`
	Side    bool   `json:"isSidechain"`
	Failed  bool   `json:"isApiErrorMessage"`
	Message struct {
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// isAnswer reports whether the entry is an answer of the model, which a request has come before.
func (e entryOf) isAnswer() bool {
	return e.Type == "assistant" && !e.Side && !e.Failed && e.Message.Model != "<synthetic>"
}

// readTail returns the last part of a file, without the line that it begins within, and false if it cannot be read.
func readTail(path string, most int64) ([]byte, bool) {
	info, err := os.Stat(path)
	if path == "" || err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // only read from
	from := max(0, info.Size()-most)
	text, err := io.ReadAll(io.NewSectionReader(f, from, most))
	if err != nil {
		return nil, false
	}
	if from > 0 {
		_, text, _ = bytes.Cut(text, []byte{'\n'})
	}
	return text, true
}

// readProof looks for offers in a transcript. A text was shown if the result of read_mail has its mark, and an answer of the
// model follows. It is kept if no answer follows yet. An offer of which there is nothing, not even the notice, is lost. Where
// the transcript cannot be read nothing is known. It is written behind: last is an answer of the model that the agent itself
// tells, and which follows all that is there if it is not there itself; "" for none.
func readProof(path string, offers []api.Offer, last string) (p api.Proof) {
	text, ok := readTail(path, maxTranscript)
	if !ok {
		return p
	}
	p.Read = true
	marks := map[api.Mark]int{} // the line of each, -1 for one that an answer follows
	told := map[string]bool{}
	said := last == ""
	quoted, _ := json.Marshal(last) // a text always has a JSON form
	quoted = quoted[1 : len(quoted)-1]
	for line := range bytes.Lines(text) {
		open := false
		for _, at := range marks {
			open = open || at >= 0
		}
		names := false
		for _, o := range offers {
			names = names || bytes.Contains(line, []byte(o.Token))
		}
		if !said && bytes.Contains(line, []byte(`"assistant"`)) {
			said = bytes.Contains(line, quoted)
		}
		if !names && !(open && bytes.Contains(line, []byte(`"assistant"`))) {
			continue
		}
		var e entryOf
		if json.Unmarshal(line, &e) != nil || e.Side {
			continue
		}
		if e.isAnswer() {
			for m := range marks {
				marks[m] = -1
			}
			continue
		}
		if !names || e.Type == "queue-operation" || e.Type == "assistant" {
			continue
		}
		for _, o := range offers {
			if !bytes.Contains(line, []byte(o.Token)) {
				continue
			}
			told[o.Token] = true
			if e.Type != "user" || !bytes.Contains(e.Message.Content, []byte(`"tool_result"`)) {
				continue
			}
			for _, n := range o.Numbers {
				m := api.Mark{Token: o.Token, Number: n}
				if _, before := marks[m]; !before && hasMark(e.Message.Content, m) {
					marks[m] = 1
				}
			}
		}
	}
	for m, at := range marks {
		if at < 0 || !said {
			p.Shown = append(p.Shown, m)
		} else {
			p.Kept = append(p.Kept, m)
		}
	}
	for _, o := range offers {
		if !told[o.Token] {
			p.Lost = append(p.Lost, o.Token)
		}
	}
	return p
}

// hasMark reports whether a text has a mark, which no digit follows.
func hasMark(text []byte, m api.Mark) bool {
	mark := fmt.Appendf(nil, "%s:%d", m.Token, m.Number)
	for {
		at := bytes.Index(text, mark)
		if at < 0 {
			return false
		}
		if text = text[at+len(mark):]; len(text) == 0 || text[0] < '0' || text[0] > '9' {
			return true
		}
	}
}

// interruption is what Claude Code writes in place of the rest of a turn that a person has ended.
const interruption = "[Request interrupted by user"

// isIdle reports whether the transcript ends with an answer that calls nothing, or with a turn that a person has interrupted: no
// hook says so, and the one that says that the agent stops may have found no node.
func isIdle(path string) bool {
	text, ok := readTail(path, 64<<10)
	if !ok {
		return false
	}
	var last entryOf
	for line := range bytes.Lines(text) {
		var e entryOf
		if json.Unmarshal(line, &e) == nil && !e.Side && (e.Type == "user" || e.Type == "assistant") {
			last = e
		}
	}
	if last.Type == "assistant" {
		return !bytes.Contains(last.Message.Content, []byte(`"tool_use"`))
	}
	return bytes.Contains(last.Message.Content, []byte(interruption))
}
