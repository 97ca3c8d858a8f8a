package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/charmbracelet/x/term"
)

// progress shows on a terminal how much a command has copied, while that takes long.
type progress struct {
	out   io.Writer // nil where nothing is shown
	what  string    // is done with the bytes, as "backed up"
	bytes int64
	next  time.Time // when it is shown again
	shown bool
}

const (
	progressAfter = time.Second // what takes less shows nothing
	progressEach  = 200 * time.Millisecond
)

// progress returns a progress that is shown if the errors of the command go to a terminal. The caller ends it.
func (env *environment) progress(what string) *progress {
	p := &progress{what: what, next: time.Now().Add(progressAfter)}
	if f, ok := env.stderr.(*os.File); ok && term.IsTerminal(f.Fd()) {
		p.out = f
	}
	return p
}

func (p *progress) add(bytes int) {
	p.bytes += int64(bytes)
	if now := time.Now(); p.out != nil && !now.Before(p.next) {
		p.next, p.shown = now.Add(progressEach), true
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s %.1f MiB", p.what, float64(p.bytes)/(1<<20)) // it is not the result
	}
}

// end clears the line, for what the command prints.
func (p *progress) end() {
	if p.shown {
		_, _ = io.WriteString(p.out, "\r\x1b[K")
	}
}

// progressWriter and progressReader count what goes through them.
type (
	progressWriter struct {
		*progress
		to io.Writer
	}
	progressReader struct {
		*progress
		from io.Reader
	}
)

func (w progressWriter) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	w.add(n)
	return n, err
}

func (r progressReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	r.add(n)
	return n, err
}
