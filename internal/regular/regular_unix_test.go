package regular

import (
	"errors"
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

// TestOnlyFilesAreCreated opens a file to write to where there is none, and does not write through a link.
func TestOnlyFilesAreCreated(t *testing.T) {
	folder := t.TempDir()
	file, link, loose, pipe := filepath.Join(folder, "file"), filepath.Join(folder, "link"), filepath.Join(folder, "loose"), filepath.Join(folder, "pipe")
	for _, err := range []error{os.Symlink(file, link), os.Symlink(filepath.Join(folder, "none"), loose), syscall.Mkfifo(pipe, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // it is made, and then there
		f, err := OpenOrCreate(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{link, loose, pipe, folder} {
		if f, err := OpenOrCreate(path); !errors.Is(err, ErrNot) {
			t.Errorf("%s was opened: %v, %v", filepath.Base(path), f, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(folder, "none")); err == nil {
		t.Error("a file was made through a link")
	}
}
