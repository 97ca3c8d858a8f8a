package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/internal/eventually"
)

// faults is the number of faults that TestClusterInNamespaces makes.
var faults = flag.Int("faults", 0, "faults of TestClusterInNamespaces; 0 skips it")

// TestClusterInNamespaces runs three servers, a node and its standby in network namespaces, with loss, delay, one-way cuts,
// pauses and kills, some at once. Nothing acknowledged is lost, each form is settled once, and the standby takes over: in
// time where the kill of its node is the only fault, and after others when the servers have a leader again.
func TestClusterInNamespaces(t *testing.T) {
	if *faults == 0 {
		t.Skip("with -faults N")
	}
	net := newNetwork(t, clusterSize+3)
	c := &cluster{dialer: spaceDialer(net.spaces[clusterSize+2].name)}
	for i := range c.options {
		s := net.spaces[i]
		c.options[i] = serverOptions{Address: s.address + ":4222", Cluster: s.address + ":6222", Space: s.name}
	}
	c.startAll(t)
	node := c.folderOf(t, nil)
	node.space = net.spaces[clusterSize].name
	node.start(t)
	status := node.runs(t)
	standby := c.folderOf(t, node)
	standby.space = net.spaces[clusterSize+1].name
	standby.start(t)
	standby.waits(t)
	l := startLoad(t, node, standby)
	races := startRaces(t, node, standby)
	var took, troubled []time.Duration
	made := map[string]int{}
	for round := range *faults {
		l.more(t, 20)
		what, heal := disturb(t, c, net, round)
		made[what]++
		if round%3 == 0 { // and the node's process ends meanwhile
			gap := l.gap(t, func() {
				node.kill()
				if round%6 == 3 { // the servers elect a leader before the standby can begin
					time.AfterFunc(15*time.Second, func() { net.setAll(link{}) })
				}
			})
			standby.runs(t)
			if round%12 != 0 {
				troubled = append(troubled, gap)
			} else {
				took = append(took, gap)
			}
		} else {
			time.Sleep(time.Duration(1+rand.IntN(2)) * time.Second)
		}
		heal()
		net.setAll(link{})
		eventually.Holds(t, "the servers have caught up", attempt(t, func(ctx context.Context) bool { return c.isWhole(ctx, status) }))
		if round%3 == 0 {
			node.start(t)
			node.waits(t)
			node, standby = standby, node
		}
		if t.Failed() {
			t.Fatalf("round %d: %s", round, what)
		}
	}
	l.more(t, 20)
	l.end()
	histories := races.check(t)
	l.check(t, node)
	slices.Sort(took)
	t.Logf("%v; %d acknowledged, none lost; %d histories; taken over after %v, with another fault after %v", made, l.acks.Load(), histories, took, troubled)
	if at := took[len(took)*99/100]; at > takeOver {
		t.Errorf("taken over after %v at the 99th percentile, want at most %v", at, takeOver)
	}
}

// disturb makes one fault, and returns its name and the function that ends it.
func disturb(t *testing.T, c *cluster, net *network, round int) (string, func()) {
	t.Helper()
	server, other := rand.IntN(clusterSize), rand.IntN(clusterSize-1)
	if other >= server {
		other++
	}
	switch round % 6 {
	case 0:
		if round%12 == 0 {
			return "a kill alone", func() {}
		}
		net.setAll(link{loss: 0.02, delay: 5 * time.Millisecond})
		return "loss and delay", func() {}
	case 1:
		net.setAll(link{loss: 0.1 + rand.Float64()/10})
		return "loss", func() {}
	case 2:
		net.set(server, other, link{cut: true})
		return "a one-way cut between servers", func() {}
	case 3:
		for i := range net.spaces {
			net.set(server, i, link{cut: true})
			net.set(i, server, link{cut: true})
		}
		return "a server alone", func() {}
	case 4:
		c.servers[server].signal(t, syscall.SIGSTOP)
		return "a pause", func() { c.servers[server].signal(t, syscall.SIGCONT) }
	default:
		c.servers[server].kill()
		net.set(clusterSize, other, link{delay: 30 * time.Millisecond})
		return "a server killed", func() { c.start(t, server) }
	}
}

// races has two clients answer, and one read, the same forms again and again.
type races struct {
	nodes     []*clusterNode
	stop      chan struct{}
	done      chan struct{}
	histories [][]porcupine.Operation
}

// raceInput is an answer, or with "" a look.
type raceInput string

// answerModel is one form: the first answer stays. An answer whose result is unknown may have been the first, or none.
var answerModel = porcupine.NondeterministicModel{
	Init: func() []any { return []any{""} },
	Step: func(state, input, output any) []any {
		was, answer, got := state.(string), string(input.(raceInput)), output.(string)
		switch {
		case answer == "" && got == "unknown":
			return []any{was}
		case answer == "":
			if got == was {
				return []any{was}
			}
			return nil
		case got == "unknown" && was == "":
			return []any{"", answer}
		case got == "unknown":
			return []any{was}
		case got == "accepted" && was == "":
			return []any{answer}
		case got == "refused" && was != "":
			return []any{was}
		case got == "refused": // by its own earlier attempt, at the node that was stopping
			return []any{answer}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}

func startRaces(t *testing.T, nodes ...*clusterNode) *races {
	t.Helper()
	if err := nodes[0].client.Call(t.Context(), "make_agent", api.MakeAgentRequest{Name: "racer"}, nil); err != nil {
		t.Fatal(err)
	}
	r := &races{nodes: nodes, stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(r.done)
		for n := 0; ; n++ {
			select {
			case <-r.stop:
				return
			case <-t.Context().Done():
				return
			default:
				r.race(t, n)
			}
		}
	}()
	return r
}

// call calls the nodes in turn, each for a second at most, and returns the first result that is known.
func (r *races) call(ctx context.Context, operation string, request, response any) error {
	err := error(parley.Refuse(parley.Timeout, "no node"))
	for _, n := range r.nodes {
		err = func(c *client.Client) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			return c.Call(ctx, operation, request, response)
		}(n.client)
		if parley.CodeOf(err) != parley.NotRunning {
			return err
		}
	}
	return err
}

// race has one form answered by two clients and read by a third.
func (r *races) race(t *testing.T, nth int) {
	var asked view.Asked
	request := formRequest("racer", "@self", fmt.Sprint("race ", nth))
	for r.call(t.Context(), "form", request, &asked) != nil { // again with the same key
		select {
		case <-r.stop:
			return
		case <-t.Context().Done():
			return
		case <-time.After(loadRetry):
		}
	}
	form, began := asked.Form.String(), time.Now()
	var mu sync.Mutex
	var history []porcupine.Operation
	var clients sync.WaitGroup
	for id, answer := range []string{"one", "two", ""} {
		clients.Go(func() {
			for range 4 {
				called := int64(time.Since(began))
				got := r.operate(t.Context(), form, answer)
				op := porcupine.Operation{ClientId: id, Input: raceInput(answer), Output: got, Call: called, Return: int64(time.Since(began))}
				if got == "unknown" {
					op.Return = int64(time.Hour) // it may take effect later
				}
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	r.histories = append(r.histories, history)
}

// operate answers a form, or reads it.
func (r *races) operate(ctx context.Context, form, answer string) string {
	if answer == "" {
		var m view.Message
		if err := r.call(ctx, "get_message", api.MessageRequest{Acting: api.Acting{As: "racer"}, FormRef: api.RefTo(form)}, &m); err != nil {
			return "unknown"
		}
		for _, value := range []string{"one", "two"} {
			if answerOf(m) == answerText(value) {
				return value
			}
		}
		return ""
	}
	request := answerRequest(form, answer)
	request.As = "racer"
	switch err := r.call(ctx, "respond_form", request, nil); {
	case err == nil:
		return "accepted"
	case parley.CodeOf(err) == parley.AlreadyAnswered:
		return "refused"
	}
	return "unknown"
}

// check ends the races and checks that each history is linearizable.
func (r *races) check(t *testing.T) int {
	t.Helper()
	close(r.stop)
	<-r.done
	for _, history := range r.histories {
		if result := porcupine.CheckOperationsTimeout(answerModel.ToModel(), history, 10*time.Second); result == porcupine.Illegal {
			t.Errorf("no order explains %+v", history)
		}
	}
	return len(r.histories)
}
