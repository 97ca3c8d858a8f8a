package main

import (
	"errors"
	"net"
	"os"
	"testing"
)

// TestStopOfANodeThatDoesNotAnswer stops a node that ends in place of its answer.
func TestStopOfANodeThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	state := stateFolder(t.TempDir())
	held, err := state.lock()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", state.socket())
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = errors.Join(l.Close(), held.release(), conn.Close())
		}
		ended <- err
	}()
	stopped, err := stopNode(t.Context(), &environment{options: options{state: state}})
	if err != nil || stopped.PID != os.Getpid() {
		t.Errorf("%+v, %v", stopped, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
