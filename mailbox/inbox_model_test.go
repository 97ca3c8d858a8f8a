package mailbox_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
)

// modelMark is how a received message is expected to stand in the inbox.
type modelMark struct {
	id                       capabilities.ID // of a form
	ended, dismissed, unread bool
	until                    capabilities.Time // 0 if it is not snoozed
	draft                    string
}

// done reports whether the message is done.
func (k *modelMark) done() bool { return k.ended || k.dismissed }

// end ends the snooze and the draft with the form, or the snooze with the dismissal.
func (k *modelMark) end(form bool) {
	if k.until = 0; form {
		k.ended, k.draft = true, ""
	} else {
		k.dismissed = true
	}
}

// TestInboxMatchesModel snoozes, wakes, marks, dismisses and restores messages, and saves drafts, in any order. Counts and
// lists are as the model has them, from the log and from a snapshot alike.
func TestInboxMatchesModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		v.Add("host")
		v.Add("fae")
		v.NameAgents()
		var mail []*modelMark
		pick := func() (capabilities.FormRef, *modelMark) {
			if len(mail) == 0 {
				t.Skip("no mail")
			}
			n := rapid.IntRange(0, len(mail)-1).Draw(t, "message")
			return capabilities.FormNumber(uint64(n)), mail[n]
		}
		decide := func(c mailbox.Command, want parley.Code) {
			t.Helper()
			if _, err := v.Decide("host", c); parley.CodeOf(err) != want {
				t.Fatalf("%T %+v: %v, want %q", c, c, err, want)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { checkInbox(t, v, mail) },
			"ask": func(*rapid.T) {
				evs := v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d", Fields: text}})
				v.Deliver(false)
				mail = append(mail, &modelMark{id: evs[0].(*events.FormRequested).ID, unread: true})
			},
			"post": func(*rapid.T) {
				v.Must("fae", mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: "hello"}})
				v.Deliver(false)
				mail = append(mail, &modelMark{unread: true})
			},
			"cancel": func(*rapid.T) {
				_, k := pick()
				if k.id.IsZero() || k.ended {
					return
				}
				v.Must("fae", mailbox.CancelForm{Form: capabilities.FormID(k.id)})
				v.Deliver(false)
				k.end(true)
			},
			"dismiss": func(*rapid.T) {
				ref, k := pick()
				decide(mailbox.DismissMessage{Message: ref}, "")
				k.end(false)
			},
			"restore": func(*rapid.T) {
				ref, k := pick()
				decide(mailbox.RestoreMessage{Message: ref}, "")
				k.dismissed = false
			},
			"mark": func(t *rapid.T) {
				ref, k := pick()
				unread := rapid.Bool().Draw(t, "unread")
				n, _ := ref.Number()
				decide(mailbox.MarkMessages{Numbers: []uint64{n, n}, Unread: unread}, "")
				if !k.done() {
					k.unread = unread
				}
			},
			"snooze": func(t *rapid.T) {
				ref, k := pick()
				until := v.Now + capabilities.Time(rapid.IntRange(-1, 3).Draw(t, "until"))
				var want parley.Code
				switch {
				case until <= v.Now || k.until == until:
				case k.ended:
					want = parley.AlreadyCancelled
				case k.dismissed:
					want = parley.InvalidArgument
				}
				decide(mailbox.SnoozeMessage{Message: ref, Until: until}, want)
				switch {
				case want != "":
				case until > v.Now:
					k.until = until
				case k.until != 0:
					k.until, k.unread = 0, true
				}
			},
			"wait": func(*rapid.T) {
				v.Now++
				decide(mailbox.WakeMessages{}, "")
				for _, k := range mail {
					if k.until != 0 && k.until <= v.Now {
						k.until, k.unread = 0, true
					}
				}
			},
			"draft": func(t *rapid.T) {
				ref, k := pick()
				typed := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "draft")
				values := map[string]capabilities.Value{"f": capabilities.Strings(typed)}
				if typed == "" {
					values = nil
				}
				switch c := (mailbox.SaveDraft{Form: ref, Values: values}); {
				case k.id.IsZero():
					decide(c, parley.NotAForm)
				case k.ended:
					decide(c, parley.AlreadyCancelled)
				default:
					decide(c, "")
					k.draft = typed
				}
			},
		})
		v.CheckReplay()
		restored, err := mailbox.Restore(v.States["host"].ID, []byte(v.Snapshot("host")))
		if err != nil {
			t.Fatal(err)
		}
		v.SetState("host", restored)
		checkInbox(t, v, mail)
	})
}

// checkInbox compares the host's inbox with the model.
func checkInbox(t *rapid.T, v *mailboxtest.Harness, mail []*modelMark) {
	want := mailbox.Counts{All: len(mail)}
	var first capabilities.Time
	for n, m := range v.Messages("host") {
		k := mail[n]
		draft := ""
		if m.Form != nil && m.Form.Draft != nil {
			draft = m.Form.DraftTexts(m.Form.Draft.Values)[0].Text
		}
		if got := v.States["host"].Mail.Snoozed.Until(m.Number); got != k.until || draft != k.draft || m.Dismissed != k.dismissed {
			t.Fatalf("message %d: snoozed until %d, draft %q, dismissed %t; want %+v", n, got, draft, m.Dismissed, k)
		}
		switch {
		case k.until != 0:
			want.Snoozed++
			if first == 0 || k.until < first {
				first = k.until
			}
		case !k.id.IsZero() && !k.done():
			want.Pending++
		}
		if k.done() {
			want.Done++
		} else if k.unread {
			want.Unread++
		}
	}
	if got, err := mailbox.CountsOf(v.States["host"]); err != nil || got != want {
		t.Fatalf("counts %+v, %v; want %+v", got, err, want)
	}
	if got := v.States["host"].Summary().Deadline; got != first {
		t.Fatalf("the next message comes back at %d, want %d", got, first)
	}
}

// TestOldestUnfinishedMessageGoes begins more replies than are kept, and one that is too long.
func TestOldestUnfinishedMessageGoes(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{})
	for range 33 {
		v.Must("fae", mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: "hello"}})
		v.Deliver(false)
		v.Must("host", mailbox.DraftMessage{Reply: capabilities.FormNumber(v.States["host"].Mail.Index.Len() - 1), Text: "begun"})
	}
	s := v.States["host"]
	kept := 0
	for n := range s.Mail.Index.Len() {
		to, reply, err := s.DraftPlace(mailbox.DraftMessage{Reply: capabilities.FormNumber(n)}, v.Now)
		if err != nil {
			t.Fatal(err)
		}
		switch text := s.Mail.Texts.For(to, reply).Text; {
		case text != "":
			kept++
		case n+1 == s.Mail.Index.Len():
			t.Error("the newest is gone")
		}
	}
	if kept != 32 {
		t.Errorf("%d are kept", kept)
	}
	v.CheckReplay()
	if _, err := v.Decide("host", mailbox.DraftMessage{To: "fae", Text: strings.Repeat("a", 64<<10+1)}); parley.CodeOf(err) != parley.TooLarge {
		t.Error(err)
	}
}

// TestHeaderTravels sends a message of each priority and with a subject, and what is none: here, and as another node would.
func TestHeaderTravels(t *testing.T) {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	for i, p := range []parley.Priority{"", events.Urgent, events.Normal, events.Low} {
		v.Must("fae", mailbox.PostMessage{To: "HOST", Post: parley.Post{Header: parley.Header{Priority: p, Subject: "of " + string(p)}, Text: "hello", Key: "key " + string(p)}})
		v.Deliver(false)
		want := parley.Header{Priority: p, Subject: "of " + string(p)}
		if p == events.Normal {
			want.Priority = ""
		}
		if got := v.Messages("host")[i].Posted.Header; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v has come as %+v", want, got)
		}
	}
	wrong := []parley.Header{{Priority: "high"}, {Subject: "two\nlines"}, {Subject: "two\u2028lines"}, {Subject: "\x1b[2J"}, {Subject: "\x9b"}, {Subject: strings.Repeat("é", 101)}}
	for _, h := range append(wrong, parley.Header{Subject: "of urgent"}, parley.Header{Priority: events.Urgent}) { // the last two differ under the key
		_, err := v.Decide("fae", mailbox.PostMessage{To: "HOST", Post: parley.Post{Header: h, Text: "hello", Key: "key urgent"}})
		if code := parley.CodeOf(err); code != parley.InvalidArgument && code != parley.TooLarge {
			t.Errorf("%+v: %v", h, err)
		}
		_, err = v.Decide("fae", mailbox.PostMessage{To: "HOST", Post: parley.Post{Header: h, Text: "hello"}})
		if code := parley.CodeOf(err); (code == parley.InvalidArgument || code == parley.TooLarge) != slices.ContainsFunc(wrong, func(w parley.Header) bool { return reflect.DeepEqual(w, h) }) {
			t.Errorf("%+v without a key: %v", h, err)
		}
	}
	for _, h := range wrong {
		foreign := *v.Messages("host")[1].Posted
		foreign.Message, foreign.Header = v.NewID(), h
		_, err := v.States["host"].Decide(mailbox.RemoteDelivery{AcceptDelivery: mailbox.AcceptDelivery{Posted: &foreign}}, v.Now, v.NewID)
		if code := parley.CodeOf(err); code != parley.InvalidArgument && code != parley.TooLarge {
			t.Errorf("%+v comes from another node: %v", h, err)
		}
	}
}
