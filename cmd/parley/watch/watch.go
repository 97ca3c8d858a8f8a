package watch

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/client"
)

// Options are the parts of a watch. The client repeats no calls: its Patience is negative.
type Options struct {
	Node   *client.Client
	As     string // the name of the agent whose inbox it is
	In     io.Reader
	Out    io.Writer
	Screen terminal.Screen
}

// Run shows the inbox until the person quits or ctx ends.
func Run(ctx context.Context, o Options) error {
	ctx, stop := context.WithCancel(ctx)
	m := &model{ctx: ctx, node: o.Node, as: o.As, again: map[capabilities.ID]bool{}, screen: o.Screen, items: map[uint64]*view.Message{}, marked: map[uint64]bool{}, seen: map[string]bool{}, state: "connecting …"}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out))
	var following sync.WaitGroup
	following.Go(func() { follow(ctx, o.Node, p.Send) })
	_, err := p.Run()
	stop()
	following.Wait()
	if m.err != nil {
		return m.err
	}
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, context.Canceled) || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// model is the state of the screen.
type model struct {
	ctx    context.Context //nolint:containedctx // of the commands that Update returns
	node   *client.Client
	as     string
	screen terminal.Screen
	height int

	items  map[uint64]*view.Message
	order  []uint64 // what waits first, of that what is urgent, and of that the newest
	chosen uint64   // the number of the selected message
	begun  bool     // one was selected
	scroll int      // lines of it that are above the screen
	whole  bool     // it has the screen to itself
	moved  bool     // the person has selected it
	below  int      // lines of it that are below the screen
	drawn  drawnCall

	same   map[uint64][]uint64      // the numbers of the calls that are one row, by that of the row
	shown  map[uint64][]uint64      // same, as it was drawn last: no key decides what came later
	marked map[uint64]bool          // rows
	again  map[capabilities.ID]bool // forms on which the person votes as the agent too, beside a vote as another
	seen   map[string]bool          // the calls, by callOf, whose end was on the screen: no other is allowed

	away   string // why the node is not reached; "" if it is
	state  string // of the last action
	prompt *prompt
	busy   bool // a call is under way

	filled bool // the first messages have come
	held   int  // the hold that is under way; 0 if keys decide
	holds  int  // so far
	err    error
}

// justShown is the time for which a message that came into view by itself is not decided on. A key that is held repeats
// sooner, and prolongs it.
const justShown = 700 * time.Millisecond

// released ends a hold.
type released int

// hold keeps keys from deciding on a message that the person may not have seen yet.
func (m *model) hold() tea.Cmd {
	m.holds++
	m.held = m.holds
	ends := released(m.held)
	return tea.Tick(justShown, func(time.Time) tea.Msg { return ends })
}

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return tick() }

// ticked comes each second, so that times stay true.
type ticked time.Time

func tick() tea.Cmd {
	return tea.Tick(time.Second, func(at time.Time) tea.Msg { return ticked(at) })
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.Width, m.height = max(msg.Width, 20), max(msg.Height, 8)
	case ticked:
		m.screen.Now = time.Time(msg)
		return m, tick()
	case arrived:
		return m, m.add(msg)
	case released:
		if m.held == int(msg) {
			m.held = 0
		}
	case connected:
		m.away, m.state = "", ""
	case cutOff:
		m.away = msg.why
	case failed:
		m.err = msg.err
		return m, tea.Quit
	case done:
		return m, m.finish(msg)
	case tea.PasteMsg:
		if m.prompt != nil {
			m.prompt.text += msg.Content
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	}
	return m, nil
}

// add takes messages that are new or have changed. The selection stays on its message if that waits or the person has
// selected it. Otherwise it goes to the first that waits, which the list would hide behind those decided.
func (m *model) add(messages []view.Message) (held tea.Cmd) {
	first := !m.filled
	m.filled = true
	for _, e := range messages {
		if before := m.items[e.Number]; e.Number == m.chosen && before != nil && (before.AnswerRevision() != e.AnswerRevision() || !before.IsSecondVote() && e.IsSecondVote()) {
			held = m.hold()
		}
		if e.Dismissed {
			delete(m.items, e.Number)
			continue
		}
		m.items[e.Number] = &e
	}
	m.order = m.order[:0]
	for n := range m.items {
		m.order = append(m.order, n)
	}
	slices.SortFunc(m.order, func(a, b uint64) int {
		if x, y := waits(m.items[a]), waits(m.items[b]); x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(m.items[a].Priority.Rank()-m.items[b].Priority.Rank(), cmp.Compare(b, a))
	})
	m.group()
	for row := range m.marked {
		if len(m.callsOf(row)) == 0 { // they were settled, and nobody is to find the row marked
			delete(m.marked, row)
		}
	}
	e := m.selected()
	isLeft := e == nil || !m.begun || !m.moved && !m.whole && m.prompt == nil && !waits(e) && waits(m.items[m.order[0]])
	if isLeft && len(m.order) > 0 {
		m.begun = true
		m.choose(m.order[0])
		if !first {
			held = m.hold()
		}
	}
	return held
}

// group makes one row of the calls that are identical. It is at the place and with the number of the first that was
// asked.
func (m *model) group() {
	all := make([]view.Message, len(m.order))
	for i, n := range m.order {
		all[len(all)-1-i] = *m.items[n] // the earlier ones of those that wait come first
	}
	m.same = map[uint64][]uint64{}
	rows := m.order[:0]
	groups := view.Together(all)
	for i := range groups {
		g := groups[len(groups)-1-i]
		first := all[g[0]].Number
		rows = append(rows, first)
		for _, k := range g {
			m.same[first] = append(m.same[first], all[k].Number)
		}
		if slices.Contains(m.same[first], m.chosen) {
			m.chosen = first
		}
	}
	m.order = rows
}

// selected returns the selected message; nil if there is none.
func (m *model) selected() *view.Message { return m.items[m.chosen] }

func (m *model) choose(number uint64) { m.chosen, m.scroll, m.moved = number, 0, false }

// move selects the message that is so many places further down.
func (m *model) move(by int) {
	if len(m.order) == 0 {
		return
	}
	at := slices.Index(m.order, m.chosen) + by
	m.choose(m.order[min(max(at, 0), len(m.order)-1)])
	m.held, m.moved = 0, true
}

// done is the result of a call for messages.
type done struct {
	numbers []uint64
	said    string
	err     error
	settled []uint64 // of the numbers
}

// finish shows the result of a call, and selects the next message that waits.
func (m *model) finish(d done) tea.Cmd {
	m.busy = false
	for _, n := range d.settled {
		if e := m.items[n]; e != nil {
			e.AnswerNeeded = false // as the node is about to say
			delete(m.again, e.MessageID)
		}
		delete(m.marked, n)
	}
	if d.err != nil {
		m.state = m.screen.Paint(terminal.Wrong, terminal.Visible(terminal.Message(d.err)))
		return nil
	}
	m.state = d.said
	if slices.Contains(d.settled, m.chosen) {
		m.moved = false
	}
	for _, n := range m.order {
		if waits(m.items[n]) && slices.Contains(d.settled, m.chosen) && n != m.chosen {
			m.choose(n)
			return m.hold()
		}
	}
	return nil
}
