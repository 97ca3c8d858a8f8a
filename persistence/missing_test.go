package persistence

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"parley"
)

// TestRefusedStartMakesNoFolderOfAMissingJournal opens a journal whose folder, or that of its server, is gone: an empty one in its place
// would have a journal that is moved back end up within it. Moved back, all is there.
func TestRefusedStartMakesNoFolderOfAMissingJournal(t *testing.T) {
	for _, name := range []string{"", serverFolder} {
		t.Run(filepath.Join("journal", name), func(t *testing.T) {
			o := testOptions(t)
			j := open(t, o)
			w := make(writer)
			w.write(t, j, 1, 3)
			closeJournal(t, j)
			gone, aside := filepath.Join(journalFolder(o.Folder), name), filepath.Join(t.TempDir(), "aside")
			if err := os.Rename(gone, aside); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), o)
			wantCode(t, err, parley.CorruptLog)
			if _, err := os.Lstat(gone); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is there again: %v", gone, err)
			}
			_ = os.RemoveAll(gone)
			if err := os.Rename(aside, gone); err != nil {
				t.Fatal(err)
			}
			w.check(t, open(t, o))
		})
	}
}
