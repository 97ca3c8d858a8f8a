package actors

import (
	"slices"
	"sync"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/quota"
)

// accounts counts the use of the node by each agent and each other node. A mailbox's state counts its own use, and
// accounts adds up what spans several mailboxes. A mailbox counts from the first time that it is in memory.
//
// An agent that the node's host has made has an account. All agents below it share that account.
type accounts struct {
	node   *Node
	agents quota.Limits // where nothing else is set; never changed
	peers  quota.Amounts

	mu      sync.Mutex
	known   map[capabilities.ID]*account
	made    map[capabilities.ID][]capabilities.ID // agents by their maker, of those that are known
	set     map[capabilities.ID]map[string]int64  // by agent, or by an ID of the node alone
	held    map[capabilities.NodeID]map[capabilities.ID]quota.Amounts
	full    map[capabilities.ID]map[capabilities.ID]bool // by mailbox: the senders of which it has refused mail
	routes  int                                          // in full
	efforts map[capabilities.ID]*effort
	ranked  ranking
}

// account is the use of one agent.
type account struct {
	by   capabilities.ID
	kind events.AgentKind
	use  mailbox.Usage
	rank *rank // nil unless it is the head of a family
}

func newAccounts(n *Node) (*accounts, error) {
	a := &accounts{
		node: n, agents: quota.Limits{Quotas: quota.Agent()}, peers: quota.Peer(),
		known: map[capabilities.ID]*account{}, made: map[capabilities.ID][]capabilities.ID{}, set: map[capabilities.ID]map[string]int64{},
		held: map[capabilities.NodeID]map[capabilities.ID]quota.Amounts{}, full: map[capabilities.ID]map[capabilities.ID]bool{}, efforts: map[capabilities.ID]*effort{},
	}
	if err := a.agents.Quotas.Set(n.o.Quotas); err != nil {
		return nil, err
	}
	return a, a.peers.Set(n.o.PeerQuotas)
}

// ofNode returns the ID under which another node has an account.
func ofNode(node capabilities.NodeID) capabilities.ID { return capabilities.ID{Node: node} }

// put records the use of an agent. It reports whether other mailboxes are needed to complete the account: that of its
// maker, and those of agents that it has made.
func (a *accounts) put(s *mailbox.State) (incomplete bool) {
	use, now := s.Account.Usage(), a.node.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.known[s.ID]; known != nil {
		known.use = use
		a.rerank(s.ID, now)
		return false
	}
	by := s.Profile.By
	a.known[s.ID] = &account{by: by, kind: s.Profile.Kind, use: use}
	if !by.IsZero() {
		a.made[by] = append(a.made[by], s.ID)
	}
	a.rerank(s.ID, now)
	return !a.isExempt(s.ID)
}

// missing returns those of some agents whose use is not known.
func (a *accounts) missing(agents []capabilities.ID) []capabilities.ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(agents, func(id capabilities.ID) bool { return a.known[id] != nil || id.Node != a.node.id })
}

// isExempt reports whether an agent has no quotas unless some are set: the node's host, and agents made by it. The
// caller has the lock.
func (a *accounts) isExempt(id capabilities.ID) bool {
	return id == a.node.host || a.known[id].isHost(a.node)
}

func (k *account) isHost(n *Node) bool { return k != nil && k.by == n.host && k.kind == events.Host }

// isPlain reports whether an agent has an account of its own with the default quotas. The caller has the lock.
func (a *accounts) isPlain(id capabilities.ID) bool {
	k := a.known[id]
	return len(a.set) == 0 && k != nil && (k.by == a.node.host || k.by.IsZero()) && id != a.node.host && !k.isHost(a.node)
}

// head returns the agent whose account an agent shares. The caller has the lock.
func (a *accounts) head(id capabilities.ID) capabilities.ID {
	for {
		k := a.known[id]
		if k == nil || k.by.IsZero() || k.by == a.node.host || k.by == id {
			return id
		}
		id = k.by
	}
}

// headOf returns the agent whose account an agent shares.
func (a *accounts) headOf(id capabilities.ID) capabilities.ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.head(id)
}

// family calls fn for an agent and all known agents below it. The caller has the lock.
func (a *accounts) family(id capabilities.ID, fn func(capabilities.ID, *account)) {
	if k := a.known[id]; k != nil {
		fn(id, k)
	}
	for _, child := range a.made[id] {
		a.family(child, fn)
	}
}

// limits returns the limits of an agent's commands at a time, or nil if there are none.
func (a *accounts) limits(id capabilities.ID, now capabilities.Time) *quota.Limits {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.isPlain(id) && len(a.made[id]) == 0 {
		return &a.agents
	}
	head := a.head(id)
	if len(a.set[head]) == 0 && a.isExempt(head) {
		return nil
	}
	l := &quota.Limits{Quotas: a.quotas(head)}
	if head == id && (len(a.made[id]) == 0 || head == a.node.host) {
		return l
	}
	a.family(head, func(relative capabilities.ID, k *account) {
		if relative != id {
			l.Beside = l.Beside.Plus(k.use.On(now))
		}
	})
	return l
}

// quotas returns the quotas of an account. The caller has the lock.
func (a *accounts) quotas(head capabilities.ID) quota.Amounts {
	quotas := a.agents.Quotas
	if head.Node != a.node.id {
		quotas = a.peers
	} else if a.isExempt(head) {
		quotas = quota.None()
	}
	_ = quotas.Set(a.set[head]) // it was checked when it was set, and a newer program's are passed over
	return quotas
}

// ofSender returns the quotas of an agent's mail, or nil if there are none.
func (a *accounts) ofSender(from capabilities.ID) *quota.Amounts {
	a.mu.Lock()
	defer a.mu.Unlock()
	if from.Node != a.node.id {
		quotas := a.quotas(ofNode(from.Node))
		return &quotas
	}
	if a.isPlain(from) {
		return &a.agents.Quotas
	}
	head := a.head(from)
	if len(a.set[head]) == 0 && a.isExempt(head) {
		return nil
	}
	quotas := a.quotas(head)
	return &quotas
}

// remember takes over the quotas in the state of the host's mailbox.
func (a *accounts) remember(s *mailbox.State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.set)
	for _, q := range s.Peers.Quotas() {
		a.setLocked(&q)
	}
}

// note takes over events of the host's mailbox.
func (a *accounts) note(evs []events.Event) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range evs {
		switch e := e.(type) {
		case *events.QuotaSet:
			a.setLocked(e)
		case *events.NodeDropped:
			delete(a.set, ofNode(e.Node))
			delete(a.held, e.Node)
		}
	}
}

func (a *accounts) setLocked(e *events.QuotaSet) {
	who := e.Agent
	if who.IsZero() {
		who = ofNode(e.Node)
	}
	limits := make(map[string]int64, len(e.Quotas))
	for _, l := range e.Quotas {
		limits[l.Name] = l.Limit
	}
	a.set[who] = limits
	if len(limits) == 0 {
		delete(a.set, who)
	}
	if who.Node == a.node.id {
		a.rerank(who, a.node.now())
	}
	for to, senders := range a.full {
		for from := range senders {
			if from == who || a.head(from) == who {
				delete(senders, from)
				a.routes--
			}
		}
		if len(senders) == 0 {
			delete(a.full, to)
		}
	}
}

// hold records what a mailbox stores for another node.
func (a *accounts) hold(id capabilities.ID, node capabilities.NodeID, amounts quota.Amounts) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held[node] == nil {
		a.held[node] = map[capabilities.ID]quota.Amounts{}
	}
	a.held[node][id] = amounts
}

// isFull reports whether a mailbox has refused mail of a sender, and has removed nothing since.
func (a *accounts) isFull(from, to capabilities.ID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.full) > 0 && a.full[to][from]
}

// maxFull bounds the pairs of a mailbox and a sender that are recorded as full. Other mail is refused when it arrives. The
// sender of another node's mail is that node.
const maxFull = 10_000

// fill records that a mailbox has refused mail of a sender.
func (a *accounts) fill(from, to capabilities.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.routes >= maxFull || a.full[to][from] {
		return
	}
	if a.full[to] == nil {
		a.full[to] = map[capabilities.ID]bool{}
	}
	a.full[to][from] = true
	a.routes++
}

// empty forgets the senders of which a mailbox has refused mail. It has removed some mail.
func (a *accounts) empty(to capabilities.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.routes -= len(a.full[to])
	delete(a.full, to)
}

// use returns what the account of an agent uses.
func (a *accounts) use(head capabilities.ID, now capabilities.Time) view.AgentUse {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.useLocked(a.head(head), now)
}

// used returns what an account uses. The caller has the lock.
func (a *accounts) used(head capabilities.ID, now capabilities.Time) (used quota.Amounts) {
	if k := a.known[head]; k != nil && head == a.node.host { // what others made by it use is theirs
		used = k.use.On(now)
	} else {
		a.family(head, func(_ capabilities.ID, k *account) { used = used.Plus(k.use.On(now)) })
	}
	used[quota.Processor] = a.effortOf(head).inMinute(now)
	return used
}

func (a *accounts) useLocked(head capabilities.ID, now capabilities.Time) view.AgentUse {
	used, quotas := a.used(head, now), a.quotas(head)
	u := view.AgentUse{Agent: head, Used: used.Named(), Quotas: quotas.Named()}
	if q, share := used.Fullest(quotas); share > 0 {
		u.Share, u.Quota = share, q.String()
	}
	return u
}

// fullSender returns the error of mail for a mailbox that has no room for it.
func fullSender() error {
	return parley.Refuse(parley.QuotaExceeded, "the recipient's mailbox has as much of this agent's mail as its quota allows").
		WithHint("the recipient dismisses or answers some of it, or the node's host raises the quota: parley agent quota AGENT inbox=AMOUNT")
}

// effort is the processor time that an account has used of its quota. It decreases with time, by one quota each minute.
type effort struct {
	spent time.Duration
	at    capabilities.Time
	rate  int64 // milliseconds a minute
}

// effortBurst is the number of minutes whose quota an account may use at once.
const effortBurst = 5

// settle subtracts what has been restored since the last time.
func (e *effort) settle(now capabilities.Time, rate int64) {
	if e.rate = rate; rate == quota.Unlimited {
		e.spent, e.at = 0, now
		return
	}
	back := time.Duration(float64(now-e.at) * float64(rate) / 60_000 * float64(time.Millisecond))
	e.spent, e.at = max(e.spent-max(back, 0), 0), now
}

// inMinute returns the used share of the burst, as milliseconds of the quota of one minute.
func (e *effort) inMinute(now capabilities.Time) int64 {
	if e == nil || e.rate == quota.Unlimited {
		return 0
	}
	e.settle(now, e.rate)
	return e.spent.Milliseconds() / effortBurst
}

// effortOf returns an account's effort, or nil if there is none. The caller has the lock.
func (a *accounts) effortOf(head capabilities.ID) *effort { return a.efforts[head] }

// maxEfforts bounds the accounts whose efforts are recorded.
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
	rate := a.quotas(head)[quota.Processor]
	e.settle(now, rate)
	if rate == quota.Unlimited || e.spent < time.Duration(rate)*time.Millisecond*effortBurst {
		return nil
	}
	return parley.Refuse(parley.QuotaExceeded, "this agent's forms and answers have used %v of processor, and its quota is %s", e.spent.Round(time.Millisecond), quota.Processor.Show(rate)).
		WithHint("wait a minute, use simpler patterns, or the node's host raises it: parley agent quota AGENT processor=MILLISECONDS")
}

// spend adds to the effort of an account.
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
	e.settle(now, a.quotas(head)[quota.Processor])
	e.spent += d
	if head.Node == a.node.id {
		a.rerank(head, now)
	}
}

// payer returns the account that pays for an agent's efforts. A node pays for its own agents. The caller has the lock.
func (a *accounts) payer(who capabilities.ID) capabilities.ID {
	if who.Node != a.node.id {
		return ofNode(who.Node)
	}
	return a.head(who)
}

// account returns the account that pays for an agent's efforts.
func (a *accounts) account(who capabilities.ID) capabilities.ID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.payer(who)
}

// forgetEfforts removes efforts that have been restored in full. The caller has the lock.
func (a *accounts) forgetEfforts(now capabilities.Time) {
	for id, e := range a.efforts {
		if e.settle(now, e.rate); e.spent == 0 {
			delete(a.efforts, id)
		}
	}
}
