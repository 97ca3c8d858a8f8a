package connlimit

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Use is the use of a connection.
type Use int

// The uses of a connection.
const (
	Silent Use = iota // nothing has come yet, or nothing since the last response
	Coming            // a request is coming, or a proof of who connects
	Busy              // a request is there, or it is known who connects
)

// Occupant is a connection with a place.
type Occupant interface {
	// Evict closes the connection if its use is at most so much, and reports whether it did. It calls no Limiter.
	Evict(most Use) bool
}

// Place is the place of a connection until Leave.
type Place struct {
	limiter  *Limiter
	address  string
	occupant Occupant
	left     bool // guarded by the limiter
}

// Limiter gives places to connections. It may be used by many goroutines.
type Limiter struct {
	each, all, reserve int

	mu      sync.Mutex
	places  map[string][]*Place // by address, the oldest first
	count   int
	refused uint64
	known   []string // addresses for which the reserve is, the one proved last at the end
}

// maxKnown bounds the addresses that may use the reserve.
const maxKnown = 1024

// New returns a limiter of places: at most each for one address, and at most all. The last ones, the reserve, are for
// addresses that were passed to Know.
func New(each, all, reserve int) *Limiter {
	return &Limiter{each: min(each, all), all: all, reserve: min(reserve, all/2), places: map[string][]*Place{}}
}

// Enter takes a place for a connection. If there is none, it evicts a less used connection. If there is none of these
// either, it reports false, and the caller closes the connection.
func (l *Limiter) Enter(address string, o Occupant) (*Place, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.all - l.reserve
	if slices.Contains(l.known, address) {
		all = l.all
	}
	if len(l.places[address]) >= l.each && !l.evict(address) || l.count >= all && !l.evict(l.crowded()) && !l.evict(address) {
		l.refused++
		return nil, false
	}
	p := &Place{limiter: l, address: address, occupant: o}
	l.places[address] = append(l.places[address], p)
	l.count++
	return p, true
}

// evict evicts the least used connection of an address, the oldest first.
func (l *Limiter) evict(address string) bool {
	for _, most := range []Use{Silent, Coming} {
		for _, p := range l.places[address] {
			if p.occupant.Evict(most) {
				l.remove(p)
				l.refused++
				return true
			}
		}
	}
	return false
}

// crowded returns the address with the most places.
func (l *Limiter) crowded() (address string) {
	for a, places := range l.places {
		if len(places) > len(l.places[address]) {
			address = a
		}
	}
	return address
}

func (l *Limiter) remove(p *Place) {
	if p.left {
		return
	}
	p.left = true
	l.count--
	places := l.places[p.address]
	i := slices.Index(places, p)
	if places = slices.Delete(places, i, i+1); len(places) == 0 {
		delete(l.places, p.address)
		return
	}
	l.places[p.address] = places
}

// Leave frees the place. Leaving again does nothing.
func (p *Place) Leave() {
	p.limiter.mu.Lock()
	defer p.limiter.mu.Unlock()
	p.limiter.remove(p)
}

// Know lets connections from an address use the reserve.
func (l *Limiter) Know(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.known, address); i >= 0 {
		l.known = slices.Delete(l.known, i, i+1)
	}
	if len(l.known) >= maxKnown {
		l.known = slices.Delete(l.known, 0, 1)
	}
	l.known = append(l.known, address)
}

// State returns the number of taken places, and the number of refused or evicted connections. It also returns the
// bounds for one address and for all.
func (l *Limiter) State() (now, each, all int, refused uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.each, l.all, l.refused
}

// Address returns the part of an address that limits count by: the IPv4 address, or the 64-bit IPv6 network.
func Address(a net.Addr) string {
	if a == nil {
		return ""
	}
	from, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	ip := from.Addr().Unmap().WithZone("")
	if ip.Is6() && !ip.IsLoopback() {
		if network, err := ip.Prefix(64); err == nil {
			return network.String()
		}
	}
	return ip.String()
}
