package keys_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley"
	"parley/actors/keys"
)

// TestKeySaysWhatIsTheMatterWithTheDisk makes a key on a file system that is read-only.
func TestKeySaysWhatIsTheMatterWithTheDisk(t *testing.T) {
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", syscall.MS_RDONLY, "size=16k"); err != nil {
		t.Skipf("NOT TESTED: cannot mount a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(small, syscall.MNT_DETACH) })
	_, err := keys.LoadOrCreate(filepath.Join(small, "state"))
	if e := parley.AsError(err); e.Code != parley.ReadOnly || !strings.HasPrefix(e.Hint, "its file system is read-only") {
		t.Errorf("%v, %s", err, e.Hint)
	}
}
