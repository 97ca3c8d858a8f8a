package mailboxtest

import (
	"cmp"
	"fmt"
	"strings"

	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

func (v *Harness) show(only string) string {
	var b strings.Builder
	for _, name := range v.Agents {
		if only != "" && only != name {
			continue
		}
		s := v.States[name]
		for _, m := range v.Messages(name) {
			fmt.Fprintf(&b, "%s: #%d %s\n", name, m.Number, v.describe(s, m))
		}
		for _, p := range s.Outbox.Items() {
			fmt.Fprintf(&b, "%s: item %d for %s\n", name, p.Kind, v.NameOf[p.To])
		}
	}
	return v.readable(b.String())
}

func (v *Harness) describe(s *mailbox.State, m *mailbox.Message) string {
	from := "from " + v.NameOf[m.From()]
	if s.Mail.Sent(m) {
		from = "to " + v.namesOf(m.Recipients())
	} else if p := m.Posted; p != nil && len(p.Recipients) > 0 {
		var all []capabilities.ID
		for _, r := range p.Recipients {
			all = append(all, r.Agent)
		}
		from += " to " + v.namesOf(all)
	}
	if p := m.Posted; p != nil && !p.Author.IsZero() {
		from += " by " + v.NameOf[p.Author]
	}
	gone := v.marks(s, m)
	if m.Posted != nil {
		return fmt.Sprintf("message %s: %s%s", from, mailbox.ShowText(m.Posted.Text), gone)
	}
	f := m.Form
	if !f.Forwarder.IsZero() {
		from += " forwarded by " + v.NameOf[f.Forwarder]
	}
	for i, s := range f.Steps.List() {
		from += []string{" by way of ", ", "}[min(i, 1)] + v.NameOf[s.By]
		if s.After != 0 {
			from += fmt.Sprintf(" (%s after %s)", s.Cause, s.After)
			continue
		}
		from += because(v.Now, events.ForwardCause{Cause: s.Cause, Until: s.Until})
	}
	status := "open" + v.queued(f)
	gone = v.routed(f) + amended(f) + v.votes(f) + reviewed(v, f) + gone
	if a := f.Answered; a != nil {
		status = "answered by " + v.NameOf[a.By]
		if !a.Withheld {
			values, _ := a.Values.MarshalJSON()
			status += " " + string(shorten(values))
		}
	}
	if e := f.Ended; e != nil {
		status = string(e.Reason)
		if !e.By.IsZero() {
			status += " by " + v.NameOf[e.By]
		}
		if e.Note != "" {
			status += ": " + e.Note
		}
	}
	for _, h := range f.Forwarded() {
		from += ", forwarded to " + v.NameOf[h.To] + because(v.Now, h.Because)
	}
	return fmt.Sprintf("%s %s, %s%s", m.Type(), from, status, gone)
}

// reviewed says how the review of an approval stands, or has ended; "" without one.
func reviewed(v *Harness, f *mailbox.Form) string {
	r := f.Review()
	switch {
	case r.Ended != nil && r.Ended.Note != "":
		return fmt.Sprintf(", review %s by %s: %s", r.Ended.How, v.NameOf[r.By()], r.Ended.Note)
	case r.Ended != nil:
		return fmt.Sprintf(", review %s by %s", r.Ended.How, v.NameOf[r.By()])
	case r.Asked == nil:
		return ""
	case r.Asked.MayAllow:
		return fmt.Sprintf(", reviewed by %s until %s", v.NameOf[r.By()], r.Asked.Until)
	}
	return fmt.Sprintf(", reviewed by %s, who may not allow it, until %s", v.NameOf[r.By()], r.Asked.Until)
}

// namesOf returns the names of agents in a row.
func (v *Harness) namesOf(all []capabilities.ID) string {
	names := make([]string, len(all))
	for i, id := range all {
		names[i] = v.NameOf[id]
	}
	return strings.Join(names, ", ")
}

// because returns why a form was forwarded; "" for by hand.
func because(now capabilities.Time, c events.ForwardCause) string {
	switch {
	case c.Cause == "":
		return ""
	case c.Until != 0:
		return fmt.Sprintf(" (%s for %s)", c.Cause, events.Delay(c.Until-now))
	}
	return fmt.Sprintf(" (%s)", c.Cause)
}

// shorten removes the IDs of grants from references.
func shorten(b []byte) []byte {
	s := string(b)
	for {
		i := strings.Index(s, `,"grant":"`)
		if i < 0 {
			return []byte(s)
		}
		s = s[:i] + s[i+len(`,"grant":"`)+26+1+56+1:]
	}
}

func (v *Harness) showNames(as string) string {
	var b strings.Builder
	names, err := v.States[as].Namespace().List("", "", 0)
	if err != nil {
		return v.refusal(err)
	}
	for _, n := range names {
		value, err := v.States[as].Namespace().Lookup(n)
		if err != nil {
			return v.refusal(err)
		}
		fmt.Fprintf(&b, "%s: %s\n", n, string(shorten([]byte(value.Text()))))
	}
	return v.readable(b.String())
}

func (v *Harness) showGrants(as string) string {
	var b strings.Builder
	for i, g := range v.States[as].Grants.All() {
		state := "live"
		if g.Revoked != 0 {
			state = "revoked"
		}
		fmt.Fprintf(&b, "%d. %s to %s, %s\n", i, v.NameOf[g.Target], v.NameOf[g.To], state)
	}
	return cmp.Or(b.String(), "none\n")
}

// showRules returns an agent's standing rules.
func (v *Harness) showRules(as string) string {
	var b strings.Builder
	for i, r := range v.States[as].Rules.Valid(v.Now) {
		verb := "never"
		if r.Allow {
			verb = "always"
		}
		end := ""
		if r.Until != 0 {
			end = ", until " + r.Until.String()
		}
		fmt.Fprintf(&b, "%d: %s %s %s%s, used %d times\n", i, verb, r.Tool, r.Words(), end, r.Uses)
	}
	return b.String()
}

// showMandates returns the mandates that an agent has and had, and what is left of them.
func (v *Harness) showMandates(as string) string {
	var b strings.Builder
	for i, m := range v.States[as].Rules.Mandates() {
		fmt.Fprintf(&b, "%d: %d of %d calls", i, len(m.Charges), m.Calls)
		for j, sum := range m.Sums {
			fmt.Fprintf(&b, ", %s of %s %g of %g", sum.Member, sum.Tool, inMillions(m.Spent[j]), inMillions(sum.Most))
		}
		if !m.Session.IsZero() {
			fmt.Fprintf(&b, ", for %s", v.NameOf[m.Session])
		}
		if m.Until != 0 {
			fmt.Fprintf(&b, ", until %s", m.Until)
		}
		if end := m.EndOf(v.Now); end != "" {
			fmt.Fprintf(&b, ", %s", end)
		}
		fmt.Fprintf(&b, "\n  %s\n", strings.Join(m.Words(), "\n  "))
	}
	return b.String()
}

func inMillions(n int64) float64 { return float64(n) / 1e6 }

// showOffers returns the rules that an approval offers, and the help of its decision.
func (v *Harness) showOffers(as string, ref capabilities.FormRef) string {
	m, err := v.States[as].Mail.FindForm(ref)
	if err != nil {
		return v.refusal(err)
	}
	text := ""
	for _, o := range mailbox.OffersOf(m.Form.Permission()) {
		text += o.ID + ": " + o.Words + "\n"
	}
	if help := m.Form.Fields[0].Help; help != "" {
		text += help + "\n"
	}
	return text
}
