package actors

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"parley/actors/keys"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/persistence"
)

// startAgents is the largest number of agents in BenchmarkStartWithAgents.
var startAgents = flag.Int("start.agents", 10_000, "the largest number of agents in BenchmarkStartWithAgents")

// startRest is the time for which a node rests before its memory is measured.
var startRest = flag.Duration("start.rest", 0, "the time after a start at which BenchmarkStartWithAgents measures the memory")

// agentsAtOnce is the number of agents that addAgents makes in one commit.
const agentsAtOnce = 100

// addAgents adds agents to the log of a node that is closed. The agent by holds all of them under names.
func addAgents(b *testing.B, folder string, host, by capabilities.ID, count int) {
	b.Helper()
	key, err := keys.Load(folder)
	if err != nil {
		b.Fatal(err)
	}
	node, err := keys.NodeOf(key)
	if err != nil {
		b.Fatal(err)
	}
	j, err := persistence.Open(b.Context(), persistence.Options{Folder: folder, Node: node})
	if err != nil {
		b.Fatal(err)
	}
	m, _ := j.Mailbox(by)
	at := j.LastTime()
	var last persistence.Position
	for n := 0; n < count; n += agentsAtOnce {
		var bound []events.Recorded
		var sections []events.Section
		for i := range agentsAtOnce {
			at++
			id := capabilities.ID{ULID: ulid.MustNew(uint64(at), nil), Node: node}
			genesis := events.Recorded{At: at, Event: &events.AgentCreated{Agent: id, Kind: events.Guest, Host: host, By: by, Title: fmt.Sprint("agent ", n+i)}}
			s := mailbox.New(id)
			if err := s.Apply(genesis); err != nil {
				b.Fatal(err)
			}
			bound = append(bound, events.Recorded{At: at, Event: &events.NameBound{
				Name: fmt.Sprint("agent-", n+i), Value: capabilities.Reference(capabilities.Ref{Target: id, Kind: capabilities.KindAgent}),
			}})
			section := bodyOf(b, id, 1, genesis)
			section.Note = noteOf(statusOf(s), host, s.ID == host && isAlone(s), s.Files.Any())
			sections = append(sections, section)
		}
		sections = append(sections, bodyOf(b, by, m.Version+1, bound...))
		m.Version += agentsAtOnce
		last = j.Append(sections...)
		if n%(100*agentsAtOnce) == 0 {
			awaitStored(b, j, last)
		}
	}
	awaitStored(b, j, last)
	if err := j.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func bodyOf(b *testing.B, id capabilities.ID, first uint64, evs ...events.Recorded) events.Section {
	b.Helper()
	body, err := events.Append(nil, evs...)
	if err != nil {
		b.Fatal(err)
	}
	return events.Section{Mailbox: id, First: first, Count: uint32(len(evs)), Body: body}
}

func awaitStored(b *testing.B, j *persistence.Journal, pos persistence.Position) {
	b.Helper()
	stored := make(chan error, 1)
	j.Release(pos, func(err error) { stored <- err })
	if err := <-stored; err != nil {
		b.Fatal(err)
	}
}

// liveHeap returns the bytes that are reachable.
func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkStartWithAgents opens nodes with 10^2 agents and more at rest, which the host or another agent has made. It
// reports the time and processor time of the start, the time of the first page of the list and of later ones, and the memory of an agent.
func BenchmarkStartWithAgents(b *testing.B) {
	for _, maker := range []string{"host", "guest"} {
		first := map[string]time.Duration{}
		for count := 100; count <= *startAgents; count *= 10 {
			b.Run(fmt.Sprintf("by=%s/agents=%d", maker, count), func(b *testing.B) {
				folder := b.TempDir()
				n := openNode(b, folder)
				by := n.host
				if maker == "guest" {
					by = guest(b, n, "maker").id
				}
				host := n.host
				closeNode(b, n)
				addAgents(b, folder, host, by, count)
				if by == host && count > snapshotEvents {
					n = openNode(b, folder)
					for saved := false; !saved; time.Sleep(10 * time.Millisecond) { // 10^6 names take a minute
						m, _ := n.journal.Mailbox(by)
						saved = m.Snapshot > 0
					}
					closeNode(b, n)
				}
				var start, spent, page, next time.Duration
				var heap uint64
				for range b.N {
					n = nil
					before := liveHeap()
					spentBefore := cpuTime(b)
					start += measure(b, func() (err error) {
						n, err = Open(b.Context(), Options{Folder: folder})
						return err
					})
					spent += cpuTime(b) - spentBefore
					var list []view.AgentStatus
					pageAfter := func(after string) time.Duration {
						return measure(b, func() (err error) {
							list, err = n.Host().Agents().Page(b.Context(), view.AgentFilter{}, after, 100)
							return err
						})
					}
					page += pageAfter("")
					if len(list) != 100 {
						b.Fatalf("%d agents", len(list))
					}
					next += pageAfter(list[len(list)-1].ID.String())
					time.Sleep(*startRest)
					heap += liveHeap() - before
					closeNode(b, n)
				}
				of := func(name string, sum time.Duration) {
					mean := sum / time.Duration(b.N)
					if count == 100 {
						first[name] = mean
					}
					b.ReportMetric(float64(mean.Microseconds())/1000, "ms/"+name)
					b.ReportMetric(float64(mean)/float64(first[name]), name+"-of-10^2")
				}
				of("start", start)
				of("start-cpu", spent)
				of("page", page)
				of("next", next)
				b.ReportMetric(float64(heap)/float64(b.N)/float64(count), "B/agent")
			})
		}
	}
}
