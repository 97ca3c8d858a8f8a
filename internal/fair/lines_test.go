package fair

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
)

func TestOneOfALineIsThroughAtATimeInTheOrderInWhichTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lines[string]
		through := make(chan int)
		for i := range 5 {
			go func() {
				if err := l.Enter(t.Context(), "A"); err != nil {
					t.Error(err)
				}
				through <- i
				l.Leave("A")
			}()
			synctest.Wait() // in this order
		}
		if n := l.Waiting("A"); n != 4 {
			t.Errorf("%d wait", n)
		}
		if err := l.Enter(t.Context(), "B"); err != nil || l.Waiting("B") != 0 {
			t.Error("one line waits for another:", err)
		}
		l.Leave("B")
		var order []int
		for range 5 {
			order = append(order, <-through)
		}
		synctest.Wait()
		if !slices.Equal(order, []int{0, 1, 2, 3, 4}) || len(l.waiting) != 0 {
			t.Errorf("%v were let through, and %d lines are left", order, len(l.waiting))
		}
	})
}

func TestWhoGivesUpHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lines[string]
		if err := l.Enter(t.Context(), "A"); err != nil {
			t.Fatal(err)
		}
		gone := errors.New("gone")
		ctx, giveUp := context.WithCancelCause(t.Context())
		got := make(chan error, 2)
		go func() { got <- l.Enter(ctx, "A") }()
		synctest.Wait()
		go func() { got <- l.Enter(t.Context(), "A") }()
		synctest.Wait()
		giveUp(gone)
		if err := <-got; !errors.Is(err, gone) {
			t.Error(err)
		}
		l.Leave("A")
		if err := <-got; err != nil {
			t.Error(err)
		}
		l.Leave("A")
		if len(l.waiting) != 0 {
			t.Errorf("%d lines are left", len(l.waiting))
		}
	})
}
