package mailbox_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestWaitForGroupsThatShareMembersEnds has an author write to groups whose members are drawn: agents, and groups that others are in too. It
// reads in any order, by a reply or without, while deliveries come twice and nodes are away. No group says that all have a message before all that
// it reached have; and when all have, the author's wait for all of its recipients ends.
func TestWaitForGroupsThatShareMembersEnds(t *testing.T) {
	lawful(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		people := []string{"ann@A", "bob@A", "host@B"}
		groups := []string{"one@A", "two@A", "sub@A"}
		for _, name := range append(append([]string{"host@A"}, groups...), people...) {
			v.Add(name)
		}
		v.NameAgents()
		v.Introduce("host@A", "host@B")
		for _, group := range groups {
			v.Must("host@A", mailbox.PostMessage{To: group[:3], Post: parley.Post{Text: "know @one, @two, @sub, @ann, @bob and @B"}})
		}
		v.Deliver(false)
		drawn := map[string][]string{}
		for _, group := range groups {
			for _, member := range append(slices.Clone(people), groups...) {
				may := member != group && (group != "sub@A" || slices.Contains(people, member)) && member != "one@A" && member != "two@A"
				if may && rapid.Bool().Draw(t, member+" in "+group) {
					drawn[group] = append(drawn[group], member)
					v.Must(group, mailbox.SetMember{Agent: v.States[member].ID.String(), In: true})
				}
			}
		}
		to := []string{"one", "two"}
		if rapid.Bool().Draw(t, "to all three") {
			to = append(to, "sub")
		}
		id := v.Must("host@A", mailbox.PostMessage{To: to[0], Also: to[1:], Post: parley.Post{Text: "the news"}})[0].(*events.MessagePosted).Message
		has := map[string]bool{} // who has read it
		deliver := func() { v.Deliver(rapid.Bool().Draw(t, "twice")) }
		copyOf := func(name string) *mailbox.Message {
			for _, m := range v.Messages(name) {
				if m.Posted != nil && (m.Posted.Original == id || m.ID() == id) && m.Posted.To == v.States[name].ID {
					return m
				}
			}
			return nil
		}
		read := func(name string) {
			m := copyOf(name)
			if m == nil || has[name] {
				return
			}
			has[name] = true
			if rapid.Bool().Draw(t, "replies") {
				v.Must(name, mailbox.PostMessage{Reply: capabilities.FormNumber(m.Number), Post: parley.Post{Text: "read"}})
				return
			}
			v.Must(name, mailbox.HandleMessages{Reader: v.States[name].ID, Numbers: []uint64{m.Number}, How: events.WasRead})
		}
		state := func() (events.MessageState, []string) {
			all := v.Messages("host@A")
			m := all[slices.IndexFunc(all, func(m *mailbox.Message) bool { return m.ID() == id })]
			s, err := mailbox.StateOf(&v.States["host@A"].Mail, m)
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, r := range m.Receipts {
				said = append(said, fmt.Sprint(v.NameOf[r.By], " ", r.State, " ", r.How))
			}
			return s, said
		}
		var below func(group string) []string
		below = func(group string) (all []string) {
			for _, member := range drawn[group] {
				if slices.Contains(to, member[:3]) { // it has it from the author
					continue
				}
				if slices.Contains(groups, member) {
					all = append(all, below(member)...)
				} else {
					all = append(all, member)
				}
			}
			return all
		}
		check := func() {
			_, said := state()
			for _, group := range to {
				if !slices.Contains(said, group+"@A handled by all members") {
					continue
				}
				for _, member := range below(group + "@A") {
					if !has[member] {
						t.Fatalf("%s says that all have it, and %s has not: %s", group, member, said)
					}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"read":       func(t *rapid.T) { read(rapid.SampledFrom(people).Draw(t, "who")) },
			"deliver":    func(*rapid.T) { deliver() },
			"disconnect": func(*rapid.T) { v.Offline = map[string]bool{"A": true} },
			"connect":    func(*rapid.T) { v.Offline = nil },
			"restart":    func(*rapid.T) { v.CheckReplay() },
			"":           func(*rapid.T) { check() },
		})
		v.Offline = nil
		deliver()
		for _, name := range people {
			read(name)
		}
		deliver()
		v.Deliver(true)
		check()
		for _, group := range to { // who has no members reads for itself
			if len(below(group+"@A")) == 0 {
				read(group + "@A")
			}
		}
		for _, group := range groups {
			if len(drawn[group]) == 0 {
				read(group)
			}
		}
		v.Deliver(true)
		if got, said := state(); got != events.Handled {
			t.Fatalf("all have read what went to %v of %v, and it is %s: %s", to, drawn, got, said)
		}
		v.CheckReplay()
	})
}
