package mailboxtest

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/mailbox"
)

// leaseCommand runs a command about leases and teams. It reports whether the command is one.
func leaseCommand(v *Harness, cmd, as string, arg func(string) string, input string) (string, bool) {
	seconds := func(key string) time.Duration {
		n, _ := strconv.Atoi(arg(key))
		return time.Duration(n) * time.Second
	}
	number, _ := strconv.ParseUint(arg("lease"), 10, 64)
	by := v.States[cmp.Or(arg("by"), "host")]
	var c mailbox.Command
	switch cmd {
	case "lease":
		c = mailbox.AskLease{
			Holder: by.ID, Of: by.Profile.Of, Team: arg("team"), Patterns: strings.Fields(input), Shared: arg("shared") == "yes", For: arg("for"),
			Length: seconds("seconds"), Wait: seconds("wait"),
		}
	case "renew":
		c = mailbox.RenewLease{Lease: number, By: by.ID, Length: seconds("seconds")}
	case "release":
		c = mailbox.EndLease{Lease: number, By: by.ID}
	case "gone":
		c = mailbox.EndLeasesOf{Holder: by.ID}
	case "over":
		c = mailbox.ExpireLeases{}
	case "team":
		c = mailbox.MakeTeam{Team: v.States[arg("is")].ID, Name: arg("name")}
	case "join":
		c = mailbox.SetTeamMember{Team: arg("team"), Agent: v.States[arg("agent")].ID, In: arg("out") == ""}
	case "disband":
		c = mailbox.EndTeam{Team: arg("team")}
	case "leases":
		return showLeases(v, as), true
	default:
		return "", false
	}
	evs, err := v.Decide(as, c)
	if refused, ok := errors.AsType[*mailbox.Leased](err); ok {
		return fmt.Sprintf("leased by %s under %d\n", v.NameOf[refused.Lease.Asked.Holder], refused.Lease.Number()), true
	}
	return v.outcome(evs, err), true
}

// showLeases returns the leases, and the teams with their members.
func showLeases(v *Harness, as string) string {
	var b strings.Builder
	s := v.States[as]
	for _, l := range s.Leases.All() {
		state := "held"
		if !l.Held {
			state = fmt.Sprintf("waits for %d", s.Leases.Ahead(l.Number()))
		}
		fmt.Fprintf(&b, "%d %s %v: %s for %s\n", l.Number(), v.NameOf[l.Asked.Holder], l.Asked.Patterns, state, time.Duration(l.Until-v.Now)*time.Millisecond)
	}
	for _, t := range s.Teams.All() {
		var names []string
		for _, m := range t.Members {
			names = append(names, v.NameOf[m.Agent])
		}
		fmt.Fprintf(&b, "team %s: %s\n", t.Name, strings.Join(names, " "))
	}
	return cmp.Or(b.String(), "none\n")
}
