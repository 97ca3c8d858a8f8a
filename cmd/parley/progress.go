package main

import (
	"fmt"
	"io"
	"os"
	"sync"
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
	still func() // says again that it goes on
	ended func() // ends the watch of the disk
}

const (
	progressAfter = time.Second // what takes less shows nothing
	progressEach  = 200 * time.Millisecond
)

// progress returns a progress that is shown if the errors of the command go to a terminal. Where nothing goes on for long, it is said which
// disk that may be. The caller ends it.
func (env *environment) progress(what, folder string) *progress {
	p := &progress{what: what, next: time.Now().Add(progressAfter)}
	p.still, p.ended = env.sayWaiting(func() string {
		return fmt.Sprintf("nothing was %s for %s: the disk of %s hangs, or what gives it does", what, sayAfter, folder)
	})
	if f, ok := env.stderr.(*os.File); ok && term.IsTerminal(f.Fd()) {
		p.out = f
	}
	return p
}

func (p *progress) add(bytes int) {
	p.bytes += int64(bytes)
	if p.still != nil {
		p.still()
	}
	if now := time.Now(); p.out != nil && !now.Before(p.next) {
		p.next, p.shown = now.Add(progressEach), true
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s %.1f MiB", p.what, float64(p.bytes)/(1<<20)) // it is not the result
	}
}

// end clears the line, for what the command prints.
func (p *progress) end() {
	if p.ended != nil {
		p.ended()
	}
	if p.shown {
		p.shown = false
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

// sayAfter is how long what may wait for a disk waits without a word.
const sayAfter = 5 * time.Second

// sayWaiting has a command say so, once, when nothing has gone on for long. A disk that hangs can keep this process too from going on,
// so it is said beside it. The caller calls still when something goes on, and end at the end.
func (env *environment) sayWaiting(words func() string) (still, end func()) {
	said := make(chan struct{})
	timer := time.AfterFunc(sayAfter, func() {
		defer close(said)
		fmt.Fprintf(env.stderr, "parley: note: %s\n", words())
	})
	still = func() {
		if timer.Stop() {
			timer.Reset(sayAfter)
		}
	}
	return still, sync.OnceFunc(func() {
		if !timer.Stop() {
			<-said
		}
	})
}
