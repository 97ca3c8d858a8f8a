package fair

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Lines lets one of each line through at a time, in the order in which they came. No line waits for another. The zero value is
// ready, and its methods may be called at the same time.
type Lines[K comparable] struct {
	mu      sync.Mutex
	waiting map[K][]chan struct{} // of each line of which one is through
}

// Enter blocks until the caller is through, or ctx ends. It then returns the cause. Who is through leaves once.
func (l *Lines[K]) Enter(ctx context.Context, k K) error {
	l.mu.Lock()
	waiting, taken := l.waiting[k]
	if !taken {
		if l.waiting == nil {
			l.waiting = map[K][]chan struct{}{}
		}
		l.waiting[k] = nil
		l.mu.Unlock()
		return nil
	}
	admitted := make(chan struct{})
	l.waiting[k] = append(waiting, admitted)
	l.mu.Unlock()
	select {
	case <-admitted:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting[k], admitted); i >= 0 {
		l.waiting[k] = slices.Delete(l.waiting[k], i, i+1)
	} else { // it was let through meanwhile
		l.next(k)
	}
	return context.Cause(ctx)
}

// Leave lets the next of the line through.
func (l *Lines[K]) Leave(k K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next(k)
}

func (l *Lines[K]) next(k K) {
	waiting := l.waiting[k]
	if len(waiting) == 0 {
		delete(l.waiting, k)
		return
	}
	close(waiting[0])
	waiting[0] = nil
	l.waiting[k] = waiting[1:]
}

// Waiting returns how many of a line wait.
func (l *Lines[K]) Waiting(k K) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting[k])
}

type later struct{}

// Later returns a context for work that can wait for other work of the same agent, as what an open page looks up by itself.
func Later(ctx context.Context) context.Context { return context.WithValue(ctx, later{}, true) }

// IsLater reports whether a context is for such work.
func IsLater(ctx context.Context) bool { return ctx.Value(later{}) != nil }

// Until has what a flow reads that could be read later end at a time: the flow shows what is there by then, and says what it lacks. It may
// go on behind that time, which a deadline would end.
func Until(ctx context.Context, end time.Time) context.Context {
	return context.WithValue(ctx, until{}, end)
}

// EndOf returns when such reading ends: after so long at most, and as Until has it.
func EndOf(ctx context.Context, most time.Duration) time.Time {
	end := time.Now().Add(most)
	if sooner, ok := ctx.Value(until{}).(time.Time); ok && sooner.Before(end) {
		return sooner
	}
	return end
}

type until struct{}
