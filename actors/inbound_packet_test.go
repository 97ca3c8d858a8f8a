package actors

import (
	"bytes"
	"context"
	"crypto/tls"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/oklog/ulid/v2"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"parley/actors/peers"
	"parley/actors/transport"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/eventually"
)

// connect returns a NATS connection to a node's listener that carries any bytes. A node that is not yet a peer shows a
// token.
func (m *hostileNode) connect(to *Node, shows ...string) *nats.Conn {
	m.Helper()
	listener := to.ID()
	conn, err := nats.Connect("nats://"+to.PeerAddress(), nats.TLSHandshakeFirst(), nats.Secure(&tls.Config{InsecureSkipVerify: true}),
		nats.Token(strings.Join(shows, "")),
		nats.Nkey(m.id.String(), func(nonce []byte) ([]byte, error) {
			return m.key.Sign(slices.Concat([]byte("parley connection 1"), m.id.Bytes(), listener.Bytes(), nonce))
		}))
	if err != nil {
		m.Fatal(err)
	}
	m.Cleanup(conn.Close)
	return conn
}

func mailSubject(n *Node) string { return "parley.node." + n.ID().String() + ".mail" }

// publish sends envelopes and blocks until the node has refused the given number.
func (m *hostileNode) publish(conn *nats.Conn, to *Node, refused uint64, envelopes ...[]byte) {
	m.Helper()
	before := to.Traffic().Refused
	for _, e := range envelopes {
		if err := conn.Publish(mailSubject(to), e); err != nil {
			m.Fatal(err)
		}
	}
	eventually.Holds(m, "refusals", func() bool { return to.Traffic().Refused == before+refused })
}

func (m *hostileNode) seal(to *Node, kind transport.Kind, body []byte) []byte {
	m.Helper()
	e, err := m.identity.Seal(to.ID(), ulid.Make(), kind, body)
	if err != nil {
		m.Fatal(err)
	}
	return e
}

func (m *hostileNode) encode(x any) []byte {
	m.Helper()
	body, err := peers.WritePacket(x)
	if err != nil {
		m.Fatal(err)
	}
	return body
}

func nested(code byte, n int) []byte { return append(bytes.Repeat([]byte{code}, n), msgpcode.Nil) }

// arrayClaiming returns the encoding of an array that claims more or fewer elements than it has. All elements are nil.
func arrayClaiming(claims, has int) []byte {
	b := []byte{msgpcode.Array32, byte(claims >> 24), byte(claims >> 16), byte(claims >> 8), byte(claims)}
	return append(b, bytes.Repeat([]byte{msgpcode.Nil}, has)...)
}

func TestMalformedPacketsAreCountedAndDropped(t *testing.T) {
	v := newHostileHarness(t)
	conn := v.connect(v.victim)
	genuine := v.encode(peers.MailPacket{Items: []peers.Item{v.item(events.OutboxCopy, v.host, v.fae.id, v.message(v.fae.id, v.faeGrant))}})
	good := v.item(events.OutboxCopy, v.host, v.fae.id, v.message(v.fae.id, v.faeGrant))
	with := func(f func(*peers.Item)) []byte {
		p := good
		f(&p)
		return v.encode(peers.MailPacket{Items: []peers.Item{p}})
	}
	packet := func(kind transport.Kind, body []byte) []byte { return v.seal(v.victim, kind, body) }
	for what, c := range map[string]struct {
		kind transport.Kind
		body []byte
	}{
		"empty":                       {peers.KindMail, nil},
		"cut short":                   {peers.KindMail, genuine[:len(genuine)-1]},
		"with trailing data":          {peers.KindMail, append(slices.Clone(genuine), 0)},
		"text":                        {peers.KindMail, []byte("hello")},
		"deeply nested arrays":        {peers.KindMail, nested(0x91, transport.MaxBody-1)},
		"deeply nested records":       {peers.KindMail, nested(0x81, transport.MaxBody-1)},
		"with too large a count":      {peers.KindMail, append([]byte{0x94, 0, 0, msgpcode.Nil}, arrayClaiming(1<<31-1, 3)...)},
		"of a million items":          {peers.KindMail, append([]byte{0x94, 0, 0, msgpcode.Nil}, arrayClaiming(900_000, 900_000)...)},
		"of a million introductions":  {peers.KindMail, append(append([]byte{0x94, 0, 0}, arrayClaiming(900_000, 900_000)...), msgpcode.Nil)},
		"one item too many":           {peers.KindMail, v.encode(peers.MailPacket{Items: make([]peers.Item, peers.MaxItems+1)})},
		"one introduction too many":   {peers.KindMail, v.encode(peers.MailPacket{Introduced: make([]peers.Introduction, peers.MaxIntroduced+1)})},
		"with an item of no events":   {peers.KindMail, with(func(p *peers.Item) { p.Count = 0 })},
		"with an item of -1 events":   {peers.KindMail, with(func(p *peers.Item) { p.Count = -1 })},
		"with an item of many events": {peers.KindMail, with(func(p *peers.Item) { p.Count = peers.MaxItems + 1 })},
		"with too large an item":      {peers.KindMail, with(func(p *peers.Item) { p.Body = make([]byte, peers.MaxItemBytes+1) })},
		"of kind 0":                   {0, genuine},
		"of an unknown kind":          {peers.KindLeave + 1, genuine},
		"of the last kind":            {255, genuine},
		"an unsolicited response":     {peers.KindAcks, v.encode(peers.AckPacket{})},
		"an unsolicited welcome":      {peers.KindWelcome, v.encode(peers.WelcomePacket{})},
		"a malformed address":         {peers.KindAnnounce, nested(0x91, 1000)},
		"a malformed acceptance":      {peers.KindAccept, nested(0x91, 1000)},
		"too long a secret":           {peers.KindAccept, v.encode(peers.AcceptPacket{Secret: string(make([]byte, peers.MaxSecret+1))})},
	} {
		v.runCase(t, what, func() {
			v.checkNoEvents(func() { v.publish(conn, v.victim, 1, packet(c.kind, c.body)) })
		})
	}
	altered := packet(peers.KindMail, genuine)
	altered[len(altered)-1] ^= 1
	resigned := packet(peers.KindMail, genuine)
	copy(resigned[4:36], v.newUnknownNode().id.Bytes()) // not the node that signed it
	unknown := v.newUnknownNode()
	for what, e := range map[string][]byte{
		"not an envelope":           {1, 2, 3},
		"empty":                     nil,
		"altered":                   altered,
		"signed by another":         resigned,
		"too long":                  make([]byte, 1<<20),
		"from an unknown node":      unknown.seal(v.victim, peers.KindMail, genuine),
		"an unknown node's address": unknown.seal(v.victim, peers.KindAnnounce, v.encode(peers.AddressPacket{Stamp: 1})),
		"in the victim's name":      slices.Concat(altered[:4], v.victimID(), altered[36:]),
		"of a later version":        slices.Concat([]byte("PLT\x02"), altered[4:]),
	} {
		v.runCase(t, what, func() { v.checkNoEvents(func() { v.publish(conn, v.victim, 1, e) }) })
	}
	v.checkResponsive()
}

func (m *hostileNode) victimID() []byte {
	return m.victim.ID().Bytes()
}

// newUnknownNode returns a node that the victim does not know. It has no connection of its own.
func (m *hostileNode) newUnknownNode() *hostileNode {
	m.Helper()
	key, seals := newKey(m)
	return &hostileNode{TB: m.TB, victim: m.victim, id: seals.Node(), key: key, identity: seals}
}

func TestPacketIsAcceptedOnceByItsAddressee(t *testing.T) {
	v := newHostileHarness(t)
	conn := v.connect(v.victim)
	e := v.seal(v.victim, peers.KindMail, v.encode(peers.MailPacket{Items: []peers.Item{
		v.item(events.OutboxCopy, v.host, v.fae.id, v.message(v.fae.id, v.faeGrant)),
		v.item(events.OutboxCopy, v.host, v.limited.id, v.form(v.limited.id, v.limitedGrant)),
	}}))
	send := func(to *Node) {
		if err := conn.Publish(mailSubject(to), e); err != nil {
			t.Fatal(err)
		}
	}
	send(v.victim)
	eventually.Holds(t, "the packet", func() bool {
		in, err := v.limited.Mail().Inbox(t.Context(), view.MessageFilter{})
		return err == nil && len(in.Messages) == 1
	})
	v.checkNoEvents(func() {
		at := v.victim.Traffic().PacketsIn
		for i := range uint64(5) {
			send(v.victim)
			eventually.Holds(t, "the packet again", func() bool { return v.victim.Traffic().PacketsIn > at+i })
		}
	})

	second := openVictim(t)
	i := invite(t, second, "hostile")
	l, err := capabilities.ParseLocator(i.Locator)
	if err != nil {
		t.Fatal(err)
	}
	m := &hostileNode{TB: t, victim: second, id: v.id, host: v.host, key: v.key, identity: v.identity, transport: v.transport}
	if err := m.transport.Dial(t.Context(), second.ID(), l.Hints, peers.Token(l.ID.ULID, l.Secret)); err != nil {
		t.Fatal(err)
	}
	if w := m.accept(l.ID.ULID, l.Secret); w.Code != "" {
		t.Fatal(w.Code)
	}
	m.checkNoEvents(func() { m.publish(m.connect(second), second, 1, e) })
}

func TestMalformedItemIsRefusedAlone(t *testing.T) {
	v := newHostileHarness(t)
	good := func() peers.Item {
		return v.item(events.OutboxCopy, v.host, v.fae.id, v.message(v.fae.id, v.faeGrant))
	}
	framed := func(kind events.OutboxKind, e events.Event, payload []byte) peers.Item {
		p := v.item(kind, v.host, v.fae.id, e)
		head := 2 + 10 // kind, version, time
		p.Body = slices.Concat(p.Body[:head], []byte{msgpcode.Bin32, byte(len(payload) >> 24), byte(len(payload) >> 16), byte(len(payload) >> 8), byte(len(payload))}, payload)
		return p
	}
	with := func(f func(*peers.Item)) peers.Item {
		p := good()
		p.Body = slices.Clone(p.Body)
		f(&p)
		return p
	}
	answered := func(wide []byte) peers.Item {
		payload := slices.Concat([]byte{0x96, msgpcode.Nil, msgpcode.Nil, msgpcode.Nil, 0xd7, 3, 0, 0, 0, 0, 0, 0, 0, 1}, wide, []byte{msgpcode.False})
		return framed(events.OutboxOutcome, &events.FormAnswered{Values: capabilities.Null()}, payload)
	}
	for what, p := range map[string]peers.Item{
		"empty":                     with(func(p *peers.Item) { p.Body = nil }),
		"cut short":                 with(func(p *peers.Item) { p.Body = p.Body[:len(p.Body)-1] }),
		"with trailing data":        with(func(p *peers.Item) { p.Body = append(p.Body, 0) }),
		"with fewer than it claims": with(func(p *peers.Item) { p.Count = 2 }),
		"of two events":             with(func(p *peers.Item) { p.Count, p.Body = 2, append(p.Body, p.Body...) }),
		"of an unknown kind":        with(func(p *peers.Item) { p.Body[0] = 0x7f }),
		"of a newer version":        with(func(p *peers.Item) { p.Body[1] = 0x7f }),
		"deeply nested":             framed(events.OutboxCopy, v.message(v.fae.id, v.faeGrant), nested(0x91, 600<<10)),
		"claiming a billion":        answered(arrayClaiming(1<<30, 4)),
		"of a million grants":       answered(arrayClaiming(600<<10, 600<<10)),
		"of empty grants":           answered(append(arrayClaiming(600<<10, 0), bytes.Repeat([]byte{0x90}, 600<<10)...)),
		"of a list as its head":     with(func(p *peers.Item) { p.Body = slices.Concat(nested(0x91, 600<<10), p.Body[1:]) }),
	} {
		v.runCase(t, what, func() {
			var before, after runtime.MemStats
			v.checkNoEvents(func() {
				runtime.ReadMemStats(&before)
				v.wantRefused(v.deliverAll(p)[0], "INVALID_ARGUMENT")
				runtime.ReadMemStats(&after)
			})
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 48<<20 {
				t.Errorf("decoding allocated %d MiB", grown>>20)
			}
		})
	}
	r := v.deliverAll(with(func(p *peers.Item) { p.Body = nil }), good(), with(func(p *peers.Item) { p.To = ulid.Make() }), good())
	for i, want := range []peers.AckStatus{peers.AckRefused, peers.AckAccepted, peers.AckRefused, peers.AckAccepted} {
		if r[i].Status != want {
			t.Errorf("item %d: %+v", i, r[i])
		}
	}
}

func TestFloodLeavesOtherAgentsResponsive(t *testing.T) {
	v := newHostileHarness(t)
	var packet peers.MailPacket
	for range peers.MaxItems {
		packet.Items = append(packet.Items, v.item(events.OutboxCopy, v.host, v.worker.id, v.message(v.worker.id, v.newID())))
	}
	body := v.encode(packet)
	conn := v.connect(v.victim)
	ctx, stop := context.WithTimeout(t.Context(), eventually.Patience)
	defer stop()
	v.checkNoEvents(func() {
		var floods sync.WaitGroup
		for range 8 {
			floods.Go(func() {
				for ctx.Err() == nil {
					_, _ = v.transport.Call(ctx, v.victim.ID(), peers.KindMail, body) // its refusal is expected
					_ = conn.Publish(mailSubject(v.victim), v.seal(v.victim, peers.KindMail, []byte("hello")))
				}
			})
		}
		asking := time.NewTicker(20 * time.Millisecond)
		defer asking.Stop()
		for range 60 { // the flood lasts until the worker has responded so often
			if _, err := v.worker.Mail().Inbox(ctx, view.MessageFilter{}); err != nil {
				t.Error(err)
				break
			}
			<-asking.C
		}
		stop()
		floods.Wait()
	})
	v.checkResponsive()
}
