package runtime

import (
	"context"
	"strings"
	"time"

	"parley"
)

// FlushDelay is the longest time for which output is buffered.
const FlushDelay = 50 * time.Millisecond

// OutputBuffer collects a program's output and writes it to the host in pieces of at most MaxText. One goroutine uses
// it.
type OutputBuffer struct {
	host   Host
	stream Stream
	text   strings.Builder
	Due    <-chan time.Time // when to flush at the latest; nil if there is nothing
	Tail   *Tail
	Err    error // why the host takes no more output
}

// NewOutputBuffer returns a buffer that writes to a host.
func NewOutputBuffer(h Host) *OutputBuffer { return &OutputBuffer{host: h, Tail: &Tail{}} }

// Add adds text of a stream.
func (g *OutputBuffer) Add(ctx context.Context, stream Stream, text string) {
	if text == "" {
		return
	}
	if stream != Notice {
		g.Tail.Add(text)
	}
	if stream != g.stream {
		g.Flush(ctx)
		g.stream = stream
	}
	for g.text.Len()+len(text) >= MaxText {
		end := len(text)
		if room := MaxText - g.text.Len(); end > room {
			end = CutAt(text, room)
		}
		g.text.WriteString(text[:end])
		g.Flush(ctx)
		text = text[end:]
	}
	g.text.WriteString(text)
	if g.Due == nil && g.text.Len() > 0 {
		g.Due = time.After(FlushDelay)
	}
}

// Flush writes the buffered text. After an error it drops the text.
func (g *OutputBuffer) Flush(ctx context.Context) {
	g.Due = nil
	if g.text.Len() == 0 {
		return
	}
	text := g.text.String()
	g.text.Reset()
	if g.Err == nil {
		g.Err = g.host.Write(ctx, g.stream, text)
	}
}

// Put flushes the buffer and writes text as a piece of its own.
func (g *OutputBuffer) Put(ctx context.Context, stream Stream, text string) {
	g.Flush(ctx)
	g.stream = stream
	g.text.WriteString(text)
	g.Flush(ctx)
}

// Tail keeps the last TailSize bytes of a program's output.
type Tail struct{ text []byte }

// Add appends text.
func (t *Tail) Add(text string) {
	t.text = append(t.text, text[max(0, len(text)-TailSize):]...)
	if over := len(t.text) - TailSize; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
}

// String returns the kept text.
func (t *Tail) String() string { return strings.ToValidUTF8(string(t.text), "") }

// ProgramError returns the INTERNAL error with a program's own message, cut to TailSize.
func ProgramError(message string) error {
	if len(message) > TailSize {
		message = message[:CutAt(message, TailSize)]
	}
	return parley.Refuse(parley.Internal, "%s", message)
}

// Outlive returns a context that ends some time after another one, and the function that ends it at once.
func Outlive(ctx context.Context, more time.Duration) (context.Context, func()) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		defer end()
		select {
		case <-time.After(more):
		case <-longer.Done():
		}
	})
	return longer, func() {
		unhook()
		end()
	}
}

// CauseOf returns the cause of the end of ctx, or err if ctx has not ended.
func CauseOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
