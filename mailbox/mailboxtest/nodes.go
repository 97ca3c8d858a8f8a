package mailboxtest

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// nodeCommand runs a command about several nodes. It reports whether the command is one.
func (v *Harness) nodeCommand(cmd, as string, arg func(string) string) (out string, ok bool) {
	switch cmd {
	case "disconnect":
		if v.Offline == nil {
			v.Offline = map[string]bool{}
		}
		v.Offline[arg("node")] = true
		return "", true
	case "reconnect":
		delete(v.Offline, arg("node"))
		return "", true
	case "introduce":
		return v.Introduce(as, arg("with")), true
	case "minted":
		return v.showMinted(as), true
	case "invite":
		dur, err := time.ParseDuration(cmp.Or(arg("for"), "1h"))
		if err != nil {
			return err.Error() + "\n", true
		}
		secret := sha256.Sum256([]byte(arg("secret")))
		return v.outcome(v.Decide(as, mailbox.MakeInvitation{Name: arg("name"), Digest: secret[:], Until: v.Now.Add(dur)})), true
	case "uninvite":
		return v.outcome(v.Decide(as, mailbox.EndInvitation{Name: arg("name")})), true
	case "archive-journal":
		var c mailbox.RecordArchive
		if _, err := fmt.Sscanf(arg("commits"), "%d-%d", &c.After.Number, &c.Last.Number); err != nil {
			return err.Error() + "\n", true
		}
		c.Segments = []events.ArchivedSegment{{Last: c.Last, Bytes: 100}}
		return v.outcome(v.Decide(as, c)), true
	case "accept":
		return v.accept(as, arg), true
	}
	return "", false
}

// Introduce makes two hosts of different nodes peers, as if one had accepted an invitation of the other. Each has the
// other's node as the name for it.
func (v *Harness) Introduce(a, b string) string {
	ga, gb := v.IDsOf(a)(), v.IDsOf(b)()
	v.Must(a, mailbox.AddPeer{Host: v.States[b].ID, Name: NodeOf(b), Theirs: gb, Ours: ga, Stamp: 1})
	v.Must(b, mailbox.AddPeer{Host: v.States[a].ID, Name: NodeOf(a), Theirs: ga, Ours: gb, Stamp: 1})
	return ""
}

// accept redeems an invitation, by its name and maker, and adds the maker as a peer.
func (v *Harness) accept(as string, arg func(string) string) string {
	maker := v.States[arg("from")]
	secret := sha256.Sum256([]byte(arg("secret")))
	var made *events.InvitationMade
	for _, r := range v.Logs[arg("from")] {
		if e, ok := r.Event.(*events.InvitationMade); ok && e.Name == arg("invitation") {
			made = e
		}
	}
	ours := capabilities.ID{ULID: made.Invitation.ULID, Node: v.States[as].ID.Node}
	redeemed := v.outcome(v.Decide(arg("from"), mailbox.RedeemInvitation{
		Invitation: made.Invitation, Digest: secret[:], Host: v.States[as].ID, Grant: ours, Stamp: v.Now,
	}))
	out := arg("from") + ": " + redeemed
	if _, err := maker.CheckInvitation(made.Invitation, secret[:], v.States[as].ID.Node, v.Now); err != nil {
		return out
	}
	return out + as + ": " + v.outcome(v.Decide(as, mailbox.AddPeer{Host: maker.ID, Name: arg("name"), Theirs: made.Grant, Ours: ours, Stamp: v.Now}))
}

// showMinted returns the grants by which other nodes can reach an agent.
func (v *Harness) showMinted(as string) string {
	var b strings.Builder
	for i, g := range v.States[as].Grants.Minted() {
		how := "full"
		if g.Facet.Mode != "" {
			how = "to " + string(g.Facet.Mode)
		}
		if g.Facet.Uses != 0 {
			how += fmt.Sprintf(", %d times", g.Facet.Uses)
		}
		if g.Revoked != 0 {
			how = "revoked"
		}
		fmt.Fprintf(&b, "%d. by %s to %s: %s\n", i, v.NameOf[g.By], v.NameOf[g.To], how)
	}
	return cmp.Or(b.String(), "none\n")
}

// queued describes the queued answer and forwards of a form, and why its home refused one.
func (v *Harness) queued(f *mailbox.Form) string {
	text := ""
	if f.Queued().Answer != nil {
		text = ", answer queued"
		switch f.Queued().Answer.Reason {
		case events.Declined:
			text = ", decline queued"
		case events.Withdrawn:
			text = ", withdrawal queued"
		}
	}
	for _, w := range f.Queued().Forwards {
		text += ", forward queued to " + v.NameOf[w.To]
	}
	if f.Queued().Refused != "" {
		text += ", refused: " + f.Queued().Refused
	}
	return text
}
