package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/sys/unix"

	"parley/internal/eventually"
)

// screen is a program on a pseudo-terminal.
type screen struct {
	t    *testing.T
	ctrl *os.File

	mu   sync.Mutex
	text strings.Builder // since the last change of the size
	wide bool
}

// openScreen runs a program on a pseudo-terminal, until the test ends.
func openScreen(t *testing.T, c *exec.Cmd) *screen {
	t.Helper()
	ctrl, tty := openTerminal(t)
	s := &screen{t: t, ctrl: ctrl}
	s.resize()
	c.Stdin, c.Stdout, c.Stderr = tty, tty, tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close() // the program has its own
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 1<<16)
		for {
			n, err := ctrl.Read(buf)
			s.mu.Lock()
			s.text.Write(buf[:n])
			s.mu.Unlock()
			if err != nil {
				return // the program has ended
			}
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill() // it may have ended
		_ = c.Wait()         // killed
		<-ended
		_ = ctrl.Close()
	})
	return s
}

// resize gives the terminal another size, so that the program draws all of it again.
func (s *screen) resize() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Reset()
	s.wide = !s.wide
	size := &unix.Winsize{Row: 24, Col: 110}
	if s.wide {
		size.Col = 120
	}
	if err := unix.IoctlSetWinsize(int(s.ctrl.Fd()), unix.TIOCSWINSZ, size); err != nil {
		s.t.Fatal(err)
	}
}

// drawn returns what was drawn since the last change of the size.
func (s *screen) drawn() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ansi.Strip(s.text.String())
}

// shows waits until the screen has all of the texts.
func (s *screen) shows(texts ...string) {
	s.t.Helper()
	tries := 0
	eventually.Holds(s.t, "the terminal shows "+strings.Join(texts, ", "), func() bool {
		drawn := s.drawn()
		for _, text := range texts {
			if !strings.Contains(drawn, text) {
				if tries++; tries%20 == 0 {
					s.resize()
				}
				return false
			}
		}
		return true
	})
}

// decides waits until keys decide on the message that is shown.
func (s *screen) decides(keys string) {
	s.t.Helper()
	s.resize()
	s.shows(keys)
}

// types presses keys.
func (s *screen) types(keys string) {
	s.t.Helper()
	if _, err := s.ctrl.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

func TestWatchDecidesOnATerminal(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	t.Cleanup(func() { killNodes(t, state) })
	run := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "parley", append(args, "--state", state)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("start", "--listen", "off")
	run("mkguest", "fae")
	run("approve", "Edit", `{"file_path":"shop/a.go","old_string":"one\ntwo","new_string":"one\ntoo"}`, "--folder", "/srv/shop", "--as", "fae", "--no-wait")

	watch := exec.CommandContext(t.Context(), "parley", "watch", "--state", state)
	watch.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1")
	s := openScreen(t, watch)
	s.shows("1 needs you", `0. fae wants to edit shop/a.go (Edit)`, "-two", "+too", "a allow")

	// what arrives is shown, and the selection stays
	run("approve", "Bash", `{"command":"git push origin main"}`, "--folder", "/srv/shop", "--as", "fae", "--no-wait")
	s.shows("2 need you", `git push origin main`, "▸ 0.")

	// denied with a reason; then the next one opens
	s.types("d")
	s.shows("Deny, with the reason")
	s.types("not today\r")
	s.shows("0: ✕ Denied · not today", "$ git push origin main", "1 needs you")
	if got := run("inbox"); !strings.Contains(got, "✕ Denied · not today") {
		t.Error(got)
	}

	// the node goes away, a key decides nothing then, and it comes back
	run("stop")
	s.shows("cut off: ")
	s.types("a")
	s.shows("nothing is decided while the node is away")
	run("start", "--listen", "off")
	run("form", "HOST", "Deploy?", "--field", "where:Where", "--as", "fae", "--no-wait")
	s.shows("2 need you", `Deploy?`)

	// always, by a rule that is shown in words and chosen
	s.decides("A always")
	s.types("d")
	s.shows("Deny, with the reason")
	s.types("a reason that is left")
	s.shows("a reason that is left")
	s.types("\x1b")
	s.decides("A always")
	s.types("A")
	s.shows("1. exactly this call, in /srv/shop", "2. git push to origin")
	s.types("2\r")
	s.shows("1: ✓ Always: git push to origin", "1 needs you", "where: Where (text")
	if got := run("rules", "ls", "fae"); !strings.Contains(got, "git push to origin") {
		t.Error(got)
	}
	if got := run("permit", "show", "1", "--json"); strings.Contains(got, "a reason that is left") || !strings.Contains(got, `"always"`) {
		t.Errorf("a reason left from a denial goes with what is allowed: %s", got)
	}

	// snoozed, and back
	s.decides("s snooze")
	s.types("s")
	s.shows("Snooze until")
	s.types("\x152h\r")
	s.shows("2: snoozed until ", "nothing needs you")
	if got := run("inbox", "--snoozed"); !strings.Contains(got, `2. "fae" sent form "Deploy?"`) {
		t.Error(got)
	}
	run("snooze", "2", "off")
	s.shows("1 needs you", "where: Where (text")

	// an answer
	s.decides("a answer")
	s.types("r")
	s.shows("Ask:")
	s.types("which cluster?\r")
	s.shows("you (#", "): which cluster?", "2: asked: which cluster?", "1 needs you")
	run("reply", "2", "the old one", "--as", "fae")
	s.shows("the old one")
	s.types("a")
	s.shows("Where *:")
	s.types("\x15eu\r")
	s.shows("2: answered", "nothing needs you")
	if got := run("await", "2", "--as", "fae"); got != "where: eu\n" {
		t.Error(got)
	}
	s.types("q")
	if err := watch.Wait(); err != nil {
		t.Error(err)
	}
}

// TestWatchSaysWhatAVoteIs allows a call that needs another, too.
func TestWatchSaysWhatAVoteIs(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	t.Cleanup(func() { killNodes(t, state) })
	for _, args := range []string{
		"start --listen off", "mkguest fae", "mkhost ops", "send fae @ops", "adopt 0 ops --as fae",
		`approve Bash {"command":"make"} --folder /srv --as fae --no-wait --need 2 --escalate 1ms:ops`,
	} {
		if out, err := exec.CommandContext(t.Context(), "parley", append(strings.Fields(args), "--state", state)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", args, err, out)
		}
	}
	watch := exec.CommandContext(t.Context(), "parley", "watch", "--state", state)
	watch.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1")
	s := openScreen(t, watch)
	s.decides("a allow")
	s.types("a")
	s.shows(`1: ◐ Voted · 1 of 2 votes; waits for "ops"`, "nothing needs you")
	if drawn := s.drawn(); strings.Contains(drawn, "Allowed") {
		t.Errorf("a vote is shown as a decision: %s", drawn)
	}
}

// TestHeldKeyDecidesOnce holds A down, as a keyboard does that repeats it, while two calls wait and a third comes.
func TestHeldKeyDecidesOnce(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	t.Cleanup(func() { killNodes(t, state) })
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "parley", append(args, "--state", state)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("start", "--listen", "off")
	run("mkguest", "fae")
	approve := func(command string) {
		t.Helper()
		run("approve", "Bash", fmt.Sprintf(`{"command":%q}`, command), "--as", "fae", "--folder", "/srv", "--no-wait")
	}
	watch := exec.CommandContext(t.Context(), "parley", "watch", "--state", state)
	watch.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1")
	s := openScreen(t, watch)
	s.shows("no messages")
	approve("one")
	approve("two")
	s.decides("a allow")
	var held sync.WaitGroup
	held.Go(func() {
		for range 80 {
			s.types("a")
			time.Sleep(30 * time.Millisecond) // as a keyboard repeats
		}
	})
	s.shows("✓ Allowed once", "1 needs you", "just shown")
	approve("three")
	s.shows("2 need you")
	held.Wait()
	if got := run("inbox"); strings.Count(got, "✓ Allowed once") != 1 {
		t.Error(got)
	}
	s.decides("a allow")
	s.types("a")
	s.shows("✓ Allowed once", "1 needs you")
}

// TestWatchDecidesSeveral decides on identical calls as one row, and on rows that are marked.
func TestWatchDecidesSeveral(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	t.Cleanup(func() { killNodes(t, state) })
	run := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "parley", append(args, "--state", state)...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", args, err, out)
		}
		return string(out)
	}
	run("start", "--listen", "off")
	run("mkguest", "fae")
	for _, command := range []string{"one", "one", "two", "one", "three"} {
		run("approve", "Bash", fmt.Sprintf(`{"command":%q}`, command), "--as", "fae", "--folder", "/srv", "--no-wait")
	}
	watch := exec.CommandContext(t.Context(), "parley", "watch", "--state", state)
	watch.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=1")
	s := openScreen(t, watch)
	s.shows("3 need you", "▸ 0.", "3 × identical: 0 1 3")
	s.decides("a allow")
	s.types("a")
	s.shows("0, 1, 3: ✓ Allowed once", "2 need you", "▸ 2.")
	s.decides("d deny")
	s.types("JJ") // selects both
	s.shows("2 selected", "✓ 2.", "▸✓4.")
	s.decides("d deny")
	s.types("d")
	s.shows("Deny 2 calls, with the reason")
	s.types("no\r")
	s.shows("2, 4: ✕ Denied · no", "nothing needs you")
	if got := run("inbox"); strings.Count(got, "✕ Denied · no") != 2 || strings.Count(got, "✓ Allowed once") != 3 {
		t.Error(got)
	}
	s.types("q")
	if err := watch.Wait(); err != nil {
		t.Error(err)
	}
}
