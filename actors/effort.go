package actors

import (
	"time"

	"parley"
	"parley/capabilities"
	"parley/mailbox"
)

// effort is how much of its quota of processor an account has used. What was used grows less with time, as much each
// minute as the quota is.
type effort struct {
	spent time.Duration
	at    capabilities.Time
	rate  int64 // milliseconds a minute
}

// effortBurst is for how many minutes an account may use its quota at once.
const effortBurst = 5

// settle takes off what has come back since the last time.
func (e *effort) settle(now capabilities.Time, rate int64) {
	if e.rate = rate; rate == mailbox.Unlimited {
		e.spent, e.at = 0, now
		return
	}
	back := time.Duration(float64(now-e.at) * float64(rate) / 60_000 * float64(time.Millisecond))
	e.spent, e.at = max(e.spent-max(back, 0), 0), now
}

// inMinute returns what is used as milliseconds of the quota of a minute: of all that may be used at once, the share
// that is.
func (e *effort) inMinute(now capabilities.Time) int64 {
	if e == nil || e.rate == mailbox.Unlimited {
		return 0
	}
	e.settle(now, e.rate)
	return e.spent.Milliseconds() / effortBurst
}

// effortOf returns an account's effort, nil if it made none. The caller has the lock.
func (a *accounts) effortOf(head capabilities.ID) *effort { return a.efforts[head] }

// maxEfforts bounds the accounts whose efforts are remembered.
const maxEfforts = 10_000

// affords refuses with QUOTA_EXCEEDED an account that has used up its quota of processor.
func (a *accounts) affords(who capabilities.ID) error {
	now := a.node.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	head := a.payer(who)
	e := a.effortOf(head)
	if e == nil {
		return nil
	}
	rate := a.quotas(head)[mailbox.QuotaProcessor]
	e.settle(now, rate)
	if rate == mailbox.Unlimited || e.spent < time.Duration(rate)*time.Millisecond*effortBurst {
		return nil
	}
	return parley.Refuse(parley.QuotaExceeded, "this agent's forms and answers have used %v of processor, and its quota is %s", e.spent.Round(time.Millisecond), mailbox.QuotaProcessor.Show(rate)).
		WithHint("wait a minute, use simpler patterns, or the node's host raises it: parley quota AGENT processor=MILLISECONDS")
}

// spend notes an effort.
func (a *accounts) spend(who capabilities.ID, d time.Duration) {
	if d <= 0 {
		return
	}
	now := a.node.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	head := a.payer(who)
	e := a.efforts[head]
	if e == nil {
		if len(a.efforts) >= maxEfforts {
			a.forgetEfforts(now)
		}
		e = &effort{at: now}
		a.efforts[head] = e
	}
	e.settle(now, a.quotas(head)[mailbox.QuotaProcessor])
	e.spent += d
}

// payer returns the account that pays for an agent's efforts: of one of another node, that node. The caller has the lock.
func (a *accounts) payer(who capabilities.ID) capabilities.ID {
	if who.Node != a.node.id {
		return ofNode(who.Node)
	}
	return a.head(who)
}

// forgetEfforts drops those that have come back. The caller has the lock.
func (a *accounts) forgetEfforts(now capabilities.Time) {
	for id, e := range a.efforts {
		if e.settle(now, e.rate); e.spent == 0 {
			delete(a.efforts, id)
		}
	}
}
