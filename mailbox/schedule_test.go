package mailbox_test

import (
	"strings"
	"testing"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// TestKeyOfScheduleStandsForOneMessage repeats a message that is sent later: as it was, and with each of its parts changed. The same key at
// once, before it is sent, is another message too.
func TestKeyOfScheduleStandsForOneMessage(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"host", "fae", "bob"} {
		v.Add(name)
	}
	v.NameAgents()
	later := func(change func(*mailbox.ScheduleMessage)) mailbox.ScheduleMessage {
		c := mailbox.ScheduleMessage{To: "HOST", Post: parley.Post{Header: parley.Header{Subject: "s"}, Text: "t", Key: "k"}, At: v.Now + 100_000}
		change(&c)
		return c
	}
	asIs := later(func(*mailbox.ScheduleMessage) {})
	v.Must("fae", asIs)
	if again, err := v.Decide("fae", asIs); len(again) > 0 || err != nil {
		t.Errorf("again it is %v, %v", again, err)
	}
	retry := later(func(c *mailbox.ScheduleMessage) { c.At += 5000 }) // in half an hour, said five seconds later
	if again, err := v.Decide("fae", retry); len(again) > 0 || err != nil {
		t.Errorf("with a later time it is %v, %v", again, err)
	}
	if found, _, err := retry.FindExisting(v.States["fae"]); found == nil || found.Next != asIs.At || err != nil {
		t.Errorf("with a later time it finds %+v, %v", found, err)
	}
	for part, c := range map[string]mailbox.Command{
		"recipient": later(func(c *mailbox.ScheduleMessage) { c.To = v.States["bob"].ID.String() }),
		"text":      later(func(c *mailbox.ScheduleMessage) { c.Text = "other" }),
		"series":    later(func(c *mailbox.ScheduleMessage) { c.Every = "@daily" }),
		"priority":  later(func(c *mailbox.ScheduleMessage) { c.Priority = events.Urgent }),
		"subject":   later(func(c *mailbox.ScheduleMessage) { c.Subject = "other" }),
		"is sent later": mailbox.PostMessage{
			To: "HOST", Post: parley.Post{Header: parley.Header{Subject: "s"}, Text: "t", Key: "k"},
		},
	} {
		evs, err := v.Decide("fae", c)
		if parley.CodeOf(err) != parley.InvalidArgument || !strings.Contains(err.Error(), part) {
			t.Errorf("with another %s it is %v, %v", part, evs, err)
		}
	}
}

// TestKeyOfSentMessageIsScheduledNoMore repeats a call that had a message sent later, when that was sent: it is sent once, and the call is not told that its
// time has passed.
func TestKeyOfSentMessageIsScheduledNoMore(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	v.NameAgents()
	c := mailbox.ScheduleMessage{To: "HOST", Post: parley.Post{Text: "t", Key: "k"}, At: v.Now + 100}
	v.Must("fae", c)
	v.Now += 100
	v.Must("fae", mailbox.FireSchedule{Schedule: 1})
	for name, c := range map[string]mailbox.ScheduleMessage{"at its time": c, "later": {To: c.To, Post: c.Post, At: v.Now + 100}} {
		evs, err := v.Decide("fae", c)
		if len(evs) > 0 || err != nil {
			t.Errorf("again %s it is %v, %v", name, evs, err)
		}
		if _, sent, err := c.FindExisting(v.States["fae"]); sent == nil || sent.Number != 0 || err != nil {
			t.Errorf("again %s it finds %v, %v", name, sent, err)
		}
	}
	c.Text, c.At = "other", v.Now+capabilities.Time(100)
	if evs, err := v.Decide("fae", c); parley.CodeOf(err) != parley.InvalidArgument {
		t.Errorf("with another text it is %v, %v", evs, err)
	}
}

// TestKeyOfReplySaysWhatDiffers uses the key of a reply for one to another message of the same sender, and for a message of its own: its recipient is the
// same.
func TestKeyOfReplySaysWhatDiffers(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	v.NameAgents()
	for _, text := range []string{"one", "two"} {
		v.Must("host", mailbox.PostMessage{To: v.States["fae"].ID.String(), Post: parley.Post{Text: text}})
	}
	v.Deliver(false)
	reply := func(number uint64) mailbox.PostMessage {
		return mailbox.PostMessage{Reply: capabilities.FormNumber(number), Post: parley.Post{Text: "r", Key: "k"}}
	}
	v.Must("fae", reply(0))
	for _, c := range []mailbox.PostMessage{reply(1), {To: "HOST", Post: parley.Post{Text: "r", Key: "k"}}} {
		if _, err := v.Decide("fae", c); err == nil || !strings.HasSuffix(parley.AsError(err).Message, "differs in: the message that it replies to") {
			t.Errorf("it is %v", err)
		}
	}
}
