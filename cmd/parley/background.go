package main

import (
	"context"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// A program that reads what a script prints waits until every process that could still print has ended.
// Those of ours that outlive the script which started them let its outputs go, so that nobody waits for
// them: a node gives up standard output, which it never uses, and a wait gives up standard error.

// letGo puts nothing in the place of one of the process's own outputs.
func letGo(out *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // nothing is written to it
	return replace(null, out)
}

// letGoOnceOrphaned watches, until ctx ends, for the end of the process that started this one. What is
// said after it, nobody listens to any more. Only pipes are let go: a file or a terminal keeps nobody
// waiting.
func (p *program) letGoOnceOrphaned(ctx context.Context) {
	err, isFile := p.stderr.(*os.File)
	if !isFile || !isPipe(err) {
		return
	}
	for !orphaned() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	_ = letGo(err) // then somebody waits longer than needed
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}

// orphaned reports whether the process that started this one has ended: then the parent is one that has
// taken it over, which is not in its group. A process that leads its group was put there by a shell, and
// is no background process of a script.
func orphaned() bool {
	group := syscall.Getpgrp()
	if group == os.Getpid() {
		return false
	}
	parents, err := syscall.Getpgid(os.Getppid())
	return err != nil || parents != group
}
