package connlimit

import (
	"net"
	"testing"

	"pgregory.net/rapid"
)

type occupant struct {
	use    Use
	closed bool
}

func (o *occupant) Evict(most Use) bool {
	if o.use > most || o.closed {
		return false
	}
	o.closed = true
	return true
}

func TestConnectionsStayWithinLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		each, all := rapid.IntRange(1, 4).Draw(t, "each"), rapid.IntRange(1, 10).Draw(t, "all")
		l := New(each, all, rapid.IntRange(0, 3).Draw(t, "reserve"))
		inside := map[*Place]*occupant{}
		by := map[*Place]string{}
		t.Repeat(map[string]func(*rapid.T){
			"enter": func(t *rapid.T) {
				o := &occupant{use: Use(rapid.IntRange(0, 2).Draw(t, "use"))}
				address := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "address")
				if p, ok := l.Enter(address, o); ok {
					inside[p], by[p] = o, address
				}
			},
			"leave": func(t *rapid.T) {
				for p := range inside {
					p.Leave()
					p.Leave()
					delete(inside, p)
					break
				}
			},
			"know": func(*rapid.T) { l.Know("a") },
			"": func(t *rapid.T) {
				counts, open := map[string]int{}, 0
				for p, o := range inside {
					if !o.closed {
						counts[by[p]]++
						open++
					}
				}
				if now, _, _, _ := l.State(); now != open || open > all {
					t.Fatalf("%d places, %d connections, of %d", now, open, all)
				}
				for a, n := range counts {
					if n > each {
						t.Fatalf("%s has %d of %d", a, n, each)
					}
				}
			},
		})
	})
}

func TestSilentConnectionsAreEvicted(t *testing.T) {
	l := New(2, 10, 0)
	silent, busy := &occupant{use: Silent}, &occupant{use: Busy}
	for _, o := range []*occupant{busy, silent} {
		if _, ok := l.Enter("a", o); !ok {
			t.Fatal("refused")
		}
	}
	if _, ok := l.Enter("a", &occupant{use: Busy}); !ok || !silent.closed || busy.closed {
		t.Errorf("%v %v %v", ok, silent, busy)
	}
	if _, ok := l.Enter("a", &occupant{}); ok {
		t.Error("one too many")
	}
	if _, ok := l.Enter("b", &occupant{}); !ok {
		t.Error("another address has no place")
	}
}

func TestReserveIsForKnownNodes(t *testing.T) {
	l := New(10, 4, 2)
	for range 2 {
		if _, ok := l.Enter("a", &occupant{use: Busy}); !ok {
			t.Fatal("refused")
		}
	}
	if _, ok := l.Enter("b", &occupant{}); ok {
		t.Error("a stranger took from the reserve")
	}
	l.Know("b")
	if _, ok := l.Enter("b", &occupant{}); !ok {
		t.Error("one who is known was refused")
	}
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "[::ffff:192.0.2.1]:80": "192.0.2.1", "[2001:db8:1:2:3::4]:80": "2001:db8:1:2::/64", "[::1]:80": "::1",
	} {
		a, err := net.ResolveTCPAddr("tcp", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Address(a); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
