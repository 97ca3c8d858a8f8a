package backend

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"parley"
	"parley/actors"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/internal/fair"
)

// share bounds one kind of resource within a pool.
type share struct {
	api.Resource
	each, all int64
	used      atomic.Int64
	refused   atomic.Uint64
}

// pool holds the limits that several accounts share. The node's host and its guests never share one.
type pool struct {
	name     string
	shares   [api.Kinds]share
	building *fair.Queue[*account] // of the listings that are built at once
}

// Bounds of listings. To build more of them at a time would only need more memory.
const (
	buildingAll  = 16 // listings of one pool that are built at once
	buildingEach = 4  // of one account
	buildingWait = 64 // waits of one account that may be ready at once and not yet written
)

func newPool(name string, limits api.Limits, suffix string) *pool {
	p := &pool{name: name, building: fair.New[*account](buildingAll, buildingEach)}
	for k, r := range api.Resources() {
		p.shares[k].Resource = r
		p.shares[k].all = limits.Of(r.Key + suffix)
		p.shares[k].each = min(limits.Of(r.Key), p.shares[k].all)
	}
	return p
}

// account counts the resources that one agent uses.
type account struct {
	pool   *pool
	agent  *actors.Agent // nil for the node's host
	own    [api.Kinds]atomic.Int64
	rate   *rate.Limiter // nil for the node's host
	socket bool          // it is the node's own socket, which may use the whole pool
	used   atomic.Int64  // when it was used last, in seconds since 1970
	ready  atomic.Int64  // waits that have ended and are not written yet
}

func newAccount(p *pool) *account { return &account{pool: p} }

// Take implements api.Account. It refuses with QUOTA_EXCEEDED or RATE_LIMITED more than the account's limit.
// It refuses with RATE_LIMITED what would leave less free in the pool than the account then has. A new account therefore
// always finds a place, however many places others take.
func (a *account) Take(k api.Kind, n int64) error {
	s := &a.pool.shares[k]
	own, all := a.own[k].Add(n), s.used.Add(n)
	switch {
	case a.socket && all <= s.all:
		return nil
	case !a.socket && own <= s.each && own <= s.all-all:
		return nil
	}
	a.Give(k, n)
	s.refused.Add(1)
	if own > s.each && !a.socket {
		err := parley.Refuse(s.Code, "the agent has %d %s already: more than %d are refused", own-n, s.What, s.each)
		if s.Code == parley.RateLimited {
			return err.WithHint("try again when some have ended")
		}
		return err.WithHint("end some first, or have the node's host raise it: parley restart --limit %s=%d", s.Key, 2*s.each)
	}
	return parley.Refuse(parley.RateLimited, "the node has %d %s already", all-n, s.What).WithHint("try again in a moment")
}

// Force implements api.Account.
func (a *account) Force(k api.Kind, n int64) {
	a.own[k].Add(n)
	a.pool.shares[k].used.Add(n)
}

// Give implements api.Account.
func (a *account) Give(k api.Kind, n int64) {
	a.own[k].Add(-n)
	a.pool.shares[k].used.Add(-n)
}

// Pace implements api.Account.
func (a *account) Pace() error {
	if a.rate == nil || a.rate.Allow() {
		return nil
	}
	return parley.Refuse(parley.RateLimited, "the agent calls more than %.0f times a second", float64(a.rate.Limit())).WithHint("try again in a moment")
}

// Build implements api.Account.
func (a *account) Build(ctx context.Context) (built func(), err error) {
	place, err := a.pool.building.Enter(ctx, a)
	if err != nil {
		return nil, err
	}
	return place.Leave, nil
}

// BuildReady implements api.Account.
func (a *account) BuildReady(ctx context.Context) (built func(), err error) {
	defer a.ready.Add(-1)
	if a.ready.Add(1) > buildingWait {
		return nil, parley.Refuse(parley.RateLimited, "the agent has %d waits that ended at once", buildingWait).WithHint("try again in a moment")
	}
	return a.Build(ctx)
}

// InTurn implements api.Account.
func (a *account) InTurn(ctx context.Context, work func() error) error {
	if a.agent == nil {
		return work()
	}
	return a.agent.Mail().InTurn(ctx, work)
}

// isIdle reports whether the account has nothing under way.
func (a *account) isIdle() bool {
	for k := range a.own {
		if a.own[k].Load() != 0 {
			return false
		}
	}
	return true
}

const (
	accountsKept = 1024             // accounts of agents before idle ones are dropped
	accountTime  = 10 * time.Minute // how long an idle account is kept at least
)

// ledger has the accounts of all callers.
type ledger struct {
	limits        api.Limits
	host, guests  *pool
	socket, owner *account // of the node's own socket, and of its host's tokens

	perSecond int64

	mu     sync.RWMutex
	agents map[capabilities.ID]*account
	swept  int64
}

func newLedger(limits api.Limits) *ledger {
	l := &ledger{limits: limits, host: newPool("host", limits, ".host"), guests: newPool("agents", limits, ".all"), agents: map[capabilities.ID]*account{}}
	l.perSecond = limits.Of(api.LimitRate)
	for k := range l.host.shares {
		l.host.shares[k].each = l.host.shares[k].all
	}
	l.socket, l.owner = newAccount(l.host), newAccount(l.host)
	l.socket.socket = true
	return l
}

// of returns an agent's account.
func (l *ledger) of(agent *actors.Agent) *account {
	if agent.IsHost() {
		return l.owner
	}
	now := time.Now().Unix()
	id := agent.ID()
	l.mu.RLock()
	a := l.agents[id]
	l.mu.RUnlock()
	if a == nil {
		a = l.open(agent, now)
	}
	a.used.Store(now)
	return a
}

func (l *ledger) open(agent *actors.Agent, now int64) *account {
	id := agent.ID()
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.agents[id]; a != nil {
		return a
	}
	if len(l.agents) >= accountsKept && now-l.swept > 60 {
		l.swept = now
		for id, a := range l.agents {
			if a.isIdle() && now-a.used.Load() > int64(accountTime.Seconds()) {
				delete(l.agents, id)
			}
		}
	}
	a := newAccount(l.guests)
	a.agent = agent
	a.rate = rate.NewLimiter(rate.Limit(l.perSecond), int(min(2*l.perSecond, 1<<30)))
	l.agents[id] = a
	return a
}

// state returns how much is used of each limit.
func (l *ledger) state() []api.LimitState {
	var all []api.LimitState
	for _, p := range []*pool{l.host, l.guests} {
		for k := range p.shares {
			s := &p.shares[k]
			st := api.LimitState{Name: s.Key, For: p.name, Now: s.used.Load(), Limit: s.all, Refused: s.refused.Load()}
			if p == l.guests {
				st.Each = s.each
			}
			all = append(all, st)
		}
	}
	return all
}
