package persistence

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// startEvents is the largest log that BenchmarkStart opens.
var startEvents = flag.Int("start.events", 100_000, "events of the largest log that BenchmarkStart opens")

// tailCommits is the number of commits, of some 1,100 bytes each, that follow the index snapshot at a kill: as many as
// there can be.
const tailCommits = indexEvery / 1100

// BenchmarkStart opens logs of 10^4 events and more, after a regular stop and after a kill. The time is also reported
// as a ratio to that of the log of 10^4 events.
func BenchmarkStart(b *testing.B) {
	first := map[bool]time.Duration{}
	for n := 10_000; n <= *startEvents; n *= 10 {
		o := testOptions(b)
		o.Folder = b.TempDir()
		full, err := o.withDefaults()
		if err != nil {
			b.Fatal(err)
		}
		f := filler{writer: make(writer)}
		tail := min(n/10, tailCommits)
		var indexed []byte // the file of the index at the kill
		if head := n/10 - tail; head > 0 {
			f.fill(b, o, head, 10)
			closeJournal(b, openAgain(b, o))
			if indexed, err = os.ReadFile(filepath.Join(o.Folder, indexFile)); err != nil {
				b.Fatal(err)
			}
		}
		f.fill(b, o, tail, 10)
		closeJournal(b, openAgain(b, o))
		syscall.Sync() // what was written before is no part of a start
		for _, clean := range []bool{true, false} {
			b.Run(fmt.Sprintf("events=%d/clean=%v", n, clean), func(b *testing.B) {
				var took, spent time.Duration
				for range b.N {
					b.StopTimer()
					if !clean {
						killed(b, &full)
						removeIndexSnapshot(b, o)
						if indexed != nil {
							if err := os.WriteFile(filepath.Join(o.Folder, indexFile), indexed, 0o600); err != nil {
								b.Fatal(err)
							}
						}
					}
					b.StartTimer()
					began, before := time.Now(), processorTime(b)
					j := openAgain(b, o)
					took += time.Since(began)
					spent += processorTime(b) - before
					b.StopTimer()
					closeJournal(b, j)
					b.StartTimer()
				}
				mean := took / time.Duration(b.N)
				if n == 10_000 {
					first[clean] = mean
				}
				b.ReportMetric(float64(mean.Milliseconds()), "ms/start")
				b.ReportMetric(float64(mean)/float64(first[clean]), "of-10^4")
				b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "cpu-ms/start")
			})
		}
	}
}

// processorTime returns the processor time of the process, which other load hardly changes.
func processorTime(b testing.TB) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func openAgain(b *testing.B, o Options) *Journal {
	b.Helper()
	j, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	return j
}

// BenchmarkSnapshotParts stores 2,400 parts of 64 KiB, as the first snapshot of a host with 10^6 names has,
// opens the journal after a stop and after a kill, and lists the parts.
// Objects are what an external server gets.
func BenchmarkSnapshotParts(b *testing.B) {
	const count, size = 2400, 64 << 10
	for _, objects := range []bool{true, false} {
		b.Run(fmt.Sprintf("objects=%v", objects), func(b *testing.B) {
			for range b.N {
				j := openAgain(b, testOptions(b))
				l, id := j.connection(), mailboxID(1)
				parts := make([]SnapshotPart, count)
				for i := range parts {
					data := bytes.Repeat([]byte(fmt.Sprintf("%08d", i)), size/8)
					parts[i] = SnapshotPart{sha256.Sum256(data), data}
				}
				began, before := time.Now(), processorTime(b)
				if !objects {
					if err := j.SaveSnapshotParts(b.Context(), id, parts); err != nil {
						b.Fatal(err)
					}
				} else {
					for _, p := range parts {
						if err := l.putObject(b.Context(), jetstream.ObjectMeta{Name: partName(id.ULID, p.Sum)}, p.Data); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(time.Since(began).Milliseconds()), "store-ms")
				b.ReportMetric(float64((processorTime(b) - before).Milliseconds()), "store-cpu-ms")
				closeJournal(b, j)
				for _, clean := range []string{"open", "open-killed"} {
					if clean == "open-killed" {
						killed(b, &j.o)
						if err := os.Remove(filepath.Join(blockFolderOf(&j.o, streamOf(j.o.bucketName())), serverState)); err != nil {
							b.Fatal(err)
						}
					}
					began, before = time.Now(), processorTime(b)
					j = openAgain(b, j.o)
					b.ReportMetric(float64(time.Since(began).Milliseconds()), clean+"-ms")
					b.ReportMetric(float64((processorTime(b) - before).Milliseconds()), clean+"-cpu-ms")
					closeJournal(b, j)
				}
				j = openAgain(b, j.o)
				l = j.connection()
				began, before = time.Now(), processorTime(b)
				if objects {
					bucket, err := l.bucket(b.Context())
					if err != nil {
						b.Fatal(err)
					}
					if _, err := bucket.List(b.Context()); err != nil {
						b.Fatal(err)
					}
				} else if _, err := l.listSubjects(b.Context(), j.o.bucketName()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(time.Since(began).Microseconds())/1000, "list-ms")
				b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000, "list-cpu-ms")
				closeJournal(b, j)
			}
		})
	}
}
