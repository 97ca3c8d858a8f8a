package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal returns both sides of a new pseudo terminal.
func openTerminal(t *testing.T) (control, screen *os.File) {
	t.Helper()
	control, screen, err := newTerminal(unix.Winsize{Row: 50, Col: 140})
	if err != nil {
		t.Fatal(err)
	}
	return control, screen
}

// newTerminal opens both sides of a new pseudo terminal of a size. The caller closes them.
func newTerminal(size unix.Winsize) (control, screen *os.File, err error) {
	control, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	var number int
	raw, err := control.SyscallConn()
	if err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed != nil {
			return
		}
		if number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); failed != nil {
			return
		}
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &size)
	})
	if err = errors.Join(err, failed); err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, errors.Join(err, control.Close())
	}
	return control, screen, nil
}

// onTerminal is a program for scripts: it runs a command on a terminal, types a file's text, and prints all that the
// terminal shows: onTerminal FILE COMMAND… The ttyin of testscript may lose the end of the output.
func onTerminal() {
	keys, err := os.ReadFile(os.Args[1])
	if err != nil {
		fail(err)
	}
	control, screen, err := newTerminal(unix.Winsize{}) // COLUMNS has its width
	if err != nil {
		fail(err)
	}
	c := exec.Command(os.Args[2], os.Args[3:]...)
	c.Stdin, c.Stdout, c.Stderr = screen, screen, screen
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		fail(err)
	}
	if err := screen.Close(); err != nil { // the command has its own
		fail(err)
	}
	if _, err := control.Write(keys); err != nil {
		fail(err)
	}
	if _, err := io.Copy(os.Stdout, control); !errors.Is(err, syscall.EIO) { // EIO once nobody has the other side
		fail(fmt.Errorf("the terminal ended with %w", err))
	}
	if err := c.Wait(); err != nil {
		fail(err)
	}
}

// fail ends a program for scripts.
func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
