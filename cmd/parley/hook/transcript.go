package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"parley/gateway/api"
)

// maxTranscript bounds how much of a transcript is read, from its end.
const maxTranscript = 16 << 20

// step is what one line of a transcript says of a conversation. Its format is the program's own: members that are not known are
// ignored, and lines that are no such entries too.
type step struct {
	answer  bool              // an answer of the model, which a request has come before
	told    bool              // something that a request has for the model, and not from it
	reads   []string          // the IDs of calls by which the model reads mail
	results map[string][]byte // of calls, by their IDs
}

// entryOf is what is read of one line of Claude Code's transcript.
type entryOf struct {
	Type    string `json:"type"`
	Side    bool   `json:"isSidechain"`
	Failed  bool   `json:"isApiErrorMessage"`
	Message struct {
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// claudeStep reads a line of Claude Code's transcript.
func claudeStep(line []byte) (s step, ok bool) {
	var e entryOf
	if json.Unmarshal(line, &e) != nil || e.Side {
		return s, false
	}
	var blocks []struct {
		Type    string          `json:"type"`
		ID      string          `json:"id"`
		Name    string          `json:"name"`
		Use     string          `json:"tool_use_id"`
		Content json.RawMessage `json:"content"`
	}
	_ = json.Unmarshal(e.Message.Content, &blocks) // a text has none
	s.answer = e.Type == "assistant" && !e.Failed && e.Message.Model != "<synthetic>"
	s.told = e.Type != "assistant" && e.Type != "queue-operation"
	for _, b := range blocks {
		switch {
		case s.answer && b.Type == "tool_use" && isReadTool(b.Name):
			s.reads = append(s.reads, b.ID)
		case e.Type == "user" && b.Type == "tool_result":
			s.add(b.Use, b.Content)
		}
	}
	return s, true
}

func (s *step) add(call string, result []byte) {
	if s.results == nil {
		s.results = map[string][]byte{}
	}
	s.results[call] = result
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

// readProof looks for offers in a transcript. A text was shown if the result of a tool of Parley's that reads mail has its mark,
// and an answer of the model follows. It is kept if no answer follows yet. The same mark in the result of another tool is
// nothing. An offer of which there is nothing, not even the notice, is lost. Where the transcript cannot be read, text
// is nil and nothing is known. It is written behind: last is an answer of the model that the agent itself tells, and which follows all that is there
// if it is not there itself; "" for none.
func readProof(read func(line []byte) (step, bool), text []byte, offers []api.Offer, last string) (p api.Proof) {
	if text == nil || read == nil {
		return p
	}
	p.Read = true
	var (
		marks  = map[api.Mark]bool{} // whether an answer follows
		open   int                   // of them, those that none follows
		told   = map[string]bool{}
		reads  = map[string]bool{} // calls
		said   = last == ""
		quoted = encoded(last)
	)
	for line := range bytes.Lines(text) {
		names := slices.ContainsFunc(offers, func(o api.Offer) bool { return bytes.Contains(line, []byte(o.Token)) })
		if !said && bytes.Contains(line, []byte(`"assistant"`)) {
			said = bytes.Contains(line, quoted)
		}
		if !names && open == 0 && !bytes.Contains(line, []byte("_mail")) { // most lines are not read further
			continue
		}
		s, ok := read(line)
		if !ok {
			continue
		}
		if s.answer {
			for m := range marks {
				marks[m] = true
			}
			open = 0
		}
		for _, id := range s.reads {
			reads[id] = true
		}
		for _, o := range offers {
			told[o.Token] = told[o.Token] || names && s.told && bytes.Contains(line, []byte(o.Token))
			for call, result := range s.results {
				if !reads[call] {
					continue
				}
				for _, n := range o.Numbers {
					m := api.Mark{Token: o.Token, Number: n}
					if _, before := marks[m]; !before && hasMark(result, m) {
						marks[m] = false
						open++
					}
				}
			}
		}
	}
	for m, answered := range marks {
		if answered || !said {
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

// conversation returns the end of the conversation that a call is part of, in lines; nil if it cannot be read.
func (c toolCall) conversation() []byte { return c.endOfConversation(maxTranscript) }

func (c toolCall) endOfConversation(most int64) []byte {
	if c.lines != "" {
		return []byte(c.lines)
	}
	text, ok := readTail(c.transcript, most)
	if ok && text == nil {
		text = []byte{}
	}
	return text
}

// encoded returns a text as it stands within JSON.
func encoded(text string) []byte {
	quoted, _ := json.Marshal(text) // a text always has a JSON form
	return quoted[1 : len(quoted)-1]
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
