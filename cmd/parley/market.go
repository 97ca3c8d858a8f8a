package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway"
	"parley/gateway/client"
)

// market is where a measurement's agents meet: a node, in this process or behind its socket.
type market interface {
	// pair makes two agents, and has the first hold the second under the name benchPeer.
	pair(ctx context.Context, asker, answerer string) (pair, error)
	journal(ctx context.Context) (view.JournalState, error)
	resident() float64 // bytes of memory that the node's process has
	memory() float64   // bytes of memory in use
	leave(ctx context.Context, pairs []pair) error
	close(ctx context.Context) error
}

// ownMarket is a node in this process.
type ownMarket struct{ node *actors.Node }

func openMarket(ctx context.Context, folder string) (market, error) {
	node, err := actors.Open(ctx, actors.Options{Folder: folder, Name: "bench"})
	if err != nil {
		return nil, err
	}
	return ownMarket{node}, nil
}

func (m ownMarket) pair(ctx context.Context, askerName, answererName string) (pair, error) {
	host := m.node.Host()
	asker, err := host.Make(ctx, actors.NewAgent{Kind: events.Guest, Name: askerName})
	if err != nil {
		return pair{}, err
	}
	answerer, err := host.Make(ctx, actors.NewAgent{Kind: events.Guest, Name: answererName})
	if err != nil {
		return pair{}, err
	}
	if _, err := host.Send(ctx, askerName, introduction(answererName)); err != nil {
		return pair{}, err
	}
	if err := asker.Adopt(ctx, "0", benchPeer, ""); err != nil {
		return pair{}, err
	}
	return pair{asker: ownSpeaker{asker}, answerer: ownSpeaker{answerer}}, nil
}

func introduction(name string) string { return fmt.Sprintf("meet @%s:%s", benchPeer, name) }

func (m ownMarket) journal(context.Context) (view.JournalState, error) {
	return m.node.State().Journal, nil
}
func (m ownMarket) resident() float64                   { return residentOf(os.Getpid()) }
func (m ownMarket) leave(context.Context, []pair) error { return nil }
func (m ownMarket) close(ctx context.Context) error     { return m.node.Close(ctx) }

func (m ownMarket) memory() float64 {
	runtime.GC()
	runtime.GC() // what the first one's finalizers let go
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}

type ownSpeaker struct{ agent *actors.Agent }

func (s ownSpeaker) ask(ctx context.Context) (capabilities.ID, error) {
	asked, err := s.agent.Ask(ctx, actors.Ask{To: benchPeer, Description: benchDescription, Fields: benchFields()})
	return asked.Form, err
}

func (s ownSpeaker) answer(ctx context.Context, form capabilities.ID) error {
	_, err := s.agent.Answer(ctx, actors.Answer{Which: actors.Which(form.String()), Values: benchValues()})
	return err
}

func (s ownSpeaker) await(ctx context.Context, form capabilities.ID) error {
	o, err := s.agent.Await(ctx, actors.Which(form.String()))
	return wantAnswered(o.Status, err)
}

func wantAnswered(s view.FormStatus, err error) error {
	if err == nil && s != view.StatusAnswered {
		return parley.Refuse(parley.Internal, "the form is %s", s)
	}
	return err
}

// socketMarket is a node in another process.
type socketMarket struct {
	client *client.Client
	pid    int
}

func (p *program) openSocketMarket(ctx context.Context) (market, error) {
	m := socketMarket{client: p.client()}
	var status gateway.StatusResponse
	if err := m.client.Call(ctx, "status", gateway.NodeRequest{}, &status); err != nil {
		return nil, err
	}
	m.pid = status.PID
	return m, nil
}

func (m socketMarket) pair(ctx context.Context, asker, answerer string) (pair, error) {
	calls := []struct {
		operation string
		req       any
	}{
		{"make_agent", gateway.MakeAgentRequest{Kind: events.Guest, Name: asker}},
		{"make_agent", gateway.MakeAgentRequest{Kind: events.Guest, Name: answerer}},
		{"send", gateway.SendRequest{Recipient: asker, Text: introduction(answerer)}},
		{"adopt", gateway.AdoptRequest{Acting: gateway.Acting{As: asker}, Subject: gateway.About("0"), Edge: benchPeer}},
	}
	for _, c := range calls {
		if err := m.client.Call(ctx, c.operation, c.req, nil); err != nil {
			return pair{}, err
		}
	}
	return pair{
		asker:    socketSpeaker{m.client, gateway.Acting{As: asker}},
		answerer: socketSpeaker{m.client, gateway.Acting{As: answerer}},
		names:    []string{asker, answerer},
	}, nil
}

func (m socketMarket) journal(ctx context.Context) (view.JournalState, error) {
	var status gateway.StatusResponse
	err := m.client.Call(ctx, "status", gateway.NodeRequest{}, &status)
	return status.Journal, err
}

func (m socketMarket) resident() float64 { return residentOf(m.pid) }
func (m socketMarket) memory() float64   { return residentOf(m.pid) }

// leave takes the names of the agents back. Agents are never unmade.
func (m socketMarket) leave(ctx context.Context, pairs []pair) error {
	for _, p := range pairs {
		for _, n := range p.names {
			if err := m.client.Call(ctx, "remove_name", gateway.NameRequest{Name: n}, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m socketMarket) close(context.Context) error {
	m.client.Close()
	return nil
}

type socketSpeaker struct {
	client *client.Client
	as     gateway.Acting
}

func (s socketSpeaker) ask(ctx context.Context) (capabilities.ID, error) {
	var asked struct {
		Form capabilities.ID `json:"form"`
	}
	err := s.client.Call(ctx, "form", gateway.FormRequest{
		Acting: s.as, Recipient: benchPeer, Description: benchDescription, Fields: benchFields(),
	}, &asked)
	return asked.Form, err
}

func (s socketSpeaker) answer(ctx context.Context, form capabilities.ID) error {
	return s.client.Call(ctx, "respond_form", gateway.RespondFormRequest{
		Acting: s.as, Subject: gateway.About(form.String()), Values: benchValues(),
	}, nil)
}

func (s socketSpeaker) await(ctx context.Context, form capabilities.ID) error {
	var o struct {
		Status view.FormStatus `json:"status"`
	}
	err := s.client.Call(ctx, "await", gateway.AwaitRequest{Acting: s.as, Subject: gateway.About(form.String())}, &o)
	return wantAnswered(o.Status, err)
}

// residentOf gives the memory that a process has, where the system tells; else 0.
func residentOf(pid int) float64 {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer f.Close() //nolint:errcheck // only read from
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(rest, " kB")), 64)
			if err != nil {
				return 0
			}
			return kib * 1024
		}
	}
	return 0
}
