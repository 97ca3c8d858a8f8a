package mailbox_test

import (
	"bytes"
	"fmt"
	"runtime"
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

// awaited is a request of fae's as a bystander knows it.
type awaited struct {
	name   string
	id     capabilities.ID
	behind *awaited // the request for whose answer it waits itself; nil once it was put to somebody
	ended  bool
	to     string   // whom it was answered with; "" for nobody that gets mail
	most   int      // how often that may be used
	sent   []string // what was sent to it and not cancelled, in order
}

// TestQueuedMailGoesOnOnce sends to what is not answered yet and to what is, and answers, declines, cancels, forgets and restores. Whoever a
// request is answered with gets all that was sent to it, once and in order, and as often as it may be reached. All else ends with a reason.
func TestQueuedMailGoesOnOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := mailboxtest.New(t)
		v.SkipChecksums = true
		for _, name := range []string{"host@A", "fae@A", "worker@A", "far@B"} {
			v.Add(name)
		}
		v.NameAgents()
		v.Introduce("host@A", "far@B")
		refused := map[string]bool{} // at their recipients
		v.OnRefusal = func(to, from, why string) { refused[to+why] = true }
		var all []*awaited
		goOn := func() {
			for n, due := v.States["fae@A"].Mail.NextQueued(); due; n, due = v.States["fae@A"].Mail.NextQueued() {
				v.Must("fae@A", mailbox.SendQueued{Number: n})
			}
		}
		fae := func(c mailbox.Command) ([]events.Event, error) {
			goOn()
			defer goOn()
			return v.Decide("fae@A", c)
		}
		end := func(a *awaited, to string, most int) {
			var endAll func(a *awaited)
			endAll = func(a *awaited) {
				a.ended = true
				for _, o := range all {
					if o.behind == a && !o.ended {
						endAll(o)
					}
				}
			}
			a.ended, a.to, a.most = true, to, most
			for _, o := range all {
				if o.behind != a || o.ended {
					continue
				}
				if at := slices.Index(a.sent, o.name); to == "" || most > 0 && at >= most {
					endAll(o)
				} else {
					o.behind = nil
				}
			}
		}
		pick := func(t *rapid.T, fits func(*awaited) bool) *awaited {
			var some []*awaited
			for _, a := range all {
				if fits(a) {
					some = append(some, a)
				}
			}
			if len(some) == 0 {
				t.Skip("there is none")
			}
			return rapid.SampledFrom(some).Draw(t, "request")
		}
		next := 0
		text := func(to string) string { next++; return fmt.Sprintf("%s:%d", to, next) }
		request := func(t *rapid.T) {
			a := &awaited{name: fmt.Sprintf("n%d", len(all))}
			form := mailbox.RequestForm{Kind: events.Request, Form: parley.Form{To: "HOST", Description: "whom?", Name: a.name}}
			if rapid.IntRange(0, 2).Draw(t, "behind") == 0 {
				on := pick(t, func(o *awaited) bool { return !o.ended })
				form.To, form.Description = on.name, a.name
				a.behind = on
			}
			evs, err := fae(form)
			if err != nil {
				t.Fatal(err)
			}
			a.id = evs[len(evs)-1].(*events.FormRequested).ID
			if all = append(all, a); a.behind != nil {
				a.behind.sent = append(a.behind.sent, a.name)
			}
		}
		send := func(t *rapid.T) {
			a := pick(t, func(*awaited) bool { return true })
			words := text(a.name)
			_, err := fae(mailbox.PostMessage{To: a.name, Post: parley.Post{Text: words}})
			reached := !a.ended || a.to != "" && (a.most == 0 || len(a.sent) < a.most)
			if (err == nil) != reached {
				t.Fatalf("%+v is sent to with %v", a, err)
			}
			if err == nil {
				a.sent = append(a.sent, words)
			}
		}
		answer := func(t *rapid.T) {
			a := pick(t, func(o *awaited) bool { return !o.ended && o.behind == nil })
			goOn()
			v.Deliver(rapid.Bool().Draw(t, "twice"))
			by := ""
			for _, name := range []string{"host@A", "worker@A", "far@B"} {
				if _, err := v.States[name].Mail.FindFormID(a.id); err == nil {
					by = name
				}
			}
			if by == "" {
				t.Skip("it was refused where it went")
			}
			as, to, most := "self", by, 0
			r := mailbox.Reply{Form: capabilities.FormID(a.id), Answer: parley.Answer{}}
			path := map[string]string{"self": "@self", "worker@A": "worker", "far@B": "B"}
			if by == "host@A" {
				as = rapid.SampledFrom([]string{"self", "worker@A", "far@B"}).Draw(t, "with")
				if as != "self" {
					to = as
				}
			}
			r.Texts = []events.FieldText{{Name: "value", Text: path[as]}}
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				r.Narrow, to = map[string]capabilities.Facet{"value": {Mode: capabilities.ReadOnly}}, ""
			case 1:
				if as == "far@B" { // which the host holds by a grant itself
					break
				}
				most = rapid.IntRange(1, 3).Draw(t, "uses")
				r.Narrow = map[string]capabilities.Facet{"value": {Uses: uint32(most)}}
			}
			c, _, err := v.States[by].DraftAnswer(r, v.Now, v.IDsOf(by))
			if err == nil && rapid.IntRange(0, 4).Draw(t, "declines") == 0 {
				c, _, err = v.States[by].DraftDecline(r.Form, 0, "no", v.IDsOf(by))
				to = ""
			}
			if err != nil {
				t.Fatal(by, r, err)
			}
			if by == "far@B" {
				v.Must(by, mailbox.QueueAnswer{Answer: c})
				v.Deliver(false)
			} else {
				v.Must("fae@A", c)
			}
			end(a, to, most)
		}
		cancel := func(t *rapid.T) {
			a := pick(t, func(o *awaited) bool { return !o.ended })
			if _, err := fae(mailbox.CancelForm{Form: capabilities.FormID(a.id)}); err != nil {
				t.Fatal(err)
			}
			if a.behind != nil {
				a.behind.sent = slices.DeleteFunc(a.behind.sent, func(s string) bool { return s == a.name })
			}
			end(a, "", 0)
		}
		cancelOne := func(t *rapid.T) {
			a := pick(t, func(o *awaited) bool { return !o.ended && len(o.sent) > 0 })
			words := rapid.SampledFrom(a.sent).Draw(t, "words")
			for _, m := range v.States["fae@A"].Mail.Behind(a.id) {
				if m.Posted == nil || mailbox.ShowText(m.Posted.Text) != words {
					continue
				}
				if _, err := fae(mailbox.CancelQueued{Message: capabilities.FormID(m.ID())}); err != nil {
					t.Fatal(err)
				}
				a.sent = slices.DeleteFunc(a.sent, func(s string) bool { return s == words })
			}
		}
		restart := func(t *rapid.T) {
			s, err := mailbox.Restore(v.States["fae@A"].ID, []byte(v.Snapshot("fae@A")))
			if err != nil {
				t.Fatal(err)
			}
			v.SetState("fae@A", s)
		}
		t.Repeat(map[string]func(*rapid.T){
			"request": request, "send": send, "send more": send, "send yet more": send, "answer": answer, "answer more": answer, "cancel": cancel, "cancel one": cancelOne, "restart": restart,
			"deliver": func(t *rapid.T) { v.Deliver(true) },
		})
		goOn()
		v.Deliver(true)
		v.CheckReplay()
		s := v.States["fae@A"]
		for _, a := range all {
			want := map[string][]string{}
			if a.to != "" {
				want[a.to] = a.sent
				if a.most > 0 {
					want[a.to] = a.sent[:min(a.most, len(a.sent))]
				}
			}
			for _, name := range []string{"host@A", "worker@A", "far@B"} {
				var got []string
				for _, m := range v.Messages(name) {
					words := ""
					if m.Posted != nil {
						words = mailbox.ShowText(m.Posted.Text)
					} else if words = m.Form.Description; slices.Contains(a.sent, words) {
						got = append(got, words)
						continue
					}
					if strings.HasPrefix(words, a.name+":") {
						got = append(got, words)
					}
				}
				if !slices.Equal(got, want[name]) {
					t.Fatalf("of %+v, %s has %q", a, name, got)
				}
			}
			if waiting := s.Mail.Behind(a.id); a.ended == (len(waiting) > 0) && len(a.sent) > 0 {
				t.Fatalf("behind %+v there are %d messages", a, len(waiting))
			}
		}
		for _, m := range v.Messages("fae@A") {
			if m.Behind == nil || m.IsQueued() || m.To() != m.Behind.Promise {
				continue
			}
			if m.Posted != nil && m.Refused == "" || m.Form != nil && m.Form.IsOpen() {
				t.Fatalf("message %d was not sent, and there is no reason", m.Number)
			}
		}
	})
}

// TestRestoreStartsNothing restores a mailbox whose snapshot has values with an embedded event: for one that is nil, the library that decodes
// would start a goroutine that nobody ends.
func TestRestoreStartsNothing(t *testing.T) {
	v := mailboxtest.New(t)
	for _, name := range []string{"host@A", "fae@A"} {
		v.Add(name)
	}
	v.NameAgents()
	v.Must("fae@A", mailbox.RequestForm{Kind: events.Request, Form: parley.Form{To: "HOST", Description: "which?", Name: "notes"}})
	v.Must("fae@A", mailbox.QueueUse{Use: v.NewID(), Name: "notes", Verb: "read"})
	v.Must("fae@A", mailbox.ScheduleMessage{To: "HOST", Post: parley.Post{Text: "later"}, At: v.Now + 1000})
	s, err := mailbox.Restore(v.States["fae@A"].ID, []byte(v.Snapshot("fae@A")))
	if err != nil || len(s.Mail.QueuedUses()) != 1 || s.Mail.QueuedUses()[0].Verb != "read" {
		t.Fatal(err)
	}
	running := make([]byte, 1<<20)
	if running = running[:runtime.Stack(running, true)]; bytes.Contains(running, []byte("cachedValue")) {
		t.Errorf("there runs\n%s", running)
	}
}
