package main

import (
	"context"
	"fmt"
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
	client *client.Client
	pairs  []parleyPair
}

type parleyPair struct{ asker, answerer *client.Client }

const peerName = "peer" // the asker's name for the answerer

func startParley(ctx context.Context, o options) (running, error) {
	binary := filepath.Join(o.folder, "parley")
	if out, err := exec.CommandContext(ctx, "go", "build", "-C", "..", "-o", binary, "./cmd/parley").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build Parley: %w: %s", err, out)
	}
	state := filepath.Join(o.folder, "state")
	cmd := exec.Command(binary, "serve", "--listen", "off", "--state", state)
	p, err := startProgram(o, cmd)
	if err != nil {
		return nil, err
	}
	n := &parleyNode{program: p}
	if n.client, err = client.New(client.Options{Socket: filepath.Join(state, "parley.sock")}); err == nil {
		err = p.ready(ctx, func(ctx context.Context) error { return n.client.Call(ctx, "status", api.NodeRequest{}, nil) })
	}
	for i := 0; err == nil && i < o.callers; i++ {
		err = n.addPair(ctx, fmt.Sprintf("asker-%d", i), fmt.Sprintf("answerer-%d", i))
	}
	if err != nil {
		p.close()
		return nil, err
	}
	return n, nil
}

func (n *parleyNode) addPair(ctx context.Context, asker, answerer string) error {
	for _, c := range []struct {
		operation string
		req       any
	}{
		{"make_agent", api.MakeAgentRequest{Kind: events.Guest, Name: asker}},
		{"make_agent", api.MakeAgentRequest{Kind: events.Guest, Name: answerer}},
		{"send", api.SendRequest{Recipient: asker, Post: client.Post{Text: fmt.Sprintf("meet @%s:%s", peerName, answerer)}}},
		{"adopt", api.AdoptRequest{Acting: api.Acting{As: asker}, FormRef: api.RefTo("0"), Edge: peerName}},
	} {
		if err := n.client.Call(ctx, c.operation, c.req, nil); err != nil {
			return err
		}
	}
	n.pairs = append(n.pairs, parleyPair{n.client.ActingAs(asker), n.client.ActingAs(answerer)})
	return nil
}

func (n *parleyNode) cycle(ctx context.Context, caller int) error {
	p := n.pairs[caller]
	asked, err := p.asker.Ask(ctx, client.Form{To: peerName, Description: "Configure project settings", Fields: []client.Field{
		{Name: "projectName", Label: "Project name", Required: true},
		{Name: "apiKey", Label: "API key", Required: true},
	}})
	if err != nil {
		return err
	}
	if _, err := p.answerer.Answer(ctx, asked.Form, map[string]capabilities.Value{
		"projectName": capabilities.String("my-app"), "apiKey": capabilities.String("sk-1234"),
	}); err != nil {
		return err
	}
	o, err := asked.Await(ctx)
	if err == nil && o.Status != "answered" {
		err = fmt.Errorf("the form is %s", o.Status)
	}
	return err
}

func (n *parleyNode) close() {
	n.client.Close()
	n.program.close()
}
