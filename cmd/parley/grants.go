package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway"
	"parley/gateway/api"
)

func (p *program) grantsCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "grants",
		Short:   "List what the agent gave to others",
		Long:    "Lists what the agent gave to others and by which name, oldest first. Each grant can be revoked.",
		Example: "  parley grants\n  parley grants --json",
		RunE: func(c *cobra.Command, _ []string) error {
			given, err := listAll(c.Context(), p, "list_grants",
				func(at api.Paging) any { return api.ListGrantsRequest{Acting: p.acting(), Paging: at} },
				func(r api.ListGrantsResponse) ([]view.Granted, api.Paged) { return r.Grants, r.Paged })
			if err != nil {
				return err
			}
			return p.say(given, func() string { return grantTable(given) })
		},
	}
}

func grantTable(grants []view.Granted) string {
	if len(grants) == 0 {
		return ""
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GRANT\tNAME\tKIND\tHOLDS\tTO\tAT\tREVOKED\tTARGET")
	for _, g := range grants {
		to := terminal.Visible(g.ToName)
		if to == "" {
			to = g.To.String()
		}
		revoked := g.Revoked.String()
		if revoked == "" {
			revoked = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.ID, terminal.Visible(g.Name), g.Kind, facetText(g.Facet), to, g.At, revoked, g.Target)
	}
	_ = w.Flush() // into memory
	return strings.TrimSuffix(b.String(), "\n")
}

// facetText says how much of something is held.
func facetText(f capabilities.Facet) string {
	var parts []string
	if f.Mode != capabilities.Full {
		parts = append(parts, string(f.Mode)+" only")
	}
	if f.Uses != 0 {
		parts = append(parts, fmt.Sprintf("%d uses", f.Uses))
	}
	if f.Until != 0 {
		parts = append(parts, "until "+f.Until.String())
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, ", ")
}

func (p *program) revokeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "revoke GRANT",
		Short: "Take back what was given",
		Long: `Takes back what was given by a grant, and with it all that was derived from it, at once and on every node
that can be reached. "parley grants" lists them.`,
		Example:           "  parley revoke 01J…@N…",
		Args:              p.exactly("GRANT"),
		ValidArgsFunction: p.completeArguments(gateway.CompleteGrants),
		RunE: func(c *cobra.Command, args []string) error {
			err := p.call(c.Context(), "revoke", api.RevokeRequest{Acting: p.acting(), Grant: args[0]}, nil)
			if err != nil {
				return err
			}
			return p.say(map[string]string{"grant": args[0]}, silent)
		},
	}
}
