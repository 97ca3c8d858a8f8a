package persistence

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestTasksRestBesideWriters has a task take a piece for each commit, while others write and while nobody does. It takes four
// times as long in the first case.
func TestTasksRestBesideWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pieces = 100
		for written, want := range map[bool]time.Duration{true: 4 * pieces * piece, false: pieces * piece} {
			d := &directory{}
			p := newPace(d)
			each := p.each(t.Context(), func(number uint64, _ []byte) error {
				time.Sleep(piece) // virtual: it works
				if written && number%10 == 0 {
					d.mu.Lock()
					d.head.Number++
					d.mu.Unlock()
				}
				return nil
			})
			began := time.Now()
			for number := range uint64(pieces) {
				if err := each(number, nil); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took != want {
				t.Errorf("while others write %t: %v for %v of work", written, took, pieces*piece)
			}
		}
	})
}
