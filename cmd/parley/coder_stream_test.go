package main

import (
	"encoding/json"
	"io"
	"sync"
	"testing"

	"parley/internal/eventually"
)

// streamTest is Claude Code without a terminal that reads one prompt after another, as the programs do that are made with its SDK. So several
// modes take one start of it. It is the same entry for a hook as "-p" with a prompt.
type streamTest struct {
	in io.WriteCloser

	mu      sync.Mutex
	modes   map[string]error // by the ID of a request, once it is answered
	results int
	ended   bool
	said    string
}

// inStream starts Claude Code for prompts on its standard input. The test's end ends it.
func (c *coderTest) inStream(t *testing.T, args ...string) *streamTest {
	t.Helper()
	command := c.command(t.Context(), append([]string{"-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"}, args...)...)
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s := &streamTest{in: in, modes: map[string]error{}}
	done := make(chan struct{})
	go func() { // ends with the program
		defer close(done)
		s.read(json.NewDecoder(out))
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-done
		_ = command.Wait() // the test's context has ended it
	})
	return s
}

func (s *streamTest) read(messages *json.Decoder) {
	for {
		var m json.RawMessage
		if err := messages.Decode(&m); err != nil {
			s.mu.Lock()
			s.ended = true
			s.mu.Unlock()
			return
		}
		var of struct {
			Type     string `json:"type"`
			Response struct {
				ID      string `json:"request_id"`
				Subtype string `json:"subtype"`
				Error   string `json:"error"`
			} `json:"response"`
		}
		_ = json.Unmarshal(m, &of)
		s.mu.Lock()
		s.said = string(m)
		switch of.Type {
		case "result":
			s.results++
		case "control_response":
			s.modes[of.Response.ID] = nil
			if of.Response.Subtype != "success" {
				s.modes[of.Response.ID] = errorString(of.Response.Error)
			}
		}
		s.mu.Unlock()
	}
}

type errorString string

func (e errorString) Error() string { return string(e) }

func (s *streamTest) write(t *testing.T, message any) {
	t.Helper()
	text, err := json.Marshal(message)
	if err == nil {
		_, err = s.in.Write(append(text, '\n'))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// setMode changes the permission mode.
func (s *streamTest) setMode(t *testing.T, mode string) {
	t.Helper()
	s.write(t, map[string]any{"type": "control_request", "request_id": mode, "request": map[string]any{"subtype": "set_permission_mode", "mode": mode}})
	eventually.Holds(t, "the mode is set to "+mode, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		err, answered := s.modes[mode]
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		return answered
	})
}

// prompt enters a prompt. The function that it returns waits until the turn has ended.
func (s *streamTest) prompt(t *testing.T, text string) (end func()) {
	t.Helper()
	s.mu.Lock()
	before := s.results
	s.mu.Unlock()
	s.write(t, map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": text}})
	return func() {
		t.Helper()
		eventually.Holds(t, "the turn has ended", func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.ended {
				t.Fatalf("it has ended: %s", s.said)
			}
			return s.results > before
		})
	}
}
