package main

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"parley"
)

// movedError is the error of a node whose state folder is no longer where it was.
type movedError struct{ error }

func (e movedError) Unwrap() error { return e.error }

// wasMoved reports whether a node has ended because its state folder is no longer where it was.
func wasMoved(err error) bool {
	_, is := errors.AsType[movedError](err)
	return is
}

// lookForFolder is the time between two looks whether the state folder is where it was.
const lookForFolder = time.Second

// moved returns a channel of the error of a state folder that was moved away, removed or replaced: two looks in a row found none, or another. A look that
// fails in another way says nothing. The function that is returned ends the looks.
//
// The files that are open have moved with the folder, and what is acknowledged goes there. But a node opens others by their paths, also when it ends. In a folder
// that has taken the place, as a backup that was restored there, these are the files of another process.
func (s stateFolder) moved() (<-chan error, func(), error) {
	own, err := os.Open(string(s)) // while it is open, no other has its number
	if err != nil {
		return nil, nil, err
	}
	found, end := make(chan error, 1), make(chan struct{})
	go func() {
		defer own.Close() //nolint:errcheck // only looked at
		every := time.NewTicker(lookForFolder)
		defer every.Stop()
		for missed := 0; missed < 2; {
			select {
			case <-every.C:
			case <-end:
				return
			}
			is, err := own.Stat()
			if err != nil {
				continue
			}
			switch there, err := os.Stat(string(s)); {
			case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(is, there):
				missed++
			case err == nil:
				missed = 0
			}
		}
		found <- movedError{parley.Refuse(parley.ReadOnly, "the state folder %s was moved away, removed or replaced while the node runs: the node has ended, as if it was killed", s).
			WithHint("what it acknowledged is where the folder is now: start the node there with --state, or put the folder back")}
	}()
	return found, func() { close(end) }, nil
}
