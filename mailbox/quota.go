package mailbox

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Quota is a resource of which an agent, or another node, may use a limited amount.
type Quota int

// The quotas. Each is for one agent with the agents that it made, or for one other node.
const (
	QuotaForms     Quota = iota // open forms that it asked
	QuotaNames                  // names
	QuotaAgents                 // agents that it made
	QuotaBytes                  // bytes of its open forms and of the values of its names
	QuotaDaily                  // bytes that it wrote since midnight UTC
	QuotaInbox                  // bytes of its mail in one other mailbox that is neither dismissed nor settled
	QuotaGrants                 // grants that it made of one agent here
	QuotaProcessor              // milliseconds a minute for the patterns of its forms and answers
	quotas         int   = iota
)

var quotaNames = [quotas]string{"forms", "names", "agents", "bytes", "daily", "inbox", "grants", "processor"}

// String returns the quota's name, as in "forms".
func (q Quota) String() string { return quotaNames[q] }

// isBytes reports whether the quota is one of bytes.
func (q Quota) isBytes() bool { return q == QuotaBytes || q == QuotaDaily || q == QuotaInbox }

// Unlimited is the limit of a quota without limit.
const Unlimited int64 = math.MaxInt64

// Amounts holds an amount for each quota: a usage or a limit.
type Amounts [quotas]int64

// AgentQuotas returns the default quotas of an agent of this node. The node's own host, and the hosts that it made,
// have none.
func AgentQuotas() Amounts {
	return Amounts{
		QuotaForms: 10_000, QuotaNames: 10_000, QuotaAgents: 1000, QuotaBytes: 64 << 20, QuotaDaily: 256 << 20, QuotaInbox: 128 << 20,
		QuotaGrants: 100_000, QuotaProcessor: 6000,
	}
}

// PeerQuotas returns the default quotas of another node. Names, agents and bytes are not limited.
func PeerQuotas() Amounts {
	return Amounts{
		QuotaForms: 10_000, QuotaNames: Unlimited, QuotaAgents: Unlimited, QuotaBytes: Unlimited, QuotaDaily: 256 << 20, QuotaInbox: 128 << 20,
		QuotaGrants: 10_000, QuotaProcessor: 6000,
	}
}

// NoQuotas returns quotas without any limit.
func NoQuotas() (a Amounts) {
	for q := range a {
		a[q] = Unlimited
	}
	return a
}

// plus adds amounts, none of which may be negative.
func (a Amounts) plus(b Amounts) Amounts {
	for q := range a {
		if a[q] > Unlimited-b[q] {
			a[q] = Unlimited
		} else {
			a[q] += b[q]
		}
	}
	return a
}

// Plus returns the sum of amounts.
func (a Amounts) Plus(b Amounts) Amounts { return a.plus(b) }

// Fullest returns the quota of which the largest share is used, and that share: from 0 to 1, or more.
func (a Amounts) Fullest(limits Amounts) (fullest Quota, share float64) {
	for q := range a {
		if a[q] <= 0 || limits[q] == Unlimited {
			continue
		}
		if part := float64(a[q]) / float64(max(limits[q], 1)); part > share {
			fullest, share = Quota(q), part
		}
	}
	return fullest, share
}

// MarshalJSON encodes the amounts by name. Unlimited is -1.
func (a Amounts) MarshalJSON() ([]byte, error) { return json.Marshal(a.Named()) }

// Named returns the amounts by name. Unlimited is -1.
func (a Amounts) Named() map[string]int64 {
	named := make(map[string]int64, quotas)
	for q, n := range a {
		if n == Unlimited {
			n = -1
		}
		named[quotaNames[q]] = n
	}
	return named
}

// UnmarshalJSON decodes the output of MarshalJSON. A missing quota stays as it is.
func (a *Amounts) UnmarshalJSON(b []byte) error {
	var named map[string]int64
	if err := json.Unmarshal(b, &named); err != nil {
		return err
	}
	return a.Set(named)
}

// Set changes the named amounts. -1 is Unlimited. It refuses with INVALID_ARGUMENT an unknown name.
func (a *Amounts) Set(named map[string]int64) error {
	if err := CheckQuotas(named); err != nil {
		return err
	}
	for q, name := range quotaNames {
		if n, ok := named[name]; ok {
			if n == -1 {
				n = Unlimited
			}
			a[q] = n
		}
	}
	return nil
}

// CheckQuotas refuses with INVALID_ARGUMENT unknown names and invalid amounts.
func CheckQuotas(named map[string]int64) error {
	known := map[string]bool{}
	for _, name := range quotaNames {
		known[name] = true
	}
	for name, n := range named {
		if !known[name] {
			return parley.Refuse(parley.InvalidArgument, "unknown quota %s", parley.Quoted(name, 40)).WithHint("the quotas are %s", strings.Join(quotaNames[:], ", "))
		}
		if n < -1 {
			return parley.Refuse(parley.InvalidArgument, "%s=%d is no quota", name, n).WithHint("-1 is no limit")
		}
	}
	return nil
}

var quotaUnits = []struct {
	suffix string
	factor int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// ParseQuotas parses settings such as "forms=100", "daily=64MiB" and "inbox=none".
func ParseQuotas(settings []string) (map[string]int64, error) {
	named := map[string]int64{}
	for _, s := range settings {
		name, text, ok := strings.Cut(s, "=")
		if !ok {
			return nil, parley.Refuse(parley.InvalidArgument, "%s is no quota", parley.Quoted(s, 80)).WithHint("want NAME=AMOUNT, as in forms=1000 or daily=64MiB; none is no limit")
		}
		n, err := parseAmount(text)
		if err != nil {
			return nil, parley.Refuse(parley.InvalidArgument, "%s is no amount", parley.Quoted(text, 40)).WithHint("want a number, a number of KiB, MiB or GiB, or none")
		}
		named[name] = n
	}
	return named, CheckQuotas(named)
}

func parseAmount(text string) (int64, error) {
	if text == "none" {
		return -1, nil
	}
	factor := int64(1)
	for _, u := range quotaUnits {
		if number, ok := strings.CutSuffix(text, u.suffix); ok {
			text, factor = number, u.factor
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || n > Unlimited/factor) {
		err = strconv.ErrRange
	}
	return n * factor, err
}

// Show returns an amount of the quota as text for people.
func (q Quota) Show(n int64) string {
	switch {
	case n == Unlimited || n == -1:
		return "none"
	case q == QuotaProcessor:
		return fmt.Sprintf("%d ms a minute", n)
	case q.isBytes() && n >= 10<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case q.isBytes() && n >= 10<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	case q.isBytes():
		return fmt.Sprintf("%d bytes", n)
	}
	return strconv.FormatInt(n, 10)
}

// Limits are the quotas for a decision.
type Limits struct {
	Quotas Amounts
	Beside Amounts // usage of the same quotas by other agents: those that this one made, or was made with
}

// check refuses with QUOTA_EXCEEDED growth over a limit. It does not check amounts that do not grow, so an agent over
// its quota can always free some.
func (l *Limits) check(use, growth Amounts) error {
	if l == nil {
		return nil
	}
	now := use.plus(l.Beside)
	for q := range growth {
		if growth[q] > 0 && growth[q] > l.Quotas[q]-now[q] {
			return Quota(q).exceeded(now[q], growth[q], l.Quotas[q], l.Beside[q] > 0)
		}
	}
	return nil
}

// exceeded returns the error for a quota without room, with a hint.
func (q Quota) exceeded(used, more, limit int64, shared bool) error {
	who := "this agent has"
	if shared {
		who = "this agent, with those that it made or was made with, has"
	}
	what := map[Quota]string{
		QuotaForms: "open forms", QuotaNames: "names", QuotaAgents: "agents that it made", QuotaBytes: "of open forms and names",
		QuotaDaily: "written today",
	}[q]
	hint := map[Quota]string{
		QuotaForms: "parley cancel NUMBER takes a form back", QuotaNames: "parley remove NAME frees one",
		QuotaAgents: "use the agents that there are", QuotaBytes: "cancel forms or remove names",
		QuotaDaily: "it begins anew at midnight UTC",
	}[q]
	return parley.Refuse(parley.QuotaExceeded, "%s %s %s; %s more would be over its quota of %s", who, q.Show(used), what, q.Show(more), q.Show(limit)).
		WithHint("%s, or the node's host raises it: parley quota AGENT %s=AMOUNT", hint, q)
}

// SetQuota sets quotas of an agent, or of another node. All other quotas stay as they are.
type SetQuota struct {
	Agent  capabilities.ID
	Node   capabilities.NodeID // zero if it is for an agent
	Quotas map[string]int64
	Reset  bool // drop all earlier settings first
}

func (c SetQuota) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if !s.Profile.isNodeHost() {
		return nil, parley.Refuse(parley.NotPermitted, "only the node's own host sets quotas")
	}
	if err := CheckQuotas(c.Quotas); err != nil {
		return nil, err
	}
	if c.Agent.IsZero() == (c.Node == capabilities.NodeID{}) {
		return nil, parley.Refuse(parley.InvalidArgument, "a quota is of an agent or of a node")
	}
	if _, known := s.Peers.byNode[c.Node]; c.Agent.IsZero() && !known {
		return nil, unknownNode(c.Node)
	}
	all := map[string]int64{}
	i := s.Peers.quota(c.Agent, c.Node)
	if i >= 0 && !c.Reset {
		for _, l := range s.Peers.quotas[i].Quotas {
			all[l.Name] = l.Limit
		}
	}
	maps.Copy(all, c.Quotas)
	e := &events.QuotaSet{Agent: c.Agent, Node: c.Node}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		e.Quotas = append(e.Quotas, events.QuotaLimit{Name: name, Limit: all[name]})
	}
	if i >= 0 && slices.Equal(s.Peers.quotas[i].Quotas, e.Quotas) || i < 0 && len(e.Quotas) == 0 {
		return nil, nil
	}
	return []events.Event{e}, nil
}

// quota returns the index of the quotas of an agent or a node; -1 if none are set.
func (r *PeerDirectory) quota(agent capabilities.ID, node capabilities.NodeID) int {
	return slices.IndexFunc(r.quotas, func(q events.QuotaSet) bool { return q.Agent == agent && q.Node == node })
}

func (r *PeerDirectory) setQuota(e *events.QuotaSet) {
	i := r.quota(e.Agent, e.Node)
	switch {
	case i < 0:
		r.quotas = append(r.quotas, *e)
	case len(e.Quotas) == 0:
		r.quotas = slices.Delete(r.quotas, i, i+1)
	default:
		r.quotas[i] = *e
	}
}

// Quotas returns the quotas that the node's host has set. The slice belongs to the state.
func (r *PeerDirectory) Quotas() []events.QuotaSet { return r.quotas }
