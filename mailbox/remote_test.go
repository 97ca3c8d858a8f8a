package mailbox

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"parley/capabilities"
)

// outside runs the commands of a transcript that have to do with several nodes.
func (v *harness) outside(cmd, as string, arg func(string) string) (out string, ok bool) {
	switch cmd {
	case "away":
		if v.off == nil {
			v.off = map[string]bool{}
		}
		v.off[arg("node")] = true
		return "", true
	case "back":
		delete(v.off, arg("node"))
		return "", true
	case "befriend":
		return v.befriend(as, arg("with")), true
	case "minted":
		return v.showMinted(as), true
	case "invite":
		dur, err := time.ParseDuration(cmp.Or(arg("for"), "1h"))
		if err != nil {
			return err.Error() + "\n", true
		}
		secret := sha256.Sum256([]byte(arg("secret")))
		return v.outcome(v.decide(as, MakeInvitation{Name: arg("name"), Digest: secret[:], Until: v.now.Add(dur)})), true
	case "uninvite":
		return v.outcome(v.decide(as, EndInvitation{Name: arg("name")})), true
	case "accept":
		return v.accept(as, arg), true
	}
	return "", false
}

// befriend has two hosts hold each other, as if one had accepted an invitation of the other's. Each calls the
// other by its node.
func (v *harness) befriend(a, b string) string {
	ga, gb := v.idOf(a)(), v.idOf(b)()
	v.must(a, AddPeer{Host: v.states[b].ID, Name: nodeOf(b), Theirs: gb, Ours: ga, Stamp: 1})
	v.must(b, AddPeer{Host: v.states[a].ID, Name: nodeOf(a), Theirs: ga, Ours: gb, Stamp: 1})
	return ""
}

// accept shows an invitation, by its name with who made it, and takes that one's host in.
func (v *harness) accept(as string, arg func(string) string) string {
	maker := v.states[arg("from")]
	secret := sha256.Sum256([]byte(arg("secret")))
	var made Invitation
	for _, i := range maker.Peers.invitations {
		if i.Name == arg("invitation") {
			made = i
		}
	}
	ours := capabilities.ID{ULID: made.Invitation.ULID, Node: v.states[as].ID.Node}
	welcomed := v.outcome(v.decide(arg("from"), RedeemInvitation{
		Invitation: made.Invitation, Digest: secret[:], Host: v.states[as].ID, Grant: ours, Stamp: v.now,
	}))
	out := arg("from") + ": " + welcomed
	if _, err := maker.CheckInvitation(made.Invitation, secret[:], v.states[as].ID.Node, v.now); err != nil {
		return out
	}
	return out + as + ": " + v.outcome(v.decide(as, AddPeer{Host: maker.ID, Name: arg("name"), Theirs: made.Grant, Ours: ours, Stamp: v.now}))
}

// showMinted shows by which grants an agent can be reached from other nodes.
func (v *harness) showMinted(as string) string {
	var b strings.Builder
	for i, g := range v.states[as].Grants.minted.All() {
		how := "all of it"
		if g.Facet.Mode != "" {
			how = "to " + string(g.Facet.Mode)
		}
		if g.Facet.Uses != 0 {
			how += fmt.Sprintf(", %d times", g.Facet.Uses)
		}
		if g.Revoked != 0 {
			how = "revoked"
		}
		fmt.Fprintf(&b, "%d. by %s to %s: %s\n", i, v.names[g.By], v.names[g.To], how)
	}
	return cmp.Or(b.String(), "none\n")
}

// onItsWay says what a holder has said to a form whose home is elsewhere.
func (v *harness) onItsWay(f *Form) string {
	said := ""
	if f.QueuedAnswer != nil {
		said = ", an answer on its way"
		if f.QueuedAnswer.Reason != "" {
			said = ", a no on its way"
		}
	}
	for _, w := range f.QueuedForwards {
		said += ", on its way to " + v.names[w.To]
	}
	if f.Refused != "" {
		said += ", refused: " + f.Refused
	}
	return said
}
