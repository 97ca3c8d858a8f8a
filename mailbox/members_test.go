package mailbox_test

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// groupOfGroup has a group of an agent and another group, which has one member on another node and one here. It returns what its
// members read of a message to the group.
func groupOfGroup(t *testing.T, v *mailboxtest.Harness) (sent func() *mailbox.Message, read func(name string)) {
	t.Helper()
	for _, name := range []string{"host@A", "all@A", "ops@A", "ann@A", "bob@A", "host@B"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("host@A", "host@B")
	v.Must("host@A", mailbox.PostMessage{To: "all", Post: parley.Post{Text: "know @ops and @bob"}})
	v.Must("host@A", mailbox.PostMessage{To: "ops", Post: parley.Post{Text: "know @ann and @B"}})
	v.Deliver(false)
	for group, members := range map[string][]string{"all@A": {"ops", "bob"}, "ops@A": {"ann", "B"}} {
		for _, name := range members {
			v.Must(group, mailbox.SetMember{Agent: "@mail/0/" + name, In: true})
		}
	}
	id := v.Must("host@A", mailbox.PostMessage{To: "all", Post: parley.Post{Text: "the news"}})[0].(*events.MessagePosted).Message
	v.Deliver(false)
	sent = func() *mailbox.Message {
		all := v.Messages("host@A")
		return all[slices.IndexFunc(all, func(m *mailbox.Message) bool { return m.ID() == id })]
	}
	read = func(name string) {
		t.Helper()
		s := v.States[name]
		for _, m := range v.Messages(name) {
			if m.Posted != nil && m.Posted.Original == id && m.Posted.To == s.ID {
				v.Must(name, mailbox.HandleMessages{Reader: s.ID, Numbers: []uint64{m.Number}, How: events.WasRead})
			}
		}
		v.Deliver(false)
	}
	return sent, read
}

// TestSenderSeesMembersOfGroups has the members of a group, and of a group in it, read a message one after the other. Its sender sees each of
// them, as the group says, and that all have once they have.
func TestSenderSeesMembersOfGroups(t *testing.T) {
	t.Parallel()
	v := mailboxtest.New(t)
	sent, read := groupOfGroup(t, v)
	state := func() (state events.MessageState, members []string) {
		t.Helper()
		m := sent()
		state, err := mailbox.StateOf(&v.States["host@A"].Mail, m)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range m.Members {
			members = append(members, v.NameOf[e.Member]+" "+string(e.State)+" "+e.How)
		}
		slices.Sort(members)
		return state, members
	}
	for _, step := range []struct {
		reads   string
		state   events.MessageState
		members string
	}{
		{"", events.Delivered, ""},
		{"bob@A", events.Delivered, "bob@A handled read"},
		{"ann@A", events.Delivered, "ann@A handled read, bob@A handled read"},
		{"host@B", events.Handled, "ann@A handled read, bob@A handled read, host@B handled read, ops@A handled by all members"},
	} {
		if step.reads != "" {
			read(step.reads)
		}
		if got, members := state(); got != step.state || strings.Join(members, ", ") != step.members {
			t.Errorf("after %q it is %s with %q, wanted %s with %q", step.reads, got, members, step.state, step.members)
		}
	}
	if own, err := mailbox.StateOf(&v.States["all@A"].Mail, v.Messages("all@A")[1]); err != nil || own != events.Delivered {
		t.Errorf("for a reader of the group's own it is %s, %v", own, err)
	}
	v.CheckReplay()
}

// TestMembersReadWhatIsRepliedTo has one member of a group reply to what it passed on. The others read it as a reply to what they got; a member that
// has joined since, and has not got that, reads it as a message.
func TestMembersReadWhatIsRepliedTo(t *testing.T) {
	t.Parallel()
	v := mailboxtest.New(t)
	groupOfGroup(t, v)
	v.Add("eve@A")
	v.NameAgents()
	v.Must("host@A", mailbox.PostMessage{To: "all", Post: parley.Post{Text: "know @eve"}})
	v.Deliver(false)
	v.Must("host@A", mailbox.PostMessage{To: "all", Post: parley.Post{Text: "the build is red"}})
	v.Deliver(false)
	v.Must("all@A", mailbox.SetMember{Agent: v.States["eve@A"].ID.String(), In: true})
	last := func(name string) *events.MessagePosted {
		all := v.Messages(name)
		return all[len(all)-1].Posted
	}
	parents := map[string]capabilities.ID{"eve@A": {}}
	for _, name := range []string{"ops@A", "ann@A", "host@B"} {
		for _, m := range v.Messages(name) {
			if m.Posted != nil && mailbox.ShowText(m.Posted.Text) == "the build is red" && m.Posted.To == v.States[name].ID {
				parents[name] = m.ID()
			}
		}
	}
	if len(parents) != 4 {
		t.Fatalf("%d members got it", len(parents)-1)
	}
	v.Must("bob@A", mailbox.PostMessage{Reply: capabilities.FormID(last("bob@A").Message), Post: parley.Post{Text: "I look at it"}})
	v.Deliver(false)
	for name, parent := range parents {
		for _, m := range v.Messages(name) {
			if m.Posted != nil && mailbox.ShowText(m.Posted.Text) == "I look at it" && m.Posted.To == v.States[name].ID && m.Posted.ReplyTo != parent {
				t.Errorf("%s reads it as a reply to %s, wanted %s", name, m.Posted.ReplyTo, parent)
			}
		}
		if e := last(name); mailbox.ShowText(e.Text) != "I look at it" {
			t.Errorf("%s has %s", name, mailbox.ShowText(e.Text))
		}
	}
	v.CheckReplay()
}

// TestPassedOnSaysWhatItsAuthorCallsItself has a message passed on by a group, and by a group in that to an agent of another node. Each says
// what the author calls itself, cut to what is shown. Nobody believes a node that says so of an agent which is not the node's own.
func TestPassedOnSaysWhatItsAuthorCallsItself(t *testing.T) {
	t.Parallel()
	v := mailboxtest.New(t)
	groupOfGroup(t, v)
	title := strings.Repeat("“shop” ", 15)
	v.Must("host@A", mailbox.UpdateAgent{Title: &title})
	v.Must("host@A", mailbox.PostMessage{To: "all", Post: parley.Post{Text: "the build is red"}})
	v.Deliver(false)
	last := func(name string) *events.MessagePosted {
		all := v.Messages(name)
		return all[len(all)-1].Posted
	}
	author, want := v.States["host@A"].ID, parley.Shown(title, parley.MaxCalled)
	for _, name := range []string{"bob@A", "ann@A", "host@B"} {
		if e := last(name); e.Author != author || e.AuthorSaid != want {
			t.Errorf("%s: %s by %s, who calls itself %q, wanted %q", name, mailbox.ShowText(e.Text), v.NameOf[e.Author], e.AuthorSaid, want)
		}
	}
	v.CheckReplay()

	hostile := func(change func(*events.MessagePosted)) ([]events.Event, error) {
		e := *last("host@B")
		e.Message = v.IDsOf("host@A")()
		change(&e)
		return v.Decide("host@B", mailbox.RemoteDelivery{AcceptDelivery: mailbox.AcceptDelivery{Posted: &e}})
	}
	for code, change := range map[parley.Code]func(*events.MessagePosted){
		parley.InvalidArgument: func(e *events.MessagePosted) {
			e.Author, e.Original, e.Passed = capabilities.ID{}, capabilities.ID{}, nil
		},
		parley.TooLarge: func(e *events.MessagePosted) { e.AuthorSaid = strings.Repeat("x", 10_000) },
	} {
		if evs, err := hostile(change); parley.CodeOf(err) != code {
			t.Errorf("%v, %v: want %s", evs, err, code)
		}
	}
	evs, err := hostile(func(e *events.MessagePosted) { e.Author, e.AuthorSaid = v.States["host@B"].ID, "HOST" })
	if err != nil {
		t.Fatal(err)
	}
	if e := evs[0].(*events.MessagePosted); e.Author != e.From || e.AuthorSaid != "" {
		t.Errorf("a node speaks for an agent of another: %s calls itself %q", v.NameOf[e.Author], e.AuthorSaid)
	}
}

// TestReportOfMembersIsBounded has a group of another node report on members: on those of the sender's node it is not believed, and
// nobody reports on what was not sent to it.
func TestReportOfMembersIsBounded(t *testing.T) {
	t.Parallel()
	v := mailboxtest.New(t)
	for _, name := range []string{"host@A", "fae@A", "host@B", "host@C"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Introduce("host@A", "host@B")
	v.Introduce("host@A", "host@C")
	message := v.Must("host@A", mailbox.PostMessage{To: "B", Post: parley.Post{Text: "the news"}})[0].(*events.MessagePosted).Message
	v.Deliver(false)
	member := func(node string, n byte) capabilities.ID {
		id := v.States["host@"+node].ID
		id.ULID[15] ^= n
		return id
	}
	report := mailbox.RecordMembers{Message: message, By: v.States["host@B"].ID}
	for n := range byte(80) {
		report.Members = append(report.Members, events.MemberReported{Member: member("B", n+1), State: events.Shown, Date: v.Now + 1e9, All: events.Handled})
	}
	refused := func(want parley.Code, c mailbox.RecordMembers) {
		t.Helper()
		if _, err := v.Decide("host@A", mailbox.RemoteMembers{RecordMembers: c}); parley.CodeOf(err) != want {
			t.Errorf("%v, wanted %s", err, want)
		}
	}
	refused(parley.TooLarge, report)
	report.Members = report.Members[:64]
	twice := report
	twice.Members = append(slices.Clone(report.Members[:2]), report.Members[1])
	refused(parley.InvalidArgument, twice)
	forged := report
	forged.By = v.States["host@C"].ID
	refused(parley.NotPermitted, forged)
	own := report
	own.Members = []events.MemberReported{{Member: v.States["fae@A"].ID, State: events.Handled, How: "read"}}
	for _, c := range []mailbox.RecordMembers{own, report, report} {
		if _, err := v.Decide("host@A", mailbox.RemoteMembers{RecordMembers: c}); err != nil {
			t.Fatal(err)
		}
	}
	more := report
	more.Members = []events.MemberReported{{Member: member("B", 100), State: events.Shown}, {Member: report.Members[0].Member, State: events.Delivered}}
	if evs, err := v.Decide("host@A", mailbox.RemoteMembers{RecordMembers: more}); err != nil || len(evs) > 0 {
		t.Errorf("%d more, %v", len(evs), err)
	}
	all := v.Messages("host@A")
	m := all[len(all)-1]
	if len(m.Members) != 64 || m.Members[0].Date > v.Now || m.Members[0].All != "" {
		t.Errorf("%d members, %+v", len(m.Members), m.Members[0])
	}
	if state, err := mailbox.StateOf(&v.States["host@A"].Mail, m); err != nil || state != events.Delivered {
		t.Errorf("by a report on members it is %s, %v", state, err)
	}
	v.CheckReplay()
}
