package hook

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/gateway/api"
)

// TestOldestSessionGivesWay has more sessions find no node than are kept.
func TestOldestSessionGivesWay(t *testing.T) {
	o := Options{Unheard: filepath.Join(t.TempDir(), "state", api.UnheardFolder)}
	path := func(session string) string { return filepath.Join(o.Unheard, digest(session)+".json") }
	if err := os.MkdirAll(o.Unheard, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range maxUnheard {
		at := time.Unix(int64(2000+i), 0)
		if i == 2 {
			at = time.Unix(1000, 0) // the oldest
		}
		if err := errors.Join(os.WriteFile(path(fmt.Sprint(i)), nil, 0o600), os.Chtimes(path(fmt.Sprint(i)), at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := o.leave(api.Register{Session: fmt.Sprint(maxUnheard)}); err != nil {
		t.Fatal(err)
	}
	if all, err := os.ReadDir(o.Unheard); err != nil || len(all) != maxUnheard {
		t.Errorf("%d are kept: %v", len(all), err)
	}
	for i, want := range map[int]bool{0: true, 1: true, 2: false, maxUnheard: true} {
		if _, err := os.Stat(path(fmt.Sprint(i))); (err == nil) != want {
			t.Errorf("session %d is kept: %t", i, err == nil)
		}
	}
}
