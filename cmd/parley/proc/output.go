package proc

import (
	"context"
	"io"
	"io/fs"
	"os"
	"time"
)

// LetGo closes one of the process's own outputs, and puts the null device in its place.
func LetGo(out *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close() //nolint:errcheck // nothing is written to it
	return replace(null, out)
}

// LetGoOnceOrphaned lets an output go once the process that started this one has ended, since it has no reader then. It
// blocks until that happens or ctx ends. It lets pipes go only: a file or a terminal blocks no reader.
func LetGoOnceOrphaned(ctx context.Context, out io.Writer) {
	file, isFile := out.(*os.File)
	if !isFile || !isPipe(file) {
		return
	}
	for !orphaned() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	_ = LetGo(file) // at worst a reader waits longer
}

func isPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&fs.ModeNamedPipe != 0
}
