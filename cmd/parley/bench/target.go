package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/client"
)

// target is a node that is measured, in this process or behind its socket.
type target interface {
	// pair makes two agents, and has the first hold the second under the name peer. Pairs have numbers from 0, which say
	// whose connection they use.
	pair(ctx context.Context, number int, asker, answerer string) (pair, error)
	journal(ctx context.Context) (view.JournalState, error)
	resident() float64                             // returns the bytes of memory that the node's process has
	memory() float64                               // returns the bytes of memory in use
	leave(ctx context.Context, pairs []pair) error // removes the names of the agents
	close(ctx context.Context) error
}

// ownNode is a node in this process.
type ownNode struct{ node *actors.Node }

func openNode(ctx context.Context, folder string) (target, error) {
	node, err := actors.Open(ctx, actors.Options{Folder: folder, Name: "bench"})
	if err != nil {
		return nil, err
	}
	return ownNode{node}, nil
}

func (m ownNode) pair(ctx context.Context, _ int, askerName, answererName string) (pair, error) {
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
	if err := asker.Adopt(ctx, capabilities.FormNumber(0), peer, ""); err != nil {
		return pair{}, err
	}
	return pair{asker: ownAgent{asker}, answerer: ownAgent{answerer}}, nil
}

func introduction(name string) string { return fmt.Sprintf("meet @%s:%s", peer, name) }

func (m ownNode) journal(context.Context) (view.JournalState, error) {
	return m.node.State().Journal, nil
}
func (m ownNode) resident() float64                   { return residentOf(os.Getpid()) }
func (m ownNode) leave(context.Context, []pair) error { return nil }
func (m ownNode) close(ctx context.Context) error     { return m.node.Close(ctx) }

func (m ownNode) memory() float64 {
	runtime.GC()
	runtime.GC() // what the first one's finalizers let go
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}

type ownAgent struct{ agent *actors.Agent }

func (s ownAgent) ask(ctx context.Context) (capabilities.ID, func(context.Context) error, error) {
	asked, err := s.agent.Ask(ctx, parley.Form{To: peer, Description: description, Fields: fields()})
	return asked.Form, func(ctx context.Context) error {
		o, err := s.agent.Await(ctx, capabilities.FormID(asked.Form))
		return wantAnswered(o.Status, err)
	}, err
}

func (s ownAgent) answer(ctx context.Context, form capabilities.ID) error {
	_, err := s.agent.Answer(ctx, capabilities.FormID(form), parley.Answer{Values: values()})
	return err
}

func wantAnswered(s view.FormStatus, err error) error {
	if err == nil && s != view.StatusAnswered {
		return parley.Refuse(parley.Internal, "the form is %s", s)
	}
	return err
}

// socketNode is a node in another process.
type socketNode struct {
	client *client.Client
	lines  []*client.Client // make the calls that are measured; pairs take turns of them
	tokens bool             // each agent signs in on its line with a token
	status api.StatusResponse
	token  capabilities.ID // of the line, if that has its own
}

func openSocket(ctx context.Context, c *client.Client) (*socketNode, error) {
	status, err := api.Status.Do(ctx, c, api.NodeRequest{})
	return &socketNode{client: c, lines: []*client.Client{c}, status: status}, err
}

func (m *socketNode) pair(ctx context.Context, number int, asker, answerer string) (pair, error) {
	for _, act := range []api.Act{
		api.MakeAgent.With(api.MakeAgentRequest{Kind: events.Guest, Name: asker}),
		api.MakeAgent.With(api.MakeAgentRequest{Kind: events.Guest, Name: answerer}),
		api.Send.With(api.SendRequest{Recipient: asker, Post: parley.Post{Text: introduction(answerer)}}),
		api.Adopt.With(api.AdoptRequest{Acting: api.Acting{As: asker}, FormRef: api.RefTo("0"), Edge: peer}),
	} {
		if err := act(ctx, m.client); err != nil {
			return pair{}, err
		}
	}
	p := pair{names: []string{asker, answerer}}
	line := m.lines[number%len(m.lines)]
	for i, into := range []*agent{&p.asker, &p.answerer} {
		c := line.ActingAs(p.names[i])
		if m.tokens {
			made, err := m.makeToken(ctx, p.names[i])
			if err != nil {
				return p, err
			}
			c = line.WithToken(made.Text)
			if err := api.CountMessages.Run(ctx, c, api.CountMessagesRequest{}); err != nil { // signs in
				return p, err
			}
		}
		*into = socketAgent{c}
	}
	return p, nil
}

// tokenTime is the time for which the tokens of agents are valid.
const tokenTime = time.Hour

// makeToken makes a token for an agent, or for the host with the scope read if the name is "".
func (m *socketNode) makeToken(ctx context.Context, name string) (made view.Token, err error) {
	r := api.CreateTokenRequest{Acting: api.Acting{As: name}, Until: capabilities.At(time.Now().Add(tokenTime)), Note: "parley bench"}
	if name == "" {
		r.Scopes = []string{string(api.ScopeRead)}
	}
	return api.CreateToken.Do(ctx, m.client, r)
}

func (m *socketNode) journal(ctx context.Context) (view.JournalState, error) {
	status, err := api.Status.Do(ctx, m.client, api.NodeRequest{})
	return status.Journal, err
}

func (m *socketNode) resident() float64 { return residentOf(m.status.PID) }
func (m *socketNode) memory() float64   { return residentOf(m.status.PID) }

// leave removes the names of the agents. The agents themselves stay.
func (m *socketNode) leave(ctx context.Context, pairs []pair) error {
	for _, p := range pairs {
		for _, n := range p.names {
			if err := api.RemoveName.Run(ctx, m.client, api.NameRequest{Name: n}); err != nil {
				return err
			}
		}
	}
	return nil
}

// close leaves the client open, which the caller has opened.
func (m *socketNode) close(ctx context.Context) error {
	for _, line := range m.lines {
		if line != m.client {
			line.Close()
		}
	}
	if m.token.IsZero() {
		return nil
	}
	return api.RevokeToken.Run(ctx, m.client, api.RevokeTokenRequest{Token: m.token})
}

type socketAgent struct{ client *client.Client }

func (s socketAgent) ask(ctx context.Context) (form capabilities.ID, await func(context.Context) error, err error) {
	asked, err := s.client.Ask(ctx, client.Form{To: peer, Description: description, Fields: fields()})
	if err != nil {
		return form, nil, err
	}
	form, err = capabilities.ParseID(string(asked.Form))
	return form, func(ctx context.Context) error {
		o, err := asked.Await(ctx)
		return wantAnswered(view.FormStatus(o.Status), err)
	}, err
}

func (s socketAgent) answer(ctx context.Context, form capabilities.ID) error {
	_, err := s.client.Answer(ctx, client.ID(form.String()), values())
	return err
}

// residentOf returns the resident memory of a process in bytes, or 0 where the system does not tell.
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
