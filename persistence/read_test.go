package persistence

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley"
)

// TestReaderGivesUpOnACommitThatIsNotSent has a subscription in which nothing comes, though the commit can be fetched.
func TestReaderGivesUpOnACommitThatIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at progress
		at.reached(7)
		fetched := 0
		err := watch(t.Context(), &at, nil, func(number uint64) error {
			if fetched++; number != 7 {
				t.Errorf("commit %d was fetched", number)
			}
			return nil
		})
		if wantCode(t, err, parley.ReadOnly); fetched != maxStalls || !strings.Contains(err.Error(), "commit 7 ") {
			t.Errorf("%v after %d fetches", err, fetched)
		}
	})
}

// TestReaderWaitsForWhoTakesACommit has commits that are each taken for longer than a reader waits for one, as for a backup that
// is sent to somebody slow. Between them come others that stall for a while.
func TestReaderWaitsForWhoTakesACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at progress
		done := make(chan error, 1)
		ended := errors.New("the end")
		go func() {
			for number := uint64(1); number <= 5; number++ {
				at.reached(number)
				time.Sleep((maxStalls - 2) * stall) // virtual
				at.taking.Store(true)
				time.Sleep(10 * maxStalls * stall) // virtual
			}
			done <- ended
		}()
		fetched := 0
		err := watch(t.Context(), &at, done, func(uint64) error { fetched++; return nil })
		if !errors.Is(err, ended) || fetched < 5*(maxStalls-4) {
			t.Errorf("%v after %d fetches", err, fetched)
		}
	})
}
