package persistence

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/capabilities"
	"parley/events"
)

// TestLoadBoundsGarbage loads a mailbox of many large messages. The runtime's collector runs rarely, so that the bound is on
// the journal's own allocations.
func TestLoadBoundsGarbage(t *testing.T) {
	const count, size = 200, 120 << 10
	o := testOptions(t)
	j := open(t, o)
	writeLarge(t, j, count, size)
	closeJournal(t, j)
	defer debug.SetGCPercent(debug.SetGCPercent(1000))
	runtime.GC()
	before := heapNow()
	peak := watchHeap(t)
	j = open(t, o)
	l, err := j.Load(t.Context(), mailboxID(1))
	if err != nil || len(l.Events) != count {
		t.Fatalf("%d events, %v", len(l.Events), err)
	}
	grown, read := peak()-before, uint64(count*size)
	t.Logf("%d MiB of mail loaded with a heap of %d MiB", read>>20, grown>>20)
	// All that is allocated is some 187 MiB: a group, the events, and for commits in no group a copy by the server and one by
	// its connection, since nothing else reads the server's files. The server reads a block again when the reader is slow.
	if grown > read*10 {
		t.Errorf("loading %d MiB of mail took %d MiB", read>>20, grown>>20)
	}
	runtime.KeepAlive(l)
}

// writeLarge appends messages of a size to mailbox 1.
func writeLarge(t *testing.T, j *Journal, count, size int) {
	t.Helper()
	for i := range count {
		text := []events.Span{{Words: strings.Repeat(string(rune('a'+i%26)), size)}}
		e := &events.MessagePosted{Number: uint64(i), Message: mailboxID(1000 + i), From: mailboxID(2), To: mailboxID(1), Text: text, Date: capabilities.Time(i + 1)}
		body, err := events.Append(nil, events.Recorded{At: 1, Event: e})
		if err != nil {
			t.Fatal(err)
		}
		pos := j.Append(events.Section{Mailbox: mailboxID(1), First: uint64(i + 1), Count: 1, Body: body})
		if i%20 == 19 {
			if err := await(t, j, pos); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// heapNow returns the bytes of the heap's objects, garbage included.
func heapNow() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchHeap samples the heap until peak is called, which returns the largest sample.
func watchHeap(t *testing.T) (peak func() uint64) {
	ctx, stop := context.WithCancel(t.Context())
	var most uint64
	var watching sync.WaitGroup
	watching.Go(func() {
		for tick := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-tick.C {
			most = max(most, heapNow())
		}
	})
	return func() uint64 {
		stop()
		watching.Wait()
		return max(most, heapNow())
	}
}
