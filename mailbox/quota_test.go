package mailbox_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/mailboxtest"
	"parley/mailbox/quota"
)

// quotaHarness returns a harness with a host and a guest.
func quotaHarness(t rapid.TB) *mailboxtest.Harness {
	v := mailboxtest.New(t)
	v.Add("host")
	v.Add("fae")
	return v
}

func someForm(text string) mailbox.RequestForm {
	return mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d" + text, Fields: []events.Field{{Name: "f"}}}}
}

func TestExceededQuotaIsRefusedWithHint(t *testing.T) {
	for _, c := range []struct {
		quota   quota.Quota
		limit   int64
		command func(i int) mailbox.Command
		hint    string
	}{
		{quota.Forms, 3, func(int) mailbox.Command { return someForm("") }, "parley cancel"},
		{quota.Approvals, 3, func(int) mailbox.Command {
			return mailbox.RequestApproval{Permission: parley.Permission{Tool: "t", Input: "{}"}}
		}, "parley cancel"},
		{quota.Names, 3, func(i int) mailbox.Command { return mailbox.BindName{Name: fmt.Sprint("n", i), Value: "1"} }, "parley name remove"},
		{quota.Agents, 3, func(i int) mailbox.Command {
			return mailbox.CreateAgent{Agent: mailboxtest.NthID(uint16(1000 + i)), Kind: events.Guest, Name: fmt.Sprint("n", i)}
		}, "agents that there are"},
		{quota.Bytes, 10 << 10, func(i int) mailbox.Command { return someForm(strings.Repeat("x", 2<<10)) }, "cancel forms"},
		{quota.Bytes, 10 << 10, func(i int) mailbox.Command {
			return mailbox.BindName{Name: fmt.Sprint("n", i), Value: `"` + strings.Repeat("x", 2<<10) + `"`}
		}, "remove names"},
		{quota.Daily, 10 << 10, func(int) mailbox.Command {
			return mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: strings.Repeat("x", 2<<10)}}
		}, "midnight"},
		{quota.Daily, 10 << 10, func(i int) mailbox.Command {
			title := strings.Repeat("x", 1000+i%2)
			return mailbox.UpdateAgent{Title: &title}
		}, "midnight"},
	} {
		v := quotaHarness(t)
		l := &quota.Limits{Quotas: quota.None()}
		l.Quotas[c.quota] = c.limit
		var err error
		for i := 0; err == nil && i < 100; i++ {
			err = v.DecideWithin("fae", l, c.command(i))
		}
		e := parley.AsError(err)
		if e == nil || e.Code != parley.QuotaExceeded || !strings.Contains(e.Hint, c.hint) || !strings.Contains(e.Hint, "parley agent quota AGENT "+c.quota.String()) {
			t.Errorf("%s of %d: %v, hint %q", c.quota, c.limit, err, e.Hint)
		}
		if used := v.States["fae"].Account.Own(v.Now)[c.quota]; used > c.limit || used == 0 {
			t.Errorf("%s: %d of %d are used", c.quota, used, c.limit)
		}
		if err := v.DecideWithin("fae", nil, c.command(50)); err != nil {
			t.Errorf("%s without limits: %v", c.quota, err)
		}
		v.CheckReplay()
		checkCounts(t, v)
	}
}

func TestFullAccountCanRelease(t *testing.T) {
	v := quotaHarness(t)
	v.Must("fae", someForm("1"))
	v.Must("fae", someForm("2"))
	v.Must("fae", mailbox.BindName{Name: "n", Value: "1"})
	v.Deliver(false)
	none := &quota.Limits{}
	if err := v.DecideWithin("fae", none, someForm("3")); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Fatalf("with quotas of 0: %v", err)
	}
	for _, c := range []mailbox.Command{mailbox.CancelForm{Form: capabilities.FormNumber(0), Reason: "r"}, mailbox.DismissMessage{Message: capabilities.FormNumber(1)}, mailbox.UnbindName{Name: "n"}} {
		if err := v.DecideWithin("fae", none, c); err != nil {
			t.Errorf("%T: %v", c, err)
		}
	}
	l := &quota.Limits{Quotas: quota.None()}
	l.Quotas[quota.Forms] = 2
	if err := v.DecideWithin("fae", l, someForm("3")); err != nil {
		t.Errorf("after a form was cancelled: %v", err)
	}
	l.Beside[quota.Forms] = 1
	if err := v.DecideWithin("fae", l, someForm("4")); parley.CodeOf(err) != parley.QuotaExceeded || !strings.Contains(err.Error(), "with those that it made") {
		t.Errorf("with a form of an agent that it made: %v", err)
	}
	v.CheckReplay()
}

func TestDailyQuotaResetsAtMidnight(t *testing.T) {
	v := quotaHarness(t)
	l := &quota.Limits{Quotas: quota.None()}
	l.Quotas[quota.Daily] = 2000
	post := mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: strings.Repeat("x", 1000)}}
	v.Now = mailbox.DayLength - 1
	if err := v.DecideWithin("fae", l, post); err != nil {
		t.Fatal(err)
	}
	if err := v.DecideWithin("fae", l, post); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Fatalf("twice in a day: %v", err)
	}
	v.Now++
	if used := v.States["fae"].Account.Own(v.Now)[quota.Daily]; used != 0 {
		t.Errorf("%d bytes at midnight", used)
	}
	if err := v.DecideWithin("fae", l, post); err != nil {
		t.Errorf("at midnight: %v", err)
	}
	v.CheckReplay()
}

func TestInboxQuotaIsPerSender(t *testing.T) {
	v := quotaHarness(t)
	v.Add("tom")
	quotas := quota.None()
	quotas[quota.Inbox] = 4000
	deliver := func(from string) error {
		v.Must(from, mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: strings.Repeat("x", 1000)}})
		s := v.States[from]
		p := s.Outbox.Items()[len(s.Outbox.Items())-1]
		c, err := s.CommandFor(p)
		if err != nil {
			t.Fatal(err)
		}
		r := c.(mailbox.AcceptDelivery)
		r.Quotas = &quotas
		_, err = v.Decide("host", r)
		v.Must(from, mailbox.RecordDelivery{Items: []mailbox.OutboxItem{p}})
		return err
	}
	for i := range 2 {
		if err := deliver("fae"); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := deliver("fae"); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Fatalf("the third: %v", err)
	}
	if err := deliver("tom"); err != nil {
		t.Errorf("another sender: %v", err)
	}
	v.Must("host", mailbox.DismissMessage{Message: capabilities.FormNumber(0)})
	if err := deliver("fae"); err != nil {
		t.Errorf("after a message was dismissed: %v", err)
	}
	v.CheckReplay()
}

// TestQuotasAreNeverExceeded runs random commands within quotas.
func TestQuotasAreNeverExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := quotaHarness(t)
		v.SkipChecksums = true
		l := &quota.Limits{Quotas: quota.Amounts{
			quota.Forms: 3, quota.Names: 3, quota.Agents: 2, quota.Bytes: 6000, quota.Daily: 20_000, quota.Inbox: 5000, quota.Grants: 9, quota.Processor: 9,
		}}
		text := rapid.Custom(func(t *rapid.T) string { return strings.Repeat("x", rapid.IntRange(0, 3000).Draw(t, "length")) })
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		number := rapid.SampledFrom([]capabilities.FormRef{capabilities.FormNumber(0), capabilities.FormNumber(1), capabilities.FormNumber(2), capabilities.FormNumber(3), capabilities.FormNumber(4)})
		next := uint16(5000)
		do := func(t *rapid.T, c mailbox.Command) {
			if err := v.DecideWithin("fae", l, c); parley.CodeOf(err) == parley.Internal {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) { do(t, someForm(text.Draw(t, "text"))) },
			"post": func(t *rapid.T) {
				do(t, mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: text.Draw(t, "text")}})
			},
			"store": func(t *rapid.T) {
				do(t, mailbox.BindName{Name: name.Draw(t, "name"), Value: `"` + text.Draw(t, "text") + `"`})
			},
			"rename":  func(t *rapid.T) { do(t, mailbox.MoveName{From: name.Draw(t, "from"), To: name.Draw(t, "to")}) },
			"remove":  func(t *rapid.T) { do(t, mailbox.UnbindName{Name: name.Draw(t, "name")}) },
			"cancel":  func(t *rapid.T) { do(t, mailbox.CancelForm{Form: number.Draw(t, "number")}) },
			"dismiss": func(t *rapid.T) { do(t, mailbox.DismissMessage{Message: number.Draw(t, "number")}) },
			"make": func(t *rapid.T) {
				next++
				do(t, mailbox.CreateAgent{Agent: mailboxtest.NthID(next), Kind: events.Guest, Name: name.Draw(t, "name")})
			},
			"deliver": func(*rapid.T) { v.Deliver(false) },
			"days":    func(t *rapid.T) { v.Now += mailbox.DayLength / 2 },
			"": func(t *rapid.T) {
				for q, n := range v.States["fae"].Account.Own(v.Now) {
					if n > l.Quotas[q] || n < 0 {
						t.Fatalf("%d %s of %d", n, quota.Quota(q), l.Quotas[q])
					}
				}
			},
		})
		v.CheckReplay()
		checkCounts(t, v)
	})
}

func TestQuotasAreParsedAndFormatted(t *testing.T) {
	named, err := quota.Parse([]string{"forms=5", "daily=64MiB", "inbox=none", "bytes=0", "processor=10"})
	if err != nil {
		t.Fatal(err)
	}
	a := quota.Agent()
	if err := a.Set(named); err != nil || a[quota.Forms] != 5 || a[quota.Daily] != 64<<20 || a[quota.Inbox] != quota.Unlimited || a[quota.Bytes] != 0 {
		t.Errorf("%v, %v", a, err)
	}
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	again := quota.Peer()
	if err := json.Unmarshal(b, &again); err != nil || again != a {
		t.Errorf("%s is parsed as %v, %v", b, again, err)
	}
	for _, wrong := range []string{"forms", "forms=", "forms=-2", "forms=x", "what=1", "bytes=9999999999GiB", "forms=1.5"} {
		if _, err := quota.Parse([]string{wrong}); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for want, got := range map[string]string{
		"none": quota.Inbox.Show(quota.Unlimited), "64 MiB": quota.Bytes.Show(64 << 20), "20 KiB": quota.Bytes.Show(20 << 10), "7": quota.Forms.Show(7),
		"10 ms a minute": quota.Processor.Show(10), "9000 bytes": quota.Daily.Show(9000),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if q, share := (quota.Amounts{quota.Forms: 8, quota.Names: 5}).Fullest(quota.Amounts{quota.Forms: 10, quota.Names: 5, quota.Bytes: 1}); q != quota.Names || share != 1 {
		t.Errorf("%s is the fullest, with %g", q, share)
	}
	if sum := (quota.Amounts{quota.Unlimited, 1}).Plus(quota.Amounts{5, 2}); sum[0] != quota.Unlimited || sum[1] != 3 {
		t.Errorf("%v", sum)
	}
}

func TestAnswersAndForwardsAreWithinQuota(t *testing.T) {
	v := quotaHarness(t)
	v.Add("tom")
	v.Apply("host", &events.NameBound{Name: "fae", Value: capabilities.Reference(mailbox.AgentRef(v.States["fae"].ID))})
	v.Must("host", mailbox.RequestForm{Form: parley.Form{To: "fae", Description: "d", Fields: []events.Field{{Name: "f"}}}})
	v.Deliver(false)
	s := v.States["fae"]
	l := &quota.Limits{Quotas: quota.None()}
	l.Quotas[quota.Daily] = 400
	for n, want := range map[int]parley.Code{10: "", 1000: parley.QuotaExceeded} {
		c, _, err := s.DraftAnswer(mailbox.Reply{Form: capabilities.FormNumber(0), Answer: parley.Answer{Values: map[string]capabilities.Value{"f": capabilities.String(strings.Repeat("x", n))}}}, v.Now, v.NewID)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CheckQuota(s, l, v.Now); parley.CodeOf(err) != want {
			t.Errorf("an answer of %d bytes: %v", n, err)
		}
	}
	form := v.Messages("fae")[0].ID()
	if err := (mailbox.ForwardForm{Form: form}).CheckQuota(s, l, v.Now); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Errorf("forwarded: %v", err)
	}
	if err := (mailbox.ForwardForm{Form: form}).CheckQuota(s, nil, v.Now); err != nil {
		t.Errorf("forwarded without limits: %v", err)
	}
}

// checkCounts fails the test if a usage that was counted event by event differs from one that is counted anew.
func checkCounts(t rapid.TB, v *mailboxtest.Harness) {
	t.Helper()
	for _, name := range v.Agents {
		s := v.States[name]
		own, senders := mailbox.Recount(s, v.Messages(name))
		live := s.Account.Own(v.Now)
		live[quota.Daily] = 0
		if own != live {
			t.Fatalf("%s uses %v, and counted anew %v", name, live, own)
		}
		for by, amounts := range s.Account.Senders(v.Now) {
			if amounts[quota.Daily] = 0; amounts != senders[by] {
				t.Fatalf("%s holds %v for %s, and counted anew %v", name, amounts, by, senders[by])
			}
			delete(senders, by)
		}
		for by, amounts := range senders {
			if amounts != (quota.Amounts{}) {
				t.Fatalf("%s holds nothing for %s, and counted anew %v", name, by, amounts)
			}
		}
	}
}
