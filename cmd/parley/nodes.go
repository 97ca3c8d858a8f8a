package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley/actors/view"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
)

func (p *program) nodesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "nodes",
		Short: "List the other nodes that this one knows",
		Long: `Lists the other nodes that this one knows: the host's name for theirs, or - for a node known only because
another told of it; whether it can be reached now; and how much mail waits for that. What waits is on disk, and
is sent when it can.`,
		Example: "  parley nodes\n  parley nodes --json",
		RunE: func(c *cobra.Command, _ []string) error {
			known, err := listAll(c.Context(), p, "list_nodes",
				func(at api.Paging) any { return api.ListNodesRequest{Acting: p.acting(), Paging: at} },
				func(r api.ListNodesResponse) ([]view.Peer, api.Paged) { return r.Nodes, r.Paged })
			if err != nil {
				return err
			}
			return p.say(known, func() string { return nodeTable(known) })
		},
	}
}

func nodeTable(nodes []view.Peer) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, n := range nodes {
		name, reachable, heard := terminal.Visible(n.Name), "unreachable", "never heard"
		if name == "" {
			name = "-"
		}
		if n.Reachable {
			reachable = "reachable"
		}
		if n.Heard != 0 {
			heard = "last heard " + n.Heard.String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d waiting\n", name, n.Node, reachable, heard, n.Waiting)
	}
	_ = w.Flush() // into memory
	return strings.TrimSuffix(b.String(), "\n")
}

// noteUnreachable tells a person that what was accepted goes out later. Programs find it in the result.
func (p *program) noteUnreachable(unreachable bool, whose string) {
	if unreachable && !p.options.json {
		fmt.Fprintf(p.stderr, "parley: note: the node of %s cannot be reached now; it is sent when it can\n", whose)
	}
}
