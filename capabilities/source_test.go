package capabilities

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
)

// ones is an entropy reader whose bits are all 1.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 0xff
	}
	return len(p), nil
}

func frozen() time.Time { return time.UnixMilli(1_700_000_000_000) }

func next(t testing.TB, s *Source) ID {
	t.Helper()
	id, err := s.Next()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// wantIncreasing makes n IDs and checks that each is greater than the one before.
func wantIncreasing(t testing.TB, s *Source, n int, last ulid.ULID) {
	t.Helper()
	for i := range n {
		id := next(t, s)
		if id.ULID.Compare(last) <= 0 {
			t.Fatalf("ID %d: %s after %s", i, id.ULID, last)
		}
		last = id.ULID
	}
}

func TestIDsIncreaseWhileTheClockStandsStill(t *testing.T) {
	s := NewSource(testNode(), frozen, rand.Reader, ulid.ULID{})
	wantIncreasing(t, s, 200_000, ulid.ULID{})
	if id := next(t, s); id.ULID.Time() != uint64(frozen().UnixMilli()) || id.Node != s.Node() || id.Node != testNode() {
		t.Fatalf("got %s", id)
	}
}

func TestIDsIncreaseWhenTheClockStepsBack(t *testing.T) {
	now := frozen()
	s := NewSource(testNode(), func() time.Time { return now }, rand.Reader, ulid.ULID{})
	var last ulid.ULID
	for _, step := range []time.Duration{0, -time.Second, time.Millisecond, -100 * 365 * 24 * time.Hour, 200 * 365 * 24 * time.Hour, -time.Hour} {
		now = now.Add(step)
		wantIncreasing(t, s, 100, last)
		last = s.last
	}
}

func TestIDsAreGreaterThanThoseBeforeARestart(t *testing.T) {
	latest := ulid.MustNew(uint64(frozen().UnixMilli())+60_000, rand.Reader)
	wantIncreasing(t, NewSource(testNode(), frozen, rand.Reader, latest), 100, latest)
}

func TestIDsIncreasePastFullMillisecond(t *testing.T) {
	var full ulid.ULID
	if err := full.SetTime(uint64(frozen().UnixMilli())); err != nil {
		t.Fatal(err)
	}
	for i := range full[6:] {
		full[6+i] = 0xff
	}
	s := NewSource(testNode(), frozen, ones{}, full)
	wantIncreasing(t, s, 200_000, full)
	if got := s.last.Time(); got != full.Time()+1 {
		t.Fatalf("the IDs continue in millisecond %d, want %d", got, full.Time()+1)
	}
	fresh := NewSource(testNode(), frozen, ones{}, ulid.ULID{})
	wantIncreasing(t, fresh, 200_000, ulid.ULID{}) // the lower half overflows at every step
	if got := fresh.last.Time(); got != full.Time() {
		t.Fatalf("the IDs continue in millisecond %d, want %d", got, full.Time())
	}
}

func TestIDsAreUniqueAmongManyCallers(t *testing.T) {
	const callers, each = 8, 5000
	var mu sync.Mutex
	reads := 0
	unsteady := func() time.Time { // its own lock does not rely on the source's
		mu.Lock()
		defer mu.Unlock()
		reads++
		return frozen().Add(time.Duration(reads%7-3) * time.Millisecond)
	}
	s := NewSource(testNode(), unsteady, rand.Reader, ulid.ULID{})
	made := make([][]ID, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for range each {
				id, err := s.Next()
				if err != nil {
					t.Error(err)
					return
				}
				made[c] = append(made[c], id)
			}
		})
	}
	wg.Wait()
	for c, ids := range made {
		if !slices.IsSortedFunc(ids, ID.Compare) {
			t.Errorf("caller %d saw IDs that do not increase", c)
		}
	}
	all := slices.Concat(made...)
	slices.SortFunc(all, ID.Compare)
	if n := len(slices.Compact(all)); n != callers*each {
		t.Fatalf("%d IDs of %d are different", n, callers*each)
	}
}

func TestNextFailsWithoutEntropy(t *testing.T) {
	s := NewSource(testNode(), frozen, io.LimitReader(ones{}, 10), ulid.ULID{})
	first := next(t, s)
	if id, err := s.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("got %s, %v", id, err)
	}
	s.entropy = bytes.NewReader([]byte{0, 0, 0, 0})
	wantIncreasing(t, s, 1, first.ULID)
}

func TestNextFailsAfterLastULID(t *testing.T) {
	last := ulid.ULID{}
	for i := range last {
		last[i] = math.MaxUint8
	}
	if id, err := NewSource(testNode(), frozen, ones{}, last).Next(); err == nil {
		t.Fatalf("got %s after the last ULID", id)
	}
}

func BenchmarkNext(b *testing.B) {
	s := NewSource(testNode(), time.Now, rand.Reader, ulid.ULID{})
	for b.Loop() {
		next(b, s)
	}
}
