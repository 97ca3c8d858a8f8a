package mailbox_test

import (
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// countsOf returns what a message's sender knows of how many have it: those to whom it was passed on, whom it did not reach, and with how many it was
// offered, shown, handled and acknowledged.
func countsOf(m *mailbox.Message) []string {
	var all []string
	for _, e := range m.Counts {
		c := e.Counts
		all = append(all, fmt.Sprint(c.Passed, c.Missed, c.Offered, c.Shown, c.Handled, c.Acknowledged))
	}
	return all
}

// TestReplyOfOneMemberIsNotTheOthers has one member of a group reply first. The message is handled by that, for the group has replied; and its
// sender reads that one of three has, until each has read it.
func TestReplyOfOneMemberIsNotTheOthers(t *testing.T) {
	t.Parallel()
	v := mailboxtest.New(t)
	sent, read := groupOfGroup(t, v)
	counts := func(want string) {
		t.Helper()
		if got := countsOf(sent()); len(got) != 1 || got[0] != want {
			t.Errorf("counted %q, wanted %q", got, want)
		}
	}
	toAll := func(state events.MessageState, want bool) {
		t.Helper()
		if so, err := mailbox.CameToAll(v.States["host@A"], sent(), state); err != nil || so != want {
			t.Errorf("%s with all: %v, %v", state, so, err)
		}
	}
	counts("3 0 0 0 0 0")
	toAll(events.Shown, false)

	all := v.Messages("bob@A")
	v.Must("bob@A", mailbox.PostMessage{Reply: capabilities.FormID(all[len(all)-1].ID()), Post: parley.Post{Text: "I look at it"}})
	v.Deliver(false)
	counts("3 0 1 1 1 1")
	if state, err := mailbox.StateOf(&v.States["host@A"].Mail, sent()); err != nil || state != events.Handled {
		t.Errorf("by the group's reply it is %s, %v", state, err)
	}
	toAll(events.Handled, false)

	read("ann@A")
	counts("3 0 2 2 2 1")
	toAll(events.Shown, false)
	read("host@B")
	counts("3 0 3 3 3 1")
	toAll(events.Handled, true)
	v.CheckReplay()
}

// TestSnapshotHasCounts restores a group that is still to tell what it counts.
func TestSnapshotHasCounts(t *testing.T) {
	t.Parallel()
	v := mailboxtest.New(t)
	groupOfGroup(t, v)
	v.Must("host@A", mailbox.PostMessage{To: "all", Post: parley.Post{Text: "the build is red"}})
	for _, p := range v.Outgoing("host@A") {
		v.DeliverItem("host@A", p)
	}
	group := v.States["all@A"]
	restored, err := mailbox.Restore(group.ID, []byte(v.Snapshot("all@A")))
	if err != nil {
		t.Fatal(err)
	}
	m, err := restored.Mail.Find(capabilities.FormNumber(v.Messages("all@A")[len(v.Messages("all@A"))-3].Number))
	if err != nil {
		t.Fatal(err)
	}
	if got := countsOf(m); len(got) != 1 || got[0] != "2 0 0 0 0 0" {
		t.Errorf("restored it counts %q", got)
	}
	if again, err := restored.Snapshot(); err != nil || string(again) != v.Snapshot("all@A") {
		t.Errorf("the snapshot changes: %v", err)
	}
}

// TestCountsSayWhomAMessageMissed has a member archived. With those that it reached, the message has come to all.
func TestCountsSayWhomAMessageMissed(t *testing.T) {
	t.Parallel()
	v := mailboxtest.New(t)
	groupOfGroup(t, v)
	v.OnRefusal = func(string, string, string) {}
	v.Must("ann@A", mailbox.ArchiveAgent{})
	id := v.Must("host@A", mailbox.PostMessage{To: "all", Post: parley.Post{Text: "is anybody there"}})[0].(*events.MessagePosted).Message
	v.Deliver(false)
	for _, name := range []string{"bob@A", "host@B"} {
		for _, m := range v.Messages(name) {
			if m.Posted != nil && m.Posted.Original == id {
				v.Must(name, mailbox.HandleMessages{Reader: v.States[name].ID, Numbers: []uint64{m.Number}, How: events.WasRead})
			}
		}
	}
	v.Deliver(false)
	m := v.Messages("host@A")
	last := m[slices.IndexFunc(m, func(m *mailbox.Message) bool { return m.ID() == id })]
	if got := countsOf(last); len(got) != 1 || got[0] != "3 1 2 2 2 0" {
		t.Errorf("counted %q", got)
	}
	if so, err := mailbox.CameToAll(v.States["host@A"], last, events.Handled); err != nil || !so {
		t.Errorf("with all that it reached: %v, %v", so, err)
	}
	v.CheckReplay()
}

// TestReportOfCountsIsBounded has a group on another node count what cannot be, and count on and on. Its word is noted in steps, and never taken back.
func TestReportOfCountsIsBounded(t *testing.T) {
	t.Parallel()
	v := mailboxtest.New(t)
	for _, name := range []string{"host@A", "host@B", "host@C"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("host@A", "host@B")
	v.Introduce("host@A", "host@C")
	message := v.Must("host@A", mailbox.PostMessage{To: "B", Post: parley.Post{Text: "the news"}})[0].(*events.MessagePosted).Message
	v.Deliver(false)
	report := func(by string, c events.MemberCounts) ([]events.Event, error) {
		return v.Decide("host@A", mailbox.RemoteMembers{RecordMembers: mailbox.RecordMembers{Message: message, By: v.States[by].ID, Counts: c}})
	}
	for _, c := range []events.MemberCounts{{Passed: 1 << 21}, {Passed: 1, Missed: 2}, {Passed: 1, Offered: 2}, {Passed: 2, Shown: 1}, {Passed: 2, Offered: 1, Handled: 1}, {Passed: 1, Acknowledged: 2}} {
		if evs, err := report("host@B", c); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%+v: %v, %v", c, evs, err)
		}
	}
	if evs, err := report("host@C", events.MemberCounts{Passed: 1}); parley.CodeOf(err) != parley.NotPermitted {
		t.Errorf("of another: %v, %v", evs, err)
	}
	noted := 0
	for n := range uint32(2000) {
		for _, c := range []events.MemberCounts{{Passed: n, Offered: n}, {Passed: n, Missed: n}} {
			evs, err := report("host@B", c)
			if err != nil {
				t.Fatal(err)
			}
			noted += len(evs)
		}
	}
	if noted > 800 {
		t.Errorf("4,000 reports made %d events", noted)
	}
	if evs, err := report("host@B", events.MemberCounts{Passed: 1}); err != nil || len(evs) > 0 {
		t.Errorf("counts are taken back: %v, %v", evs, err)
	}
	v.CheckReplay()
}

// TestGroupOfAPeerCounts has a group on another node pass a message on to two agents of the sender's node, of which one is archived. The counts are that
// group's word, over the nodes, and what is delivered twice counts once.
func TestGroupOfAPeerCounts(t *testing.T) {
	t.Parallel()
	v := mailboxtest.New(t)
	for _, name := range []string{"host@A", "fae@A", "bob@A", "host@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("host@A", "host@B")
	v.Must("host@A", mailbox.PostMessage{To: "B", Post: parley.Post{Text: "know @fae and @bob"}})
	v.Deliver(false)
	for _, name := range []string{"fae", "bob"} {
		v.Must("host@B", mailbox.SetMember{Agent: "@mail/0/" + name, In: true})
	}
	v.Deliver(false)
	v.Must("bob@A", mailbox.ArchiveAgent{By: v.States["host@A"].ID})
	v.OnRefusal = func(_, _, _ string) {}
	v.Must("host@A", mailbox.PostMessage{To: "B", Post: parley.Post{Text: "the news"}})
	v.Deliver(true)
	sent := func() *mailbox.Message { all := v.Messages("host@A"); return all[len(all)-1] }
	check := func(want string, all bool) {
		t.Helper()
		if got := countsOf(sent()); len(got) != 1 || got[0] != want {
			t.Errorf("counted %q, wanted %q", got, want)
		}
		if so, err := mailbox.CameToAll(v.States["host@A"], sent(), events.Shown); err != nil || so != all {
			t.Errorf("with all that it reached: %v, %v", so, err)
		}
	}
	check("2 1 0 0 0 0", false)
	for _, m := range v.Messages("fae@A") {
		if m.Posted != nil && m.Posted.To == v.States["fae@A"].ID {
			v.Must("fae@A", mailbox.HandleMessages{Reader: v.States["fae@A"].ID, Numbers: []uint64{m.Number}, How: events.WasRead})
		}
	}
	v.Deliver(true)
	check("2 1 1 1 1 0", true)
	v.CheckReplay()
}
