package actors

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley/actors/view"
	"parley/capabilities"
)

// BenchmarkUse reads a small file of a folder that a guest was given: two events on disk for each use.
func BenchmarkUse(b *testing.B) {
	n := openNode(b, b.TempDir())
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o644); err != nil {
		b.Fatal(err)
	}
	fae := guest(b, n, "fae")
	giveFolder(b, n, "fae", dir, capabilities.Facet{Mode: capabilities.ReadOnly})
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			u, err := ResourcesOf(fae).Use(b.Context(), Used{Name: "@mail/0/notes", Verb: "read", Input: map[string]capabilities.Value{"path": capabilities.String("a")}, Wait: time.Minute})
			if err != nil || u.State != view.UseDone {
				b.Fatal(u.State, err)
			}
		}
	})
}
