package regular

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOnlyFilesAreOpened has what would wait for a writer, or lead elsewhere, in the place of a file.
func TestOnlyFilesAreOpened(t *testing.T) {
	folder := t.TempDir()
	file, link, pipe, linked := filepath.Join(folder, "file"), filepath.Join(folder, "link"), filepath.Join(folder, "pipe"), filepath.Join(folder, "linked")
	for _, err := range []error{os.WriteFile(file, []byte("text"), 0o600), os.Symlink(file, link), syscall.Mkfifo(pipe, 0o600), os.Symlink(pipe, linked)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string][2]string{file: {"text", "text"}, link: {"", "text"}, pipe: {}, linked: {}, folder: {}, filepath.Join(folder, "none"): {}} {
		b, err := Read(path)
		if string(b) != want[0] || (err == nil) != (want[0] != "") {
			t.Errorf("Read(%s): %q, %v", filepath.Base(path), b, err)
		}
		b, err = ReadLinked(path)
		if string(b) != want[1] || (err == nil) != (want[1] != "") {
			t.Errorf("ReadLinked(%s): %q, %v", filepath.Base(path), b, err)
		}
	}
}
