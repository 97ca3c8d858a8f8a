package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/backend"
)

const (
	maxPeerMetrics = 1000 // nodes with metrics of their own; a monitoring system stores each metric for long
	collectTime    = 5 * time.Second
)

// collector reads the metrics of a node when they are asked for. It is not a prometheus.GaugeFunc for each metric: one
// look at the node serves all metrics of a kind, so they belong to one moment. Metrics with labels need readings
// anyway.
type collector struct {
	server *Server
	state  []reading[view.NodeState]
	peers  []reading[api.Peers]
	peer   []reading[view.Peer]      // by node
	limits []reading[api.LimitState] // by name and user
}

// reading is one metric of a T.
type reading[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) float64
}

func gauge[T any](name, help string, value func(T) float64, labels ...string) reading[T] {
	return reading[T]{prometheus.NewDesc("parley_"+name, help, labels, nil), prometheus.GaugeValue, value}
}

func counter[T any](name, help string, value func(T) uint64, labels ...string) reading[T] {
	return reading[T]{prometheus.NewDesc("parley_"+name+"_total", help, labels, nil), prometheus.CounterValue,
		func(t T) float64 { return float64(value(t)) }}
}

func newCollector(s *Server) *collector {
	return &collector{server: s, state: stateReadings(), peers: peersReadings(), peer: peerReadings(), limits: limitReadings()}
}

func stateReadings() []reading[view.NodeState] {
	type of = view.NodeState
	return []reading[of]{
		counter("journal_commits", "Commits in the journal.", func(s of) uint64 { return s.Journal.Commits }),
		counter("journal_events", "Events in the journal.", func(s of) uint64 { return s.Journal.Events }),
		gauge("journal_bytes", "Size of the journal.", func(s of) float64 { return float64(s.Journal.Bytes) }),
		gauge("archive_bytes", "Size of the segments of the journal's archive, wherever they are.", func(s of) float64 { return float64(s.Journal.ArchiveBytes) }),
		gauge("agents", "Agents of the node.", func(s of) float64 { return float64(s.Agents) }),
		gauge("open_forms", "Forms and requests that have not ended.", func(s of) float64 { return float64(s.OpenForms) }),
		gauge("active_mailboxes", "Mailboxes in memory.", func(s of) float64 { return float64(s.Active) }),
		gauge("disk_flush_seconds", "For how long the disk has been at the flush that all writes wait for; 0 while it keeps up.", func(s of) float64 { return float64(s.Journal.Flushing) }),
		gauge("read_only", "1 while the node takes no changes.", func(s of) float64 { return truth(s.Problem != nil) }),
	}
}

func limitReadings() []reading[api.LimitState] {
	type of = api.LimitState
	return []reading[of]{
		gauge("limit_used", "How much of a limit is used now.", func(l of) float64 { return float64(l.Now) }, "limit", "for"),
		gauge("limit", "The most that a limit allows.", func(l of) float64 { return float64(l.Limit) }, "limit", "for"),
		counter("limit_refused", "What was refused for a limit.", func(l of) uint64 { return l.Refused }, "limit", "for"),
	}
}

func peersReadings() []reading[api.Peers] {
	type of = api.Peers
	return append([]reading[of]{
		gauge("peers_known", "Other nodes that the node knows.", func(p of) float64 { return float64(p.Known) }),
		gauge("peers_reachable", "Those that can be reached now.", func(p of) float64 { return float64(p.Reachable) }),
		gauge("peers_waiting_parcels", "Mail for other nodes that has not arrived, in outbox items.", func(p of) float64 { return float64(p.Waiting) }),
	}, trafficReadings("peers_", func(p of) view.Traffic { return p.Traffic })...)
}

func peerReadings() []reading[view.Peer] {
	type of = view.Peer
	return append([]reading[of]{
		gauge("peer_reachable", "1 if the other node can be reached now.", func(p of) float64 { return truth(p.Reachable) }, "node"),
		gauge("peer_waiting_parcels", "Mail for the other node that has not arrived, in outbox items.", func(p of) float64 { return float64(p.Waiting) }, "node"),
	}, trafficReadings("peer_", func(p of) view.Traffic { return p.Traffic }, "node")...)
}

func trafficReadings[T any](prefix string, of func(T) view.Traffic, labels ...string) []reading[T] {
	count := func(name, help string, value func(view.Traffic) uint64) reading[T] {
		return counter(prefix+name, help, func(t T) uint64 { return value(of(t)) }, labels...)
	}
	type t = view.Traffic
	return []reading[T]{
		count("received_letters", "Packets from other nodes.", func(t t) uint64 { return t.PacketsIn }),
		count("sent_letters", "Packets to other nodes.", func(t t) uint64 { return t.PacketsOut }),
		count("received_bytes", "Bytes of packets from other nodes.", func(t t) uint64 { return t.BytesIn }),
		count("sent_bytes", "Bytes of packets to other nodes.", func(t t) uint64 { return t.BytesOut }),
		count("received_parcels", "Outbox items from other nodes.", func(t t) uint64 { return t.MailIn }),
		count("sent_parcels", "Outbox items to other nodes.", func(t t) uint64 { return t.MailOut }),
		count("refused_letters", "Packets that were forged, altered, malformed, oversized or foreign.", func(t t) uint64 { return t.Refused }),
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	describe(to, c.state)
	describe(to, c.peers)
	describe(to, c.peer)
	describe(to, c.limits)
}

func describe[T any](to chan<- *prometheus.Desc, readings []reading[T]) {
	for _, r := range readings {
		to <- r.desc
	}
}

// Collect implements prometheus.Collector. If the node cannot list the others, it still sends the metrics of the node.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	collect(to, c.state, c.server.node.State())
	for _, l := range c.server.backend.Limits() {
		collect(to, c.limits, l, l.Name, l.For)
	}

	ctx, cancel := context.WithTimeout(c.server.draining, collectTime)
	defer cancel()
	known, err := c.server.node.Nodes(ctx)
	if err != nil {
		err = fmt.Errorf("list the other nodes: %w", err)
		to <- prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		return
	}
	c.collectPeers(to, known, c.server.node.Traffic())
}

func (c *collector) collectPeers(to chan<- prometheus.Metric, known []view.Peer, all view.Traffic) {
	collect(to, c.peers, backend.CountPeers(known, all))
	for _, p := range known[:min(len(known), maxPeerMetrics)] {
		collect(to, c.peer, p, p.Node.String())
	}
}

func collect[T any](to chan<- prometheus.Metric, readings []reading[T], of T, labels ...string) {
	for _, r := range readings {
		to <- prometheus.MustNewConstMetric(r.desc, r.kind, r.value(of), labels...) // panics if the number of labels differs, which no input can cause
	}
}
