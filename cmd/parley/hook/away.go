package hook

import (
	"slices"
	"strings"

	"parley"
)

// Away says what becomes of a call about which nobody decides: there is no node, nobody follows the inbox, or nobody has
// decided in time. "" is Ask where the agent has a prompt, and Deny where it has none.
type Away string

const (
	Ask   Away = "ask"   // the agent's own prompt asks
	Deny  Away = "deny"  // it is denied
	Mode  Away = "mode"  // the agent's permission mode says, as without Parley
	Defer Away = "defer" // the agent ends, and asks again when its session is resumed; only without a terminal
)

// ReadAway returns what an agent does with a call about which nobody decides.
func (a Agent) ReadAway(text string) (Away, error) {
	if w := Away(text); w == "" || slices.Contains(a.Aways, w) {
		return w, nil
	}
	return "", parley.Refuse(parley.InvalidArgument, "%.40q is none of %s", text, a.AwayNames())
}

// AwayNames returns what the agent can do with such a call, as a list in words.
func (a Agent) AwayNames() string {
	words := make([]string, len(a.Aways))
	for i, w := range a.Aways {
		words[i] = string(w)
	}
	return strings.Join(words, ", ")
}

// isAlone reports whether the agent has no prompt at which it could ask.
func (a Agent) isAlone(o Options) bool { return a.alone != nil && a.alone(o.Env) }

// settle says what becomes of an undecided call, and completes its reason. What fails in another way than that nobody is
// there asks, or is denied where there is no prompt: the permission mode does not allow it then.
func (a Agent) settle(call toolCall, d Decision, o Options) Decision {
	switch {
	case d.Decided || call.event != PreToolUse && call.event != PermissionRequest:
		return d
	case a.asksItself(call): // a question that nobody answers allows nothing
		d.Reason += "; " + a.Title + " asks it itself"
		return d
	}
	alone := a.isAlone(o)
	usual := Ask
	if alone {
		usual = Deny
	}
	d.Then = o.WhenAway
	switch {
	case d.Then == "", !d.Away && (d.Then == Mode || d.Then == Defer):
		d.Then = usual
	case d.Then == Defer && (!alone || call.part != ""): // a terminal ignores it, and a subagent cannot
		d.Then = usual
	}
	switch d.Then {
	case Ask:
		d.Reason += "; " + a.Title + " asks at its own prompt"
		if alone {
			d.Reason += ", if it has one"
		}
	case Mode:
		d.Reason += "; the permission mode of " + a.Title + " decides"
	case Defer:
		d.Reason += "; the call waits until the session is resumed"
	case Deny:
		d.Decided = true
		switch {
		case o.WhenAway == Deny:
			d.Reason = "denied by Parley (--when-away deny): " + d.Reason
		case !d.Away:
			d.Reason = "denied by Parley, where nobody can be asked at a prompt: " + d.Reason
		default:
			d.Reason = "denied by Parley: " + d.Reason + ", and without a terminal nobody can be asked (parley setup " + a.Name + " --when-away)"
		}
	}
	return d
}
