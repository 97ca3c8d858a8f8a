package api

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// Limits sets limits by key, as LimitKeys lists them. A key that is missing has its default.
type Limits map[string]int64

// LimitKey is one limit that can be set.
type LimitKey struct {
	Key     string
	Default int64
	Help    string
}

// Kind is a kind of resource that an account takes places of.
type Kind int

// The kinds.
const (
	KindCalls Kind = iota
	KindWaits
	KindWebSockets
	KindStreams
	KindSubscriptions
	KindBodies
	KindMemory
	Kinds
)

// Resource describes one kind.
type Resource struct {
	Key             string
	What            string      // in the plural, as an error names it
	Code            parley.Code // of a refusal beyond one agent's limit
	Each, All, Host int64
}

// Resources describes all kinds. One agent has at most each, all guests together all, and the node's host a share of its own.
func Resources() [Kinds]Resource {
	return [Kinds]Resource{
		KindCalls:         {"calls", "calls under way", parley.RateLimited, 256, 1024, 1024},
		KindWaits:         {"waits", "waits", parley.QuotaExceeded, 4096, 16384, 16384},
		KindWebSockets:    {"websockets", "WebSockets", parley.QuotaExceeded, 256, 4096, 8192},
		KindStreams:       {"streams", "event streams", parley.QuotaExceeded, 128, 2048, 4096},
		KindSubscriptions: {"subscriptions", "subscriptions", parley.QuotaExceeded, 1024, 16384, 32768},
		KindBodies:        {"bodies", "request bodies on their way", parley.RateLimited, 256, 1024, 8192},
		KindMemory:        {"memory", "bytes of requests and of responses that nobody has read", parley.RateLimited, 64 << 20, 256 << 20, 128 << 20},
	}
}

// The keys of limits that are no resource.
const (
	LimitRate            = "rate"
	LimitSignIns         = "sign-ins"
	LimitConnections     = "connections"
	LimitConnectionsAll  = "connections.all"
	LimitConnectionsHost = "connections.host"
	LimitUnproved        = "connections.peers"
)

// LimitKeys lists all limits with their defaults.
func LimitKeys() []LimitKey {
	var keys []LimitKey
	for _, r := range Resources() {
		keys = append(keys,
			LimitKey{r.Key, r.Each, r.What + " of one agent"},
			LimitKey{r.Key + ".all", r.All, r.What + " of all guests together"},
			LimitKey{r.Key + ".host", r.Host, r.What + " of the node's host"})
	}
	return append(keys,
		LimitKey{LimitRate, 10_000, "calls and frames a second of one guest"},
		LimitKey{LimitSignIns, 30, "failed attempts a minute to sign in from one address"},
		LimitKey{LimitConnections, 2048, "connections to --listen from one address"},
		LimitKey{LimitConnectionsAll, 8192, "connections to --listen"},
		LimitKey{LimitConnectionsHost, 8192, "connections to the node's own socket"},
		LimitKey{LimitUnproved, 128, "connections to --peer-listen from one address that have not proved a node's key"})
}

// ParseLimits reads limits as key=value pairs, separated by commas. It refuses with INVALID_ARGUMENT.
func ParseLimits(text string) (Limits, error) {
	limits := Limits{}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
		if key == "" {
			continue
		}
		known := slices.ContainsFunc(LimitKeys(), func(k LimitKey) bool { return k.Key == key })
		if !known {
			return nil, parley.Refuse(parley.InvalidArgument, "there is no limit %.40q", key).WithHint("%s", knownLimits())
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 || n > 1<<40 {
			return nil, parley.Refuse(parley.InvalidArgument, "%s=%.40s: want a number from 1 on", key, value)
		}
		limits[key] = n
	}
	return limits, nil
}

func knownLimits() string {
	var keys []string
	for _, k := range LimitKeys() {
		keys = append(keys, k.Key)
	}
	return strings.Join(keys, ", ")
}

// String writes the limits that were set, as ParseLimits reads them.
func (l Limits) String() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(l)) {
		pairs = append(pairs, key+"="+strconv.FormatInt(l[key], 10))
	}
	return strings.Join(pairs, ",")
}

// Unproved returns the limit of connections from one address to --peer-listen that have not proved a node's key.
func (l Limits) Unproved() int { return int(min(l.Of(LimitUnproved), 1<<20)) }

// Of returns a limit, or its default.
func (l Limits) Of(key string) int64 {
	if n, ok := l[key]; ok {
		return n
	}
	for _, k := range LimitKeys() {
		if k.Key == key {
			return k.Default
		}
	}
	return 0
}
