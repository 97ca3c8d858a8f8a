package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
)

// Schedule is a run of the simulation: the number of nodes and the steps, each with all its choices. A step that cannot
// be taken does nothing, so a schedule without some of its steps is one too.
type Schedule struct {
	Nodes int
	Steps []Step
}

// Step is one step of a schedule.
type Step struct {
	Kind kind
	Draw uint64
}

type kind uint8

const (
	stepHandle  kind = iota // a mailbox handles a message
	stepBegin               // a commit leaves
	stepWrite               // and is stored, or fails
	stepSettle              // what waits for it is released
	stepAdvance             // a packet is made
	stepCarry               // a packet arrives
	stepClient              // a client calls
	stepTick
	stepTimer
	stepLose
	stepDouble
	stepTimeout
	stepGiveUp
	stepCut
	stepHeal
	stepCrash
	stepStart
	stepFull
	stepSpace
	stepClock
	stepSnapshot
	stepPanic
	stepPush     // the first packet that can be made is
	stepBurst    // a client sends some messages at once
	stepBadFlush // a commit fails, and the journal is opened again
	stepQuota    // the quotas of other mailboxes' mail change
	stepRefuse   // a quota refuses a copy that mail follows
	stepElect    // two agents vote
	kinds
)

var kindNames = [kinds]string{
	"handle", "begin", "write", "settle", "advance", "carry", "client", "tick", "timer", "lose", "double", "timeout", "give-up", "cut", "heal",
	"crash", "start", "full", "space", "clock", "snapshot", "panic", "push", "burst", "bad-flush", "quota", "refuse", "elect",
}

// String returns the schedule as text for Parse.
func (s Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "nodes %d\n", s.Nodes)
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "%s %d\n", kindNames[step.Kind], step.Draw)
	}
	return b.String()
}

// Parse reads a schedule that String wrote. Lines that begin with # are comments.
func Parse(text string) (s Schedule, err error) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		var (
			name string
			n    uint64
		)
		if _, err := fmt.Sscan(line, &name, &n); err != nil {
			return s, fmt.Errorf("%q: %w", line, err)
		}
		if name == "nodes" {
			s.Nodes = int(n)
			continue
		}
		k := slices.Index(kindNames[:], name)
		if k < 0 {
			return s, fmt.Errorf("there is no step %q", name)
		}
		s.Steps = append(s.Steps, Step{kind(k), n})
	}
	return s, nil
}

// weights is how often a step is of each kind.
var weights = [kinds]int{
	stepHandle: 100, stepBegin: 24, stepWrite: 24, stepSettle: 24, stepAdvance: 24, stepCarry: 20, stepClient: 32, stepTick: 4, stepTimer: 6,
	stepLose: 2, stepDouble: 3, stepTimeout: 2, stepGiveUp: 2, stepCut: 1, stepHeal: 4, stepCrash: 2, stepStart: 12, stepFull: 1, stepSpace: 8,
	stepClock: 2, stepSnapshot: 3, stepPanic: 1, stepPush: 16, stepBurst: 6, stepBadFlush: 3, stepQuota: 4, stepRefuse: 1, stepElect: 1,
}

// faults are the kinds of which a schedule leaves some out. What one fault hides, others show.
var faults = []kind{stepLose, stepDouble, stepTimeout, stepGiveUp, stepCut, stepCrash, stepFull, stepClock, stepSnapshot, stepPanic, stepBadFlush, stepQuota, stepRefuse}

// steps is the length of a schedule.
const steps = 800

// New returns the schedule of a seed.
func New(seed uint64) Schedule {
	r := rand.New(rand.NewPCG(seed, 1))
	s := Schedule{Nodes: 3, Steps: make([]Step, steps)}
	if seed%5 == 0 {
		s.Nodes += 1 + int(seed/5%2)
	}
	often, total := weights, 0
	for _, k := range faults {
		if r.IntN(2) == 0 {
			often[k] = 0
		}
	}
	if seed%4 == 3 { // two faults that fall into each other's gaps
		for range 2 {
			often[faults[r.IntN(len(faults))]] *= 6
		}
	}
	for _, w := range often {
		total += w
	}
	for i := range s.Steps {
		n := r.IntN(total)
		for k, w := range often {
			if n -= w; n < 0 {
				s.Steps[i] = Step{kind(k), r.Uint64()}
				break
			}
		}
	}
	return s
}

// draw makes the choices of a step.
type draw uint64

func (d *draw) n(most int) int {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int((z ^ z>>31) % uint64(most))
}

func (d *draw) oneIn(n int) bool { return d.n(n) == 0 }

func pick[T any](d *draw, from []T) (x T, ok bool) {
	if len(from) == 0 {
		return x, false
	}
	return from[d.n(len(from))], true
}

// step takes one step.
func (w *world) step(s Step) {
	d := draw(s.Draw)
	n := w.nodes[d.n(len(w.nodes))]
	switch s.Kind {
	case stepHandle:
		if b := w.busy(&d); b != nil {
			b.handle()
		}
	case stepBegin:
		n.journal.begin(1 + d.n(6))
	case stepWrite:
		n.write(d.oneIn(2))
	case stepSettle:
		n.journal.settle()
	case stepAdvance:
		if p := n.peers[w.nodes[d.n(len(w.nodes))]]; p != nil && !n.down {
			p.advance()
		}
	case stepCarry:
		if len(w.packets) > 0 {
			w.carry(d.n(len(w.packets)))
		}
	case stepClient:
		if b := w.all[d.n(len(w.all))]; !b.node.down {
			w.client(b, &d)
		}
	case stepPush:
		w.push(&d)
	case stepBurst:
		if b := w.all[d.n(len(w.all))]; !b.node.down {
			to := w.path(b, &d)
			if d.oneIn(2) { // to the other mailbox of the node
				to = b.node.mailboxes[1].name[:1]
				if b != b.node.mailboxes[0] {
					to = "HOST"
				}
			}
			for range 2 + d.n(3) {
				w.run(b, mailbox.PostMessage{To: to, Post: parley.Post{Text: "next"}})
			}
		}
	case stepElect:
		w.elect(n, &d)
	case stepTick:
		if !n.down {
			n.tick()
		}
		w.now += capabilities.Time(d.n(30))
	case stepTimer:
		if len(n.timers) > 0 {
			i := d.n(len(n.timers))
			t := n.timers[i]
			n.timers = slices.Delete(n.timers, i, i+1)
			w.trace("%s: %s", n.name, t.what)
			t.do()
		}
	default:
		w.fault(s.Kind, n, &d)
	}
}

// push has a peer make a packet, one that can.
func (w *world) push(d *draw) {
	first := d.n(len(w.nodes))
	for i := range w.nodes {
		n := w.nodes[(first+i)%len(w.nodes)]
		for _, to := range w.nodes {
			if p := n.peers[to]; p != nil && !n.down && p.advance() {
				return
			}
		}
	}
}

// busy returns a mailbox that has messages, or nil.
func (w *world) busy(d *draw) *mailboxActor {
	first := d.n(len(w.all))
	for i := range w.all {
		if b := w.all[(first+i)%len(w.all)]; len(b.inbox) > 0 && !b.node.down {
			return b
		}
	}
	return nil
}

// client has a client of a mailbox call something.
func (w *world) client(b *mailboxActor, d *draw) {
	switch call := d.n(32); call {
	case 0, 1, 2, 3, 25, 26, 31:
		c := mailbox.RequestForm{Schema: w.schema, Form: parley.Form{To: w.path(b, d), Description: "d1", Fields: formFields}}
		if call == 31 || call == 3 {
			w.route(&c, b, d)
		}
		if call == 2 {
			w.severalNeeded(&c, d)
		}
		if d.oneIn(6) {
			c.Deadline = b.node.now() + 1 + capabilities.Time(d.n(200))
		}
		if d.oneIn(4) {
			c.Key = fmt.Sprint("k", d.n(3))
		}
		w.ask(b, c, d.oneIn(2))
	case 4, 5, 6:
		if form, ok := w.form(b, d, true); ok {
			r := mailbox.Reply{Form: capabilities.FormID(form), Schema: w.schema, Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: b.name}}}}
			if d.oneIn(3) {
				r.Texts = append(r.Texts, events.FieldText{Name: "who", Text: w.path(b, d)})
			}
			w.answer(b, form, r, d.oneIn(4))
		}
	case 16, 19, 20, 21, 27:
		if w.raceVotes(d) {
			return
		}
		if form, ok := pick(d, w.facts.shared[max(len(w.facts.shared)-3, 0):]); ok {
			w.race(form, d)
		}
	case 7, 8, 17, 18:
		if form, ok := w.form(b, d, true); ok {
			w.forward(b, form, w.path(b, d))
		}
	case 9, 10, 11:
		w.run(b, mailbox.PostMessage{To: w.path(b, d), Post: parley.Post{Text: "take @it:" + w.path(b, d)}})
	case 12:
		w.rename(b, d)
	case 24:
		via := capabilities.ID{}
		if known := w.facts.granted; len(known) > 0 {
			via = known[d.n(len(known))]
		}
		w.forge(b, w.all[d.n(len(w.all))], via)
	case 28, 29:
		if form, ok := w.form(b, d, false); ok {
			w.amend(b, form)
		}
	case 30:
		if form, ok := w.form(b, d, true); ok {
			w.lookAndAnswer(b, form)
		}
	case 13, 22, 23:
		w.revoke(b, d.n(2)*d.n(1000))
	case 14:
		if form, ok := w.form(b, d, false); ok {
			w.run(b, mailbox.CancelForm{Form: capabilities.FormID(form)})
		}
	case 15:
		if form, ok := w.form(b, d, false); ok {
			w.await(b, form, &wait{})
		}
		w.withdrawAny(b)
	}
}

// rename has a client of a mailbox bind a name, or unbind one.
func (w *world) rename(b *mailboxActor, d *draw) {
	name := []string{"x", "y"}[d.n(2)]
	if d.oneIn(3) {
		w.run(b, mailbox.UnbindName{Name: name})
		return
	}
	w.run(b, mailbox.AdoptName{Message: capabilities.FormNumber(uint64(d.n(6))), Edge: "it", Name: name})
}

// race has all agents answer or decline a form that they have and may answer.
func (w *world) race(form capabilities.ID, d *draw) {
	for _, b := range w.all {
		if c := b.shadow.copies[form]; c != nil && c.open && c.from != b && !b.node.down {
			r := mailbox.Reply{Form: capabilities.FormID(form), Schema: w.schema, Answer: parley.Answer{Texts: []events.FieldText{{Name: "f", Text: b.name}}}}
			w.answer(b, form, r, d.oneIn(4))
		}
	}
}

// form draws a form that a mailbox has or had: mostly an open one, and mostly one that it was asked if that is wanted.
func (w *world) form(b *mailboxActor, d *draw, asked bool) (form capabilities.ID, ok bool) {
	for range 4 {
		form, ok = pick(d, b.forms)
		if c := b.shadow.copies[form]; c != nil && c.open && (c.from != b) == asked {
			break
		}
	}
	return form, ok
}

// path draws the path of an agent, or of a value in a message.
func (w *world) path(b *mailboxActor, d *draw) string {
	switch d.n(8) {
	case 0:
		return []string{"HOST", "SELF", "a", "b", "x", "y"}[d.n(6)]
	case 1, 2:
		return fmt.Sprintf("@mail/%d/@from", d.n(6))
	case 3:
		return []string{"x", "y"}[d.n(2)]
	}
	if b != b.node.mailboxes[0] {
		return "HOST"
	}
	if i := slices.Index(w.nodes, b.node) + d.n(3) - 1; i >= 0 && i < len(w.nodes) && w.nodes[i] != b.node {
		return w.nodes[i].name
	}
	return b.node.mailboxes[1].name[:1]
}

// run runs a schedule, and then lets the world come to rest. It returns the invariant that was broken, or "". Seen
// counts the rare states that it met. With log, it returns a transcript too.
func run(s Schedule, seen *[states]int, log bool) (broken string, transcript []string) {
	w := newWorld(s.Nodes, seen, log)
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			broken, transcript = f.text, w.lines
		}
	}()
	for i, step := range s.Steps {
		if log {
			w.trace("step %d", i)
		}
		w.step(step)
	}
	w.heal()
	w.drain()
	w.now += 1000
	w.drain()
	for _, b := range w.all {
		w.endForms(b)
	}
	w.drain()
	w.checkEnd()
	return "", w.lines
}

// endForms cancels the forms of a mailbox that are still open.
func (w *world) endForms(b *mailboxActor) {
	if b.state == nil {
		b.tell(0, "read", func(*mailboxActor) {}, func(error) {})
		b.handle()
	}
	for _, form := range b.forms {
		if c := b.shadow.copies[form]; c != nil && c.open && c.from == b {
			w.run(b, mailbox.CancelForm{Form: capabilities.FormID(form)})
		}
	}
}
