package watch

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/show"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/gateway/people"
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
	m := &model{ctx: ctx, node: o.Node, as: o.As, screen: o.Screen, list: list{items: map[uint64]*view.Message{}}, marked: map[uint64]bool{}, seen: map[string]bool{}, said: map[capabilities.ID][]show.Line{}, state: "connecting …"}
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

	list
	chosen  uint64 // the number of the selected message
	begun   bool   // one was selected
	scroll  int    // lines of it that are above the screen
	whole   bool   // it has the screen to itself
	helps   bool   // the keys are shown
	moved   bool   // the person has selected it
	below   int    // lines of it that are below the screen
	drawn   drawnCall
	said    map[capabilities.ID][]show.Line // of open forms that were selected: what was said of them, once it is known
	edited  *editedCall                     // shown in place of the selected call; nil for none
	pressed time.Time                       // when the person pressed a key last

	marked map[uint64]bool // rows
	seen   map[string]bool // the calls, by callOf, whose end was on the screen: no other is allowed

	away   string // why the node is not reached; "" if it is
	state  string // of the last action
	prompt *prompt
	busy   bool      // a call is under way
	called time.Time // when it began

	filled bool  // the first messages have come
	held   int   // the hold that is under way; 0 if keys decide
	holds  int   // so far
	armed  armed // the first step of allowing what is of high risk
	err    error
}

// justShown is the time for which a message that came into view by itself is not decided on. A key that is held repeats
// sooner, and prolongs it.
const justShown = 700 * time.Millisecond

// Times of what is done in two steps, and of a list that nobody touches.
const (
	armedFor = 8 * time.Second
	restless = 10 * time.Second // after a key, in which the rows stay where they are
)

// armed is the first of two steps: the calls that a second press allows, until a time.
type armed struct {
	calls string
	until time.Time
}

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

// flushing is the number of seconds for which the node's disk has been at one flush.
type flushing int

// lookAtDisk asks the node for how long a call may have waited for its disk.
func (m *model) lookAtDisk() tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(m.ctx, time.Second)
		defer cancel()
		status, err := api.Status.Do(ctx, m.node, api.NodeRequest{})
		if err != nil {
			return flushing(0) // the result of the call says why
		}
		return flushing(status.Journal.Flushing)
	}
}

// agents are those that the reader sees.
type agents struct {
	self capabilities.ID
	all  []view.AgentStatus
}

// discussed has what was said of a form.
type discussed struct {
	form  capabilities.ID
	lines []show.Line
}

// discuss asks for what was said of the selected form, if that is not known.
func discuss(m *model) tea.Cmd {
	e := m.selected()
	if e == nil || !e.AnswerNeeded {
		return nil
	}
	if _, known := m.said[e.MessageID]; known {
		return nil
	}
	form := *e
	m.said[form.MessageID] = nil // it is under way
	return func() tea.Msg {
		found, err := api.Search.Do(m.ctx, m.node, api.DiscussionOf(api.Acting{}, form.MessageID))
		return discussed{form.MessageID, show.Discussion(&form, found, err)}
	}
}

// Update implements tea.Model.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	next, cmd := take(m, msg)
	if more := discuss(m); more != nil {
		return next, tea.Batch(cmd, more)
	}
	return next, cmd
}

// take changes the state by a message.
func take(m *model, msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.Width, m.height = max(msg.Width, 20), max(msg.Height, 8)
	case ticked:
		m.screen.Now = time.Time(msg)
		if isAtRest(m) {
			m.arrange(m.now(), true)
		}
		if m.busy && m.now().Sub(m.called) >= terminal.LongCall {
			return m, tea.Batch(tick(), m.lookAtDisk())
		}
		return m, tick()
	case flushing:
		if m.busy && msg > 0 {
			m.state = m.screen.Paint(terminal.Wrong, "the disk "+terminal.SlowDisk(int(msg))+". What you decided may still happen")
		}
	case arrived:
		return m, m.add(msg)
	case agents:
		m.names = people.NamesOf(msg.self, msg.all)
		m.arrange(m.now(), false)
	case edited:
		return m, takeEdited(m, msg)
	case discussed:
		m.said[msg.form] = msg.lines
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
	case tried:
		msg.tell(m.prompt)
	case tea.PasteMsg:
		if m.prompt != nil {
			m.prompt.text += msg.Content
		}
	case tea.KeyPressMsg:
		m.pressed = m.now()
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
		if e.Type == "message" && !e.ReplyTo.IsZero() {
			clear(m.said)
		}
		if e.Dismissed {
			delete(m.items, e.Number)
			continue
		}
		m.items[e.Number] = &e
	}
	m.arrange(m.now(), first || isAtRest(m))
	m.chosen = m.rowOf(m.chosen)
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

// now returns the time.
func (m *model) now() time.Time {
	if m.screen.Now.IsZero() {
		return time.Now()
	}
	return m.screen.Now
}

// isAtRest reports whether the rows may move: nobody has pressed a key for a while, or decides something.
func isAtRest(m *model) bool {
	return m.prompt == nil && !m.busy && m.now().Sub(m.pressed) > restless
}

// selected returns the selected message; nil if there is none.
func (m *model) selected() *view.Message { return m.items[m.chosen] }

func (m *model) choose(number uint64) {
	m.chosen, m.scroll, m.moved, m.edited, m.armed = number, 0, false, nil, armed{}
}

// move selects the message that is so many places further down. Its keys work after a moment.
func (m *model) move(by int) tea.Cmd {
	if len(m.order) == 0 {
		return nil
	}
	at := slices.Index(m.order, m.chosen) + by
	m.choose(m.order[min(max(at, 0), len(m.order)-1)])
	m.moved = true
	return m.hold()
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
		}
		delete(m.marked, n)
	}
	if d.err != nil {
		m.state = m.screen.Paint(terminal.Wrong, terminal.Visible(terminal.Message(d.err)))
		return nil
	}
	if m.state = d.said; len(d.settled) == 0 {
		for _, n := range d.numbers { // it may be a question about it
			if e := m.items[n]; e != nil {
				delete(m.said, e.MessageID)
			}
		}
	}
	if !slices.Contains(d.settled, m.chosen) {
		return nil
	}
	m.moved = false
	at := max(slices.Index(m.order, m.rowOf(m.chosen)), 0)
	m.arrange(m.now(), true) // a decision opens the next row
	for ; at >= 0; at-- {
		if at < len(m.order) && waits(m.items[m.order[at]]) {
			m.choose(m.order[at])
			return m.hold()
		}
	}
	return nil
}
