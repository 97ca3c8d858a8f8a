package gateway

import (
	"net"
	"net/http"
	"sync"

	"golang.org/x/time/rate"

	"parley"
	"parley/actors/connlimit"
)

// maxAttempting is how many addresses are remembered that have tried to sign in.
const maxAttempting = 4096

// attempts bounds how often each address tries to sign in.
type attempts struct {
	perMinute int64

	mu  sync.Mutex
	all map[string]*rate.Limiter
}

// allow refuses with RATE_LIMITED an address that has tried too often.
func (a *attempts) allow(r *http.Request) error {
	address := r.RemoteAddr
	if from, err := net.ResolveTCPAddr("tcp", r.RemoteAddr); err == nil {
		address = connlimit.Address(from)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.all[address]
	if l == nil {
		if len(a.all) >= maxAttempting {
			a.forget()
		}
		if a.all == nil {
			a.all = map[string]*rate.Limiter{}
		}
		l = rate.NewLimiter(rate.Limit(float64(a.perMinute)/60), int(min(a.perMinute, 1<<30)))
		a.all[address] = l
	}
	if l.Allow() {
		return nil
	}
	return parley.Refuse(parley.RateLimited, "there were more than %d attempts to sign in from this address", a.perMinute).
		WithHint("try again in a minute")
}

// forget drops the addresses that have all attempts again, or half of all.
func (a *attempts) forget() {
	before := len(a.all)
	for address, l := range a.all {
		if l.Tokens() >= float64(l.Burst()) {
			delete(a.all, address)
		}
	}
	for address := range a.all {
		if len(a.all) <= before/2 {
			return
		}
		delete(a.all, address)
	}
}
