package runtime

import (
	"context"
	"strings"
	"time"
)

// gatherFor is how long output is gathered at most before it is written.
const gatherFor = 50 * time.Millisecond

// gather writes what a program puts out, in pieces of at most MaxText and not one by one. One goroutine uses it.
type gather struct {
	desk   Desk
	stream Stream
	text   strings.Builder
	due    <-chan time.Time // when to flush at the latest; nil if there is nothing
	tail   *tail
	failed error // why the desk keeps nothing any more
}

// add takes text of a stream.
func (g *gather) add(ctx context.Context, stream Stream, text string) {
	if text == "" {
		return
	}
	if stream != Notice {
		g.tail.add(text)
	}
	if stream != g.stream {
		g.flush(ctx)
		g.stream = stream
	}
	for g.text.Len()+len(text) >= MaxText {
		end := len(text)
		if room := MaxText - g.text.Len(); end > room {
			end = cutAt(text, room)
		}
		g.text.WriteString(text[:end])
		g.flush(ctx)
		text = text[end:]
	}
	g.text.WriteString(text)
	if g.due == nil && g.text.Len() > 0 {
		g.due = time.After(gatherFor)
	}
}

// flush writes what was gathered.
func (g *gather) flush(ctx context.Context) {
	g.due = nil
	if g.text.Len() == 0 {
		return
	}
	text := g.text.String()
	g.text.Reset()
	if g.failed == nil {
		g.failed = g.desk.Write(ctx, g.stream, text)
	}
}

// put writes a piece by itself, after what was gathered.
func (g *gather) put(ctx context.Context, stream Stream, text string) {
	g.flush(ctx)
	g.stream = stream
	g.text.WriteString(text)
	g.flush(ctx)
}

// tail is the last that a program has put out.
type tail struct{ text []byte }

func (t *tail) add(text string) {
	t.text = append(t.text, text[max(0, len(text)-tailOf):]...)
	if over := len(t.text) - tailOf; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
}

func (t *tail) String() string { return strings.ToValidUTF8(string(t.text), "") }
