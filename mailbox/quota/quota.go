package quota

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"parley"
)

// Quota is a resource of which an agent, or another node, may use a limited amount.
type Quota int

// The quotas. Each is for one agent with the agents that it made, or for one other node.
const (
	Forms     Quota = iota // open forms that it asked, but for approvals
	Names                  // names
	Agents                 // agents that it made
	Bytes                  // bytes of its open forms and of the values of its names
	Daily                  // bytes that it wrote since midnight UTC
	Inbox                  // bytes of its mail in one other mailbox that is neither dismissed nor settled
	Grants                 // grants that it made of one agent here
	Processor              // milliseconds a minute for the patterns of its forms and answers
	Approvals              // open approvals that it asked for
	Files                  // bytes of the files that it has stored and that are kept
	kinds     int   = iota
)

var names = [kinds]string{"forms", "names", "agents", "bytes", "daily", "inbox", "grants", "processor", "approvals", "files"}

// String returns the quota's name, as in "forms".
func (q Quota) String() string { return names[q] }

// isBytes reports whether the quota is one of bytes.
func (q Quota) isBytes() bool { return q == Bytes || q == Daily || q == Inbox || q == Files }

// Unlimited is the limit of a quota without limit.
const Unlimited int64 = math.MaxInt64

// Amounts holds an amount for each quota: a usage or a limit.
type Amounts [kinds]int64

// Agent returns the default quotas of an agent of this node. The node's own host, and the hosts that it made,
// have none.
func Agent() Amounts {
	return Amounts{
		Forms: 10_000, Names: 10_000, Agents: 1000, Bytes: 64 << 20, Daily: 256 << 20, Inbox: 128 << 20,
		Grants: 100_000, Processor: 6000, Approvals: 10_000, Files: 1 << 30,
	}
}

// Peer returns the default quotas of another node. Names, agents and bytes are not limited. Its approvals are forms.
func Peer() Amounts {
	return Amounts{
		Forms: 10_000, Names: Unlimited, Agents: Unlimited, Bytes: Unlimited, Daily: 256 << 20, Inbox: 128 << 20,
		Grants: 10_000, Processor: 6000, Approvals: Unlimited, Files: Unlimited,
	}
}

// None returns quotas without any limit.
func None() (a Amounts) {
	for q := range a {
		a[q] = Unlimited
	}
	return a
}

// Plus returns the sum of amounts, none of which may be negative. It is at most Unlimited.
func (a Amounts) Plus(b Amounts) Amounts {
	for q := range a {
		if a[q] > Unlimited-b[q] {
			a[q] = Unlimited
		} else {
			a[q] += b[q]
		}
	}
	return a
}

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
	named := make(map[string]int64, kinds)
	for q, n := range a {
		if n == Unlimited {
			n = -1
		}
		named[names[q]] = n
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
	if err := Check(named); err != nil {
		return err
	}
	for q, name := range names {
		if n, ok := named[name]; ok {
			if n == -1 {
				n = Unlimited
			}
			a[q] = n
		}
	}
	return nil
}

// Check refuses with INVALID_ARGUMENT unknown names and invalid amounts.
func Check(named map[string]int64) error {
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	for name, n := range named {
		if !known[name] {
			return parley.Refuse(parley.InvalidArgument, "unknown quota %s", parley.Quoted(name, 40)).WithHint("the quotas are %s", strings.Join(names[:], ", "))
		}
		if n < -1 {
			return parley.Refuse(parley.InvalidArgument, "%s=%d is no quota", name, n).WithHint("-1 is no limit")
		}
	}
	return nil
}

var units = []struct {
	suffix string
	factor int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// Parse parses settings such as "forms=100", "daily=64MiB" and "inbox=none".
func Parse(settings []string) (map[string]int64, error) {
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
	return named, Check(named)
}

func parseAmount(text string) (int64, error) {
	if text == "none" {
		return -1, nil
	}
	factor := int64(1)
	for _, u := range units {
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
	case q == Processor:
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

// Check refuses with QUOTA_EXCEEDED growth over a limit. It does not check amounts that do not grow, so an agent over
// its quota can always free some.
func (l *Limits) Check(use, growth Amounts) error {
	if l == nil {
		return nil
	}
	now := use.Plus(l.Beside)
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
		Forms: "open forms", Names: "names", Agents: "agents that it made", Bytes: "of open forms and names",
		Daily: "written today", Approvals: "open approvals", Files: "of files",
	}[q]
	hint := map[Quota]string{
		Forms: "parley cancel NUMBER takes a form back", Names: "parley name remove NAME frees one",
		Agents: "use the agents that there are", Bytes: "cancel forms or remove names",
		Daily: "it begins anew at midnight UTC", Approvals: "parley permit ls shows what waits, and parley cancel takes one back",
		Files: "a file is dropped when no message has referred to it for a week",
	}[q]
	return parley.Refuse(parley.QuotaExceeded, "%s %s %s; %s more would be over its quota of %s", who, q.Show(used), what, q.Show(more), q.Show(limit)).
		WithHint("%s, or the node's host raises it: parley agent quota AGENT %s=AMOUNT", hint, q)
}
