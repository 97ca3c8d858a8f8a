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

// TestReceiptLaws offers, shows, handles and returns messages in any order, to readers of a mailbox whose senders are on its
// node and on another. A state only moves forward, but for a return. Nothing is shown without an offer and a proof, but what
// somebody marked as read. A message is offered again only after a return, and to one of two at once. No sender ever knows more
// than the log of the recipient says, and in the end each knows all of it.
func TestReceiptLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := newReceipts(t)
		t.Repeat(map[string]func(*rapid.T){
			"": r.check, "send": r.send, "send more": r.send, "offer": r.offer, "offer at once": r.offerAtOnce, "show": r.show, "repeat": r.repeat, "fetch": r.fetch, "show more": r.show, "handle": r.handle,
			"return": r.giveBack, "read": r.read, "dismiss": r.dismiss, "reply": r.reply, "deliver one": r.deliverOne, "deliver another": r.deliverOne,
			"restart": r.restart, "end": r.end,
		})
		r.Deliver(true)
		r.check(t)
		r.checkTold(t)
		r.CheckReplay()
	})
}

// receipts is a Harness with a mailbox fae@A that two sessions read, and senders on its node and on another.
type receipts struct {
	*mailboxtest.Harness
	tokens  int
	checked int              // events of the log that were looked at
	state   map[uint64]uint8 // by the log, as a rank
	highest map[uint64]uint8 // that the log ever said
	holder  map[uint64]string
}

const readerA, readerB = "one@A", "two@A"

var receiptSenders = []string{"h@A", "h@B"}

func newReceipts(t *rapid.T) *receipts {
	r := &receipts{Harness: mailboxtest.New(t), state: map[uint64]uint8{}, highest: map[uint64]uint8{}, holder: map[uint64]string{}}
	r.SkipChecksums = true
	for _, name := range []string{"h@A", "fae@A", readerA, readerB, "h@B"} {
		r.Add(name)
	}
	r.NameAgents()
	r.Introduce("h@A", "h@B")
	r.Must("h@A", mailbox.PostMessage{To: "B", Post: parley.Post{Text: "meet @fae"}})
	r.Deliver(false)
	r.Must("h@B", mailbox.AdoptName{Message: capabilities.FormNumber(0), Edge: "fae", Name: "fae"})
	return r
}

func (r *receipts) send(t *rapid.T) {
	p := parley.Post{Text: "hello", Header: parley.Header{Priority: rapid.SampledFrom([]parley.Priority{"", events.Urgent, events.Low}).Draw(t, "priority")}}
	r.Must(rapid.SampledFrom(receiptSenders).Draw(t, "sender"), mailbox.PostMessage{To: "fae", Post: p})
}

func (r *receipts) mail() *mailbox.Mail { return &r.States["fae@A"].Mail }

func (r *receipts) reader(t *rapid.T) string {
	return rapid.SampledFrom([]string{readerA, readerB}).Draw(t, "reader")
}

func (r *receipts) idOf(reader string) capabilities.ID { return r.States[reader].ID }

// unoffered draws some of the messages that a reader may be offered, and of others.
func (r *receipts) unoffered(t *rapid.T, reader string) []uint64 {
	numbers, known := r.mail().Index.Unoffered(r.idOf(reader))
	if !known {
		for n := range r.mail().Index.Len() {
			numbers = append(numbers, n)
		}
	}
	if len(numbers) == 0 {
		t.Skip("no mail")
	}
	numbers = numbers[:rapid.IntRange(1, len(numbers)).Draw(t, "many")]
	return append(slices.Clone(numbers), rapid.Uint64Range(0, r.mail().Index.Len()-1).Draw(t, "any"))
}

func (r *receipts) offerTo(reader string, numbers []uint64) []uint64 {
	r.tokens++
	evs := r.Must("fae@A", mailbox.OfferMessages{Reader: r.idOf(reader), Token: fmt.Sprint("t", r.tokens), Numbers: numbers, Moment: "Stop"})
	if len(evs) == 0 {
		return nil
	}
	return evs[0].(*events.MessagesOffered).Numbers
}

func (r *receipts) offer(t *rapid.T) {
	reader := r.reader(t)
	r.offerTo(reader, r.unoffered(t, reader))
}

// offerAtOnce has both readers choose before either is offered anything.
func (r *receipts) offerAtOnce(t *rapid.T) {
	a, b := r.unoffered(t, readerA), r.unoffered(t, readerB)
	first, second := r.offerTo(readerA, a), r.offerTo(readerB, b)
	for _, n := range first {
		if slices.Contains(second, n) {
			t.Fatalf("message %d was offered to both", n)
		}
	}
}

func (r *receipts) show(t *rapid.T) {
	reader := r.reader(t)
	offers := r.mail().Offers.Of(r.idOf(reader))
	c := mailbox.ShowMessages{Reader: r.idOf(reader), Token: "of nobody", Proof: "seen"}
	if len(offers) > 0 {
		o := rapid.SampledFrom(offers).Draw(t, "offer")
		if c.Token = o.Token; rapid.Bool().Draw(t, "one") {
			c.Numbers = o.Numbers[:1]
		}
	}
	if rapid.IntRange(0, 4).Draw(t, "other") == 0 && r.mail().Index.Len() > 0 {
		c.Numbers = []uint64{rapid.Uint64Range(0, r.mail().Index.Len()-1).Draw(t, "any")}
	}
	_, err := r.Decide("fae@A", c)
	if code := parley.CodeOf(err); code != "" && code != parley.NotPermitted {
		t.Fatal(err)
	}
	c.Proof = ""
	if _, err := r.Decide("fae@A", c); parley.CodeOf(err) != parley.InvalidArgument {
		t.Fatalf("shown without a proof: %v", err)
	}
}

// repeat gives a notice again, which says nothing of how far its messages have come.
func (r *receipts) repeat(t *rapid.T) {
	reader := r.reader(t)
	c := mailbox.RepeatNotice{Reader: r.idOf(reader), Token: "of nobody", Moment: "stop"}
	before := r.mail().Offers.Of(r.idOf(reader))
	repeats := uint8(mailbox.MaxRepeats)
	if len(before) > 0 {
		o := rapid.SampledFrom(before).Draw(t, "offer")
		c.Token, repeats = o.Token, o.Repeats
	}
	evs, err := r.Decide("fae@A", c)
	if err != nil || (len(evs) == 1) != (repeats < mailbox.MaxRepeats) {
		t.Fatalf("a notice that was given %d times again: %v, %v", repeats, evs, err)
	}
	if after := r.mail().Offers.Of(r.idOf(reader)); len(after) != len(before) {
		t.Fatalf("there were %d offers, and are %d", len(before), len(after))
	}
}

// fetch fetches texts that a reader was offered, which says nothing of how far they have come, and is known until they are
// shown. What was shown meanwhile holds up no other.
func (r *receipts) fetch(t *rapid.T) {
	reader := r.reader(t)
	c := mailbox.FetchMessages{Reader: r.idOf(reader)}
	before := r.mail().Offers.Of(c.Reader)
	code := parley.InvalidArgument
	if len(before) > 0 {
		c.Numbers, code = rapid.SampledFrom(before).Draw(t, "offer").Numbers, ""
	}
	if r.mail().Index.Len() > 0 && rapid.IntRange(0, 4).Draw(t, "other") == 0 {
		n := r.any(t)
		if c.Numbers = append(c.Numbers, n); !slices.ContainsFunc(before, func(o mailbox.Offer) bool { return slices.Contains(o.Numbers, n) }) {
			if code = ""; r.state[n] < events.Shown.Rank() || r.mail().Sent(r.Messages("fae@A")[n]) {
				code = parley.NotPermitted
			}
		}
	}
	if _, err := r.Decide("fae@A", c); parley.CodeOf(err) != code {
		t.Fatalf("fetched %v of %v: %v", c.Numbers, before, err)
	}
	after := r.mail().Offers.Of(c.Reader)
	if len(after) != len(before) {
		t.Fatalf("there were %d offers, and are %d", len(before), len(after))
	}
	for i, o := range after {
		for _, n := range o.Numbers {
			if fetched := before[i].FetchedAt(n) != 0 || code == "" && slices.Contains(c.Numbers, n); fetched != (o.FetchedAt(n) != 0) {
				t.Fatalf("message %d is fetched: %v", n, o.FetchedAt(n))
			}
		}
	}
}

func (r *receipts) any(t *rapid.T) uint64 {
	if r.mail().Index.Len() == 0 {
		t.Skip("no mail")
	}
	return rapid.Uint64Range(0, r.mail().Index.Len()-1).Draw(t, "message")
}

func (r *receipts) handle(t *rapid.T) {
	how := rapid.SampledFrom([]events.Handling{events.WasRead, events.WasAcknowledged}).Draw(t, "how")
	_, err := r.Decide("fae@A", mailbox.HandleMessages{Reader: r.idOf(r.reader(t)), Numbers: []uint64{r.any(t)}, How: how})
	if code := parley.CodeOf(err); code != "" && code != parley.InvalidArgument { // of what it sent
		t.Fatal(err)
	}
}

func (r *receipts) giveBack(t *rapid.T) {
	reader := r.reader(t)
	c := mailbox.ReturnOffers{Reader: r.idOf(reader)}
	if offers := r.mail().Offers.Of(c.Reader); len(offers) > 0 && rapid.Bool().Draw(t, "one") {
		c.Tokens = []string{rapid.SampledFrom(offers).Draw(t, "offer").Token}
	}
	r.Must("fae@A", c)
}

// end returns all that a reader has, whom the other follows.
func (r *receipts) end(*rapid.T) { r.Must("fae@A", mailbox.ReturnOffers{Reader: r.idOf(readerA)}) }

func (r *receipts) read(t *rapid.T) {
	r.Must("fae@A", mailbox.MarkMessages{Numbers: []uint64{r.any(t)}, Unread: rapid.IntRange(0, 3).Draw(t, "unread") == 0})
}

func (r *receipts) dismiss(t *rapid.T) {
	r.Must("fae@A", mailbox.DismissMessage{Message: capabilities.FormNumber(r.any(t))})
}

func (r *receipts) reply(t *rapid.T) {
	_, err := r.Decide("fae@A", mailbox.PostMessage{Reply: capabilities.FormNumber(r.any(t)), Post: parley.Post{Text: "well"}})
	if code := parley.CodeOf(err); code == parley.Internal {
		t.Fatal(err)
	}
}

// deliverOne delivers the first item of an agent. Its ack may be lost.
func (r *receipts) deliverOne(t *rapid.T) {
	from := rapid.SampledFrom([]string{"h@A", "h@B", "fae@A"}).Draw(t, "from")
	all := r.Outgoing(from)
	if len(all) == 0 {
		t.Skip("nothing to deliver")
	}
	refused := r.DeliverItem(from, all[0])
	if rapid.IntRange(0, 3).Draw(t, "ack") > 0 {
		r.Must(from, mailbox.RecordDelivery{Items: all[:1], Refused: refused})
	}
}

func (r *receipts) restart(t *rapid.T) {
	who := rapid.SampledFrom([]string{"fae@A", "h@A", "h@B"}).Draw(t, "who")
	s, err := mailbox.Restore(r.States[who].ID, []byte(r.Snapshot(who)))
	if err != nil {
		t.Fatal(err)
	}
	r.SetState(who, s)
}

// check looks at the events since its last call, and at what the senders know.
func (r *receipts) check(t *rapid.T) {
	for ; r.checked < len(r.Logs["fae@A"]); r.checked++ {
		r.checkEvent(t, r.Logs["fae@A"][r.checked].Event)
	}
	messages := r.Messages("fae@A")
	for _, m := range messages {
		if r.mail().Sent(m) {
			continue
		}
		got, err := mailbox.StateOf(r.mail(), m)
		if err != nil || got.Rank() != r.state[m.Number] {
			t.Fatalf("message %d is %s, %v; by the log it is %d", m.Number, got, err, r.state[m.Number])
		}
		if known := r.known(t, m); known > r.highest[m.Number] {
			t.Fatalf("the sender of message %d knows %d, and the log of its recipient says %d", m.Number, known, r.highest[m.Number])
		}
	}
}

// known returns the rank of the state that the sender of a message knows.
func (r *receipts) known(t *rapid.T, m *mailbox.Message) uint8 {
	sender := r.States[r.NameOf[m.From()]]
	sent, err := sender.Mail.FindID(m.ID())
	if err != nil {
		t.Fatal(err)
	}
	state, err := mailbox.StateOf(&sender.Mail, sent)
	if err != nil {
		t.Fatal(err)
	}
	return state.Rank()
}

func (r *receipts) checkEvent(t *rapid.T, e events.Event) {
	forward := func(n uint64, to uint8) {
		r.state[n] = max(r.state[n], to)
		r.highest[n] = max(r.highest[n], r.state[n])
	}
	switch e := e.(type) {
	case *events.MessagesOffered:
		for _, n := range e.Numbers {
			if r.holder[n] != "" || r.state[n] > 0 {
				t.Fatalf("message %d was offered again, after %q and in state %d", n, r.holder[n], r.state[n])
			}
			r.holder[n] = e.Token
			forward(n, 1)
		}
	case *events.MessagesShown:
		for _, n := range e.Numbers {
			if e.Proof == "" || e.Token == "" && e.Reader != r.States["fae@A"].ID || e.Token != "" && r.holder[n] != e.Token {
				t.Fatalf("message %d was shown by %+v, and it was offered by %q", n, e, r.holder[n])
			}
			forward(n, 2)
		}
	case *events.MessagesHandled:
		for _, n := range e.Numbers {
			forward(n, 3)
		}
	case *events.MessageDismissed:
		forward(e.Number, 3)
	case *events.MessagePosted:
		if e.From == r.States["fae@A"].ID && !e.ReplyTo.IsZero() {
			if n, ok, err := r.mail().Index.NumberOf(e.ReplyTo); err == nil && ok {
				forward(n, 3)
			}
		}
	case *events.OffersReturned:
		for n, token := range r.holder {
			if mine := r.offeredTo(token) == e.Reader; mine && r.state[n] == 1 && (len(e.Tokens) == 0 || slices.Contains(e.Tokens, token)) {
				r.state[n] = 0
				delete(r.holder, n)
			}
		}
	}
}

// offeredTo returns the reader of a token.
func (r *receipts) offeredTo(token string) capabilities.ID {
	for _, e := range r.Logs["fae@A"] {
		if o, ok := e.Event.(*events.MessagesOffered); ok && o.Token == token {
			return o.Reader
		}
	}
	return capabilities.ID{}
}

// checkTold fails unless each sender knows all that the log says.
func (r *receipts) checkTold(t *rapid.T) {
	for _, m := range r.Messages("fae@A") {
		if known := r.known(t, m); !r.mail().Sent(m) && known < r.state[m.Number] {
			t.Fatalf("the sender of message %d knows %d of %d", m.Number, known, r.state[m.Number])
		}
	}
}

// TestForgedReceiptsAreRefused has other agents report on messages that were not sent to them, and states that there are not.
func TestForgedReceiptsAreRefused(t *testing.T) {
	v := newThreeAgents(t, capabilities.Facet{})
	message := v.Must("fae", mailbox.PostMessage{To: "HOST", Post: parley.Post{Text: "hello"}})[0].(*events.MessagePosted).Message
	form := v.Must("fae", mailbox.RequestForm{Form: parley.Form{To: "HOST", Description: "d", Fields: text}})[0].(*events.FormRequested)
	v.Deliver(false)
	host := v.States["host"].ID
	stranger := mailboxtest.NthID(60_000)
	report := events.ReceiptReported{Message: message, By: host, Reader: host, State: events.Shown, How: "read", Date: v.Now}
	for what, forge := range map[string]func(*events.ReceiptReported){
		"another agent":             func(e *events.ReceiptReported) { e.By, e.Reader = stranger, stranger },
		"the sender itself":         func(e *events.ReceiptReported) { e.By, e.Reader = v.States["fae"].ID, v.States["fae"].ID },
		"a form of others":          func(e *events.ReceiptReported) { e.Message, e.By, e.Reader = form.ID, stranger, stranger },
		"a message that is not":     func(e *events.ReceiptReported) { e.Message = stranger },
		"a state that there is not": func(e *events.ReceiptReported) { e.State = "seen" },
		"a reader elsewhere": func(e *events.ReceiptReported) {
			e.Reader.Node = capabilities.NodeOf([32]byte{9})
		},
		"too many words": func(e *events.ReceiptReported) { e.How = string(make([]byte, 300)) },
	} {
		forged := report
		forge(&forged)
		if _, err := v.States["fae"].Decide(mailbox.RemoteReceipt{RecordReceipt: mailbox.RecordReceipt{Report: forged}}, v.Now, v.NewID); err == nil {
			t.Errorf("%s: it was taken", what)
		}
	}
	if _, err := v.Decide("fae", mailbox.RemoteReceipt{RecordReceipt: mailbox.RecordReceipt{Report: report}}); err != nil {
		t.Error(err)
	}
	report.State = events.Offered
	if evs, err := v.Decide("fae", mailbox.RemoteReceipt{RecordReceipt: mailbox.RecordReceipt{Report: report}}); err != nil || len(evs) != 0 {
		t.Errorf("an earlier state: %v, %v", evs, err)
	}
	v.CheckReplay()
}

// TestSettledMessagesLeaveMemory offers, shows and handles many messages. None of them is held then, by its recipient or by its
// sender, and the head of a snapshot is not larger for them.
func TestSettledMessagesLeaveMemory(t *testing.T) {
	v := mailboxtest.New(t)
	v.SkipChecksums = true
	v.Add("host")
	v.Add("fae")
	v.NameAgents()
	size := map[string]int{}
	for round := range 20 {
		for i := range 20 {
			v.Must("host", mailbox.PostMessage{To: "fae", Post: parley.Post{Text: "hello", Header: parley.Header{AckBy: v.Now + 1000}}})
			v.Deliver(false)
			reader, token := v.States["fae"].ID, fmt.Sprint(round, "-", i)
			n := []uint64{v.States["fae"].Mail.Index.Len() - 1}
			v.Must("fae", mailbox.OfferMessages{Reader: reader, Token: token, Numbers: n})
			v.Must("fae", mailbox.ShowMessages{Reader: reader, Token: token, Proof: "seen"})
			v.Must("fae", mailbox.HandleMessages{Reader: reader, Numbers: n, How: events.WasAcknowledged})
			v.Now++
			v.Deliver(false)
		}
		for _, who := range v.Agents {
			s := v.States[who]
			held := 0
			for range s.Mail.Held() {
				held++
			}
			waiting, _ := s.Mail.Index.Unoffered(s.ID)
			if offers := s.Mail.Offers.Of(s.ID); held > 0 || len(waiting) > 0 || len(offers) > 0 || len(s.Outbox.Items()) > 0 {
				t.Fatalf("%s holds %d messages, %d offers, %d to be offered and %d items", who, held, len(offers), len(waiting), len(s.Outbox.Items()))
			}
			parts, err := s.Part(1<<20, v.Now+1000)
			if err != nil {
				t.Fatal(err)
			}
			if round == 9 {
				size[who] = len(parts.Head)
			}
			if round == 19 && len(parts.Head) > size[who]+200*40 {
				t.Errorf("%s: the head of a snapshot has grown from %d to %d bytes by 200 settled messages", who, size[who], len(parts.Head))
			}
		}
	}
	v.CheckReplay()
}

// TestOwnOffersAreBounded has an agent read its mail itself, so that no offer is ever proven: it may go on, few offers are kept, and what was
// offered stays offered.
func TestOwnOffersAreBounded(t *testing.T) {
	v := mailboxtest.New(t)
	v.SkipChecksums = true
	v.Add("host")
	v.Add("fae")
	v.NameAgents()
	for i := range 600 {
		v.Must("host", mailbox.PostMessage{To: "fae", Post: parley.Post{Text: "hello"}})
		v.Deliver(false)
		s := v.States["fae"]
		v.Must("fae", mailbox.OfferMessages{Reader: s.ID, Token: fmt.Sprint(i), Numbers: []uint64{s.Mail.Index.Len() - 1}})
		v.Deliver(false)
	}
	s := v.States["fae"]
	if got := s.Mail.Offers.Of(s.ID); len(got) != 256 || got[0].Token != "344" {
		t.Fatalf("%d offers are kept", len(got))
	}
	if waiting, _ := s.Mail.Index.Unoffered(s.ID); len(waiting) > 0 {
		t.Errorf("%d are offered again", len(waiting))
	}
}
