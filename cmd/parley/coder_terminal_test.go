package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/internal/eventually"
)

// terminalTest is a program in a pseudo terminal.
type terminalTest struct {
	file    *os.File
	process *os.Process

	mu   sync.Mutex
	text strings.Builder // the output without escape sequences and white space, but for its last line
	last string
}

// escapes matches escape sequences, and white space, which programs replace by movements of the cursor.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?<>=!]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\|\x1b[()][A-Z0-9]|\x1b.|\s`)

// inTerminal starts a command in a terminal. The test's end kills it.
func inTerminal(t *testing.T, command *exec.Cmd) *terminalTest {
	t.Helper()
	control, screen := openTerminal(t)
	command.Stdin, command.Stdout, command.Stderr = screen, screen, screen
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = screen.Close()
	s := &terminalTest{file: control, process: command.Process}
	read := make(chan struct{})
	go func() { // ends with the program, which holds the other side
		defer close(read)
		s.read()
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		_ = control.Close()
		<-read
		if t.Failed() {
			t.Logf("the terminal has shown: %s", s.shown())
		}
	})
	return s
}

// read collects output, and answers what a program asks a terminal.
func (s *terminalTest) read() {
	var unread []byte // output that may end within a sequence: the last line
	buf := make([]byte, 64<<10)
	for {
		n, err := s.file.Read(buf)
		if err != nil {
			return
		}
		unread = append(unread, buf[:n]...)
		whole := bytes.LastIndexByte(unread, '\n') + 1
		for query, answer := range map[string]string{"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?62c"} {
			if strings.Contains(string(buf[:n]), query) {
				_, _ = s.file.WriteString(answer)
			}
		}
		s.mu.Lock()
		s.text.Write(escapes.ReplaceAll(unread[:whole], nil))
		s.last = string(escapes.ReplaceAll(unread[whole:], nil))
		s.mu.Unlock()
		unread = append([]byte(nil), unread[whole:]...)
	}
}

// shown returns everything that the terminal has shown so far.
func (s *terminalTest) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String() + s.last
}

// expect waits for a text, white space aside.
func (s *terminalTest) expect(t *testing.T, text string) {
	t.Helper()
	eventually.Holds(t, fmt.Sprintf("the terminal shows %q", text), func() bool {
		return strings.Contains(s.shown(), strings.Join(strings.Fields(text), ""))
	})
}

// times returns how often a text was drawn so far, white space aside.
func (s *terminalTest) times(text string) int {
	return strings.Count(s.shown(), strings.Join(strings.Fields(text), ""))
}

// expectAgain waits for a text that was drawn so often before.
func (s *terminalTest) expectAgain(t *testing.T, before int, text string) {
	t.Helper()
	eventually.Holds(t, fmt.Sprintf("the terminal shows %q again", text), func() bool { return s.times(text) > before })
}

// press sends keys.
func (s *terminalTest) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.file.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// enter types a line as a person does, and presses Enter once the program shows it, or after two seconds, as it may draw the
// line in pieces. A busy program may take Enter for a part of what was typed, so it is pressed again until the line has been
// taken. With an empty line that does nothing.
func (s *terminalTest) enter(t *testing.T, line, what string, taken func() bool) {
	t.Helper()
	typed := strings.Join(strings.Fields(line), "")
	before := strings.Count(s.shown(), typed)
	s.press(t, line)
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end) && strings.Count(s.shown(), typed) == before; {
		time.Sleep(50 * time.Millisecond) // between two keys
	}
	pressed := time.Time{}
	eventually.Holds(t, what, func() bool {
		if time.Since(pressed) > 5*time.Second {
			s.press(t, "\r")
			pressed = time.Now()
		}
		return taken()
	})
}

// interrupt presses Escape until no approval is open. A program that has just begun to wait may take the first for the
// beginning of another key.
func (s *terminalTest) interrupt(t *testing.T, state string) {
	t.Helper()
	pressed := time.Time{}
	eventually.Holds(t, "no approval is open", func() bool {
		if time.Since(pressed) > 2*time.Second {
			s.press(t, "\x1b")
			pressed = time.Now()
		}
		out, _, exit := runTest(t.Context(), state, nil, "permit", "ls")
		return exit == 0 && out == ""
	})
}

// kill kills the program.
func (s *terminalTest) kill(t *testing.T) {
	t.Helper()
	if err := s.process.Kill(); err != nil {
		t.Fatal(err)
	}
}
