package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/client"
)

// parleyNode is a node of Parley. Each caller has two guests, of which the first asks the second.
type parleyNode struct {
	*program
	socket  string
	clients []*client.Client // the first is the host's
	pairs   []parleyPair
}

type parleyPair struct{ asker, answerer *client.Client }

const peerName = "peer" // the asker's name for the answerer

// parleyBy returns a start of Parley, whose guests have a connection each, or share that of the host.
func parleyBy(shared bool) func(ctx context.Context, o options) (running, error) {
	return func(ctx context.Context, o options) (running, error) {
		n, err := startParley(ctx, o, shared)
		if err != nil {
			return nil, err
		}
		return n, nil
	}
}

func startParley(ctx context.Context, o options, shared bool) (_ *parleyNode, err error) {
	binary := filepath.Join(o.folder, "parley")
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", "..", "-o", binary, "./cmd/parley").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build Parley: %w: %s", err, out)
	}
	state, err := os.MkdirTemp(o.folder, "state-")
	if err != nil {
		return nil, err
	}
	n := &parleyNode{socket: filepath.Join(state, "parley.sock")}
	if n.program, err = startProgram(o, exec.Command(binary, "serve", "--listen", "off", "--state", state)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	host, err := n.connect("")
	if err != nil {
		return nil, err
	}
	if err := n.ready(ctx, func(ctx context.Context) error { return host.Call(ctx, "status", api.NodeRequest{}, nil) }); err != nil {
		return nil, err
	}
	for i := range o.callers {
		if err := n.addPair(ctx, host, fmt.Sprintf("asker-%d", i), fmt.Sprintf("answerer-%d", i), shared); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// connect returns a client that acts as an agent, with a connection of its own.
func (n *parleyNode) connect(as string) (*client.Client, error) {
	c, err := client.New(client.Options{Socket: n.socket, As: as})
	if err == nil {
		n.clients = append(n.clients, c)
	}
	return c, err
}

func (n *parleyNode) addPair(ctx context.Context, host *client.Client, asker, answerer string, shared bool) (err error) {
	for _, c := range []struct {
		operation string
		req       any
	}{
		{"make_agent", api.MakeAgentRequest{Kind: events.Guest, Name: asker}},
		{"make_agent", api.MakeAgentRequest{Kind: events.Guest, Name: answerer}},
		{"send", api.SendRequest{Recipient: asker, Post: client.Post{Text: fmt.Sprintf("meet @%s:%s", peerName, answerer)}}},
		{"adopt", api.AdoptRequest{Acting: api.Acting{As: asker}, FormRef: api.RefTo("0"), Edge: peerName}},
	} {
		if err := host.Call(ctx, c.operation, c.req, nil); err != nil {
			return err
		}
	}
	p := parleyPair{host.ActingAs(asker), host.ActingAs(answerer)}
	if !shared {
		if p.asker, err = n.connect(asker); err == nil {
			p.answerer, err = n.connect(answerer)
		}
	}
	n.pairs = append(n.pairs, p)
	return err
}

func (n *parleyNode) cycle(ctx context.Context, caller int) error {
	p := n.pairs[caller]
	asked, err := p.asker.Ask(ctx, client.Form{To: peerName, Description: description, Fields: fields})
	if err != nil {
		return err
	}
	values := map[string]capabilities.Value{}
	for name, text := range answered {
		values[name] = capabilities.String(text)
	}
	if _, err := p.answerer.Answer(ctx, asked.Form, values); err != nil {
		return err
	}
	o, err := asked.Await(ctx)
	if err == nil && o.Status != "answered" {
		err = fmt.Errorf("the form is %s", o.Status)
	}
	return err
}

func (n *parleyNode) close() {
	for _, c := range n.clients {
		c.Close()
	}
	n.program.close()
}
