package mailbox

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// within runs a command of an agent's own within quotas.
func (v *harness) within(name string, l *Limits, c Command) error {
	v.tb.Helper()
	before := v.snapshot(name)
	evs, err := v.states[name].DecideWithin(l, c, v.now, v.idOf(name))
	if v.snapshot(name) != before {
		v.tb.Fatalf("%T changed the state by deciding", c)
	}
	if err == nil {
		v.apply(name, evs...)
	}
	return err
}

// quotaHarness has a host, and a guest with a name for it.
func quotaHarness(t rapid.TB) *harness {
	v := newHarness(t)
	v.add("host")
	v.add("fae")
	return v
}

func someForm(text string) RequestForm {
	return RequestForm{To: "HOST", Description: "d" + text, Fields: []events.Field{{Name: "f"}}}
}

func TestWhatIsOverAQuotaIsRefusedWithWhatToDo(t *testing.T) {
	for _, c := range []struct {
		quota   Quota
		limit   int64
		command func(i int) Command
		hint    string
	}{
		{QuotaForms, 3, func(int) Command { return someForm("") }, "parley cancel"},
		{QuotaForms, 3, func(int) Command { return RequestApproval{Tool: "t", Input: "{}"} }, "parley cancel"},
		{QuotaNames, 3, func(i int) Command { return BindName{Name: fmt.Sprint("n", i), Value: "1"} }, "parley remove"},
		{QuotaAgents, 3, func(i int) Command {
			return CreateAgent{Agent: harnessID(uint16(1000 + i)), Kind: events.Guest, Name: fmt.Sprint("n", i)}
		}, "agents that there are"},
		{QuotaBytes, 10 << 10, func(i int) Command { return someForm(strings.Repeat("x", 2<<10)) }, "cancel forms"},
		{QuotaBytes, 10 << 10, func(i int) Command {
			return BindName{Name: fmt.Sprint("n", i), Value: `"` + strings.Repeat("x", 2<<10) + `"`}
		}, "remove names"},
		{QuotaDaily, 10 << 10, func(int) Command { return PostMessage{To: "HOST", Text: strings.Repeat("x", 2<<10)} }, "midnight"},
		{QuotaDaily, 10 << 10, func(i int) Command { title := strings.Repeat("x", 1000+i%2); return UpdateAgent{Title: &title} }, "midnight"},
	} {
		v := quotaHarness(t)
		l := &Limits{Quotas: NoQuotas()}
		l.Quotas[c.quota] = c.limit
		var err error
		for i := 0; err == nil && i < 100; i++ {
			err = v.within("fae", l, c.command(i))
		}
		e := parley.AsError(err)
		if e == nil || e.Code != parley.QuotaExceeded || !strings.Contains(e.Hint, c.hint) || !strings.Contains(e.Hint, "parley quota AGENT "+c.quota.String()) {
			t.Errorf("%s of %d: %v, hint %q", c.quota, c.limit, err, e.Hint)
		}
		if used := v.states["fae"].Account.Own(v.now)[c.quota]; used > c.limit || used == 0 {
			t.Errorf("%s: %d of %d are used", c.quota, used, c.limit)
		}
		if err := v.within("fae", nil, c.command(50)); err != nil {
			t.Errorf("%s without limits: %v", c.quota, err)
		}
		v.checkReplay()
	}
}

func TestWhoHasTooMuchCanLetGo(t *testing.T) {
	v := quotaHarness(t)
	v.must("fae", someForm("1"))
	v.must("fae", someForm("2"))
	v.must("fae", BindName{Name: "n", Value: "1"})
	v.deliver(false)
	none := &Limits{}
	if err := v.within("fae", none, someForm("3")); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Fatalf("with quotas of nothing: %v", err)
	}
	for _, c := range []Command{CancelForm{Form: capabilities.FormNumber(0), Reason: "r"}, DismissMessage{Message: capabilities.FormNumber(1)}, UnbindName{Name: "n"}} {
		if err := v.within("fae", none, c); err != nil {
			t.Errorf("%T: %v", c, err)
		}
	}
	l := &Limits{Quotas: NoQuotas()}
	l.Quotas[QuotaForms] = 2
	if err := v.within("fae", l, someForm("3")); err != nil {
		t.Errorf("in the place of one that was cancelled: %v", err)
	}
	l.Beside[QuotaForms] = 1
	if err := v.within("fae", l, someForm("4")); parley.CodeOf(err) != parley.QuotaExceeded || !strings.Contains(err.Error(), "with those that it made") {
		t.Errorf("with one of an agent that it made: %v", err)
	}
	v.checkReplay()
}

func TestTheDailyQuotaBeginsAnewAtMidnight(t *testing.T) {
	v := quotaHarness(t)
	l := &Limits{Quotas: NoQuotas()}
	l.Quotas[QuotaDaily] = 2000
	post := PostMessage{To: "HOST", Text: strings.Repeat("x", 1000)}
	v.now = dayLength - 1
	if err := v.within("fae", l, post); err != nil {
		t.Fatal(err)
	}
	if err := v.within("fae", l, post); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Fatalf("twice in a day: %v", err)
	}
	v.now++
	if used := v.states["fae"].Account.Own(v.now)[QuotaDaily]; used != 0 {
		t.Errorf("%d bytes at midnight", used)
	}
	if err := v.within("fae", l, post); err != nil {
		t.Errorf("at midnight: %v", err)
	}
	v.checkReplay()
}

func TestAMailboxHoldsSoMuchForOneSender(t *testing.T) {
	v := quotaHarness(t)
	v.add("tom")
	quotas := NoQuotas()
	quotas[QuotaInbox] = 4000
	bring := func(from string) error {
		v.must(from, PostMessage{To: "HOST", Text: strings.Repeat("x", 1000)})
		s := v.states[from]
		p := s.Outbox.Items()[len(s.Outbox.Items())-1]
		c, err := s.CommandFor(p)
		if err != nil {
			t.Fatal(err)
		}
		r := c.(AcceptDelivery)
		r.Quotas = &quotas
		_, err = v.decide("host", r)
		v.must(from, RecordDelivery{Items: []OutboxItem{p}})
		return err
	}
	for i := range 2 {
		if err := bring("fae"); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if err := bring("fae"); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Fatalf("the third: %v", err)
	}
	if err := bring("tom"); err != nil {
		t.Errorf("another sender: %v", err)
	}
	v.must("host", DismissMessage{Message: capabilities.FormNumber(0)})
	if err := bring("fae"); err != nil {
		t.Errorf("in the place of one that was dismissed: %v", err)
	}
	v.checkReplay()
}

// Whatever an agent does, within quotas it has no more than they allow.
func TestNoQuotaIsEverPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := quotaHarness(t)
		v.quick = true
		l := &Limits{Quotas: Amounts{
			QuotaForms: 3, QuotaNames: 3, QuotaAgents: 2, QuotaBytes: 6000, QuotaDaily: 20_000, QuotaInbox: 5000, QuotaGrants: 9, QuotaProcessor: 9,
		}}
		text := rapid.Custom(func(t *rapid.T) string { return strings.Repeat("x", rapid.IntRange(0, 3000).Draw(t, "length")) })
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		number := rapid.SampledFrom([]capabilities.FormRef{capabilities.FormNumber(0), capabilities.FormNumber(1), capabilities.FormNumber(2), capabilities.FormNumber(3), capabilities.FormNumber(4)})
		next := uint16(5000)
		do := func(t *rapid.T, c Command) {
			if err := v.within("fae", l, c); parley.CodeOf(err) == parley.Internal {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"ask":     func(t *rapid.T) { do(t, someForm(text.Draw(t, "text"))) },
			"post":    func(t *rapid.T) { do(t, PostMessage{To: "HOST", Text: text.Draw(t, "text")}) },
			"store":   func(t *rapid.T) { do(t, BindName{Name: name.Draw(t, "name"), Value: `"` + text.Draw(t, "text") + `"`}) },
			"rename":  func(t *rapid.T) { do(t, MoveName{From: name.Draw(t, "from"), To: name.Draw(t, "to")}) },
			"remove":  func(t *rapid.T) { do(t, UnbindName{Name: name.Draw(t, "name")}) },
			"cancel":  func(t *rapid.T) { do(t, CancelForm{Form: number.Draw(t, "number")}) },
			"dismiss": func(t *rapid.T) { do(t, DismissMessage{Message: number.Draw(t, "number")}) },
			"make": func(t *rapid.T) {
				next++
				do(t, CreateAgent{Agent: harnessID(next), Kind: events.Guest, Name: name.Draw(t, "name")})
			},
			"deliver": func(*rapid.T) { v.deliver(false) },
			"days":    func(t *rapid.T) { v.now += dayLength / 2 },
			"": func(t *rapid.T) {
				for q, n := range v.states["fae"].Account.Own(v.now) {
					if n > l.Quotas[q] || n < 0 {
						t.Fatalf("%d %s of %d", n, Quota(q), l.Quotas[q])
					}
				}
			},
		})
		v.checkReplay()
	})
}

func TestQuotasAreReadAndShown(t *testing.T) {
	named, err := ParseQuotas([]string{"forms=5", "daily=64MiB", "inbox=none", "bytes=0", "processor=10"})
	if err != nil {
		t.Fatal(err)
	}
	a := AgentQuotas()
	if err := a.Set(named); err != nil || a[QuotaForms] != 5 || a[QuotaDaily] != 64<<20 || a[QuotaInbox] != Unlimited || a[QuotaBytes] != 0 {
		t.Errorf("%v, %v", a, err)
	}
	b, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	again := PeerQuotas()
	if err := json.Unmarshal(b, &again); err != nil || again != a {
		t.Errorf("%s is read as %v, %v", b, again, err)
	}
	for _, wrong := range []string{"forms", "forms=", "forms=-2", "forms=x", "what=1", "bytes=9999999999GiB", "forms=1.5"} {
		if _, err := ParseQuotas([]string{wrong}); parley.CodeOf(err) != parley.InvalidArgument {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	for want, got := range map[string]string{
		"none": QuotaInbox.Show(Unlimited), "64 MiB": QuotaBytes.Show(64 << 20), "20 KiB": QuotaBytes.Show(20 << 10), "7": QuotaForms.Show(7),
		"10 ms a minute": QuotaProcessor.Show(10), "9000 bytes": QuotaDaily.Show(9000),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if q, share := (Amounts{QuotaForms: 8, QuotaNames: 5}).Fullest(Amounts{QuotaForms: 10, QuotaNames: 5, QuotaBytes: 1}); q != QuotaNames || share != 1 {
		t.Errorf("%s is the fullest, with %g", q, share)
	}
	if sum := (Amounts{Unlimited, 1}).Plus(Amounts{5, 2}); sum[0] != Unlimited || sum[1] != 3 {
		t.Errorf("%v", sum)
	}
}

func TestAnswersAndHandoversAreHeldToTheQuota(t *testing.T) {
	v := quotaHarness(t)
	v.add("tom")
	v.apply("host", &events.NameBound{Name: "fae", Value: capabilities.Reference(agentRef(v.states["fae"].ID))})
	v.must("host", RequestForm{To: "fae", Description: "d", Fields: []events.Field{{Name: "f"}}})
	v.deliver(false)
	s := v.states["fae"]
	l := &Limits{Quotas: NoQuotas()}
	l.Quotas[QuotaDaily] = 400
	for n, want := range map[int]parley.Code{10: "", 1000: parley.QuotaExceeded} {
		c, _, err := s.DraftAnswer(Reply{Form: capabilities.FormNumber(0), Values: map[string]capabilities.Value{"f": capabilities.String(strings.Repeat("x", n))}}, v.now, v.id)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CheckAnswer(l, c, v.now); parley.CodeOf(err) != want {
			t.Errorf("an answer of %d bytes: %v", n, err)
		}
	}
	form := s.Mail.All()[0].ID()
	if err := s.CheckForward(l, form, v.now); parley.CodeOf(err) != parley.QuotaExceeded {
		t.Errorf("handed on: %v", err)
	}
	if err := s.CheckForward(nil, form, v.now); err != nil {
		t.Errorf("handed on without limits: %v", err)
	}
}
