package actors

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"

	"parley/actors/runtime"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox"
	"parley/mailbox/rule"
)

// runtimeHost is the node as an agent's program sees it during a run. The program asks and sends as the agent.
type runtimeHost struct {
	agent *Agent
	run   *run

	mu     sync.Mutex
	closed bool
	asked  map[capabilities.ID]bool // forms that the run asked or took up
	taken  map[string]bool          // keys of calls, that the run asks about
	denied map[string]string        // calls that were declined in the run, and why
}

func newRuntimeHost(n *Node, agent capabilities.ID, r *run) *runtimeHost {
	return &runtimeHost{
		agent: &Agent{node: n, id: agent}, run: r,
		asked: map[capabilities.ID]bool{}, taken: map[string]bool{}, denied: map[string]string{},
	}
}

var errRunOver = errors.New("the run is over")

// close has whatever the program still says go unheard.
func (d *runtimeHost) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// forms gives the forms that the run asked or took up.
func (d *runtimeHost) forms() []capabilities.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make([]capabilities.ID, 0, len(d.asked))
	for id := range d.asked {
		all = append(all, id)
	}
	return all
}

func (d *runtimeHost) check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return errRunOver
	}
	return nil
}

// Write keeps output in the agent's timeline.
func (d *runtimeHost) Write(ctx context.Context, stream runtime.Stream, text string) error {
	if err := d.check(); err != nil {
		return err
	}
	return d.agent.Output().write(ctx, view.OutputPiece{Run: d.run.id, Message: d.run.prompt, Stream: string(stream), Text: text})
}

// Ask sends a question as a form from the agent, and waits for its end.
func (d *runtimeHost) Ask(ctx context.Context, q runtime.Question) (runtime.Answer, error) {
	if err := d.check(); err != nil {
		return runtime.Answer{}, err
	}
	ask := mailbox.RequestForm{To: q.To, Title: q.Title, Description: q.Description, Fields: q.Fields}
	if ask.To == "" {
		ask.To = capabilities.NameHost
	}
	if q.Timeout > 0 {
		ask.Deadline = d.agent.node.now().Add(q.Timeout)
	}
	form, err := call(ctx, d.agent, duringRun[capabilities.ID]{d.run, askQuestion{d, q.ID, ask}})
	if err != nil {
		return runtime.Answer{}, err
	}
	outcome, err := d.agent.Await(ctx, capabilities.FormID(form))
	if err == nil {
		err = d.outlasts(ctx, outcome)
	}
	if err != nil {
		return runtime.Answer{}, err
	}
	return programAnswer(outcome)
}

// askQuestion sends a question of the run as a form, or finds one that was sent before. It returns the form's ID.
type askQuestion struct {
	host     *runtimeHost
	question string
	form     mailbox.RequestForm
}

func (m askQuestion) handle(b *mailboxActor) (capabilities.ID, error) {
	m.form.Key = b.state.Runs.AskKey(m.question)
	sent, err := requestForm{RequestForm: m.form, reveal: true}.handle(b)
	if err == nil {
		m.host.note(sent.result.Form)
	}
	return sent.result.Form, err
}

func programAnswer(o view.Outcome) (runtime.Answer, error) {
	a := runtime.Answer{Status: string(o.Status), By: o.ByName, Note: o.Note}
	if a.By == "" && !o.By.IsZero() {
		a.By = o.By.String()
	}
	if o.Status != view.StatusAnswered {
		return a, nil
	}
	values, err := json.Marshal(o.Values)
	a.Values = values
	return a, err
}

// Approve asks whether the agent's program may make a call. One that was declined in this run is refused again.
func (d *runtimeHost) Approve(ctx context.Context, c runtime.Call) (runtime.Decision, error) {
	if err := d.check(); err != nil {
		return runtime.Decision{}, err
	}
	digest := mailbox.DigestCall(c.Tool, c.Input)
	d.mu.Lock()
	why, before := d.denied[digest]
	d.mu.Unlock()
	if before {
		return runtime.Decision{Reason: why}, nil
	}
	p, err := call(ctx, d.agent, duringRun[runPermission]{d.run, approveCall{d, c, digest}})
	if err != nil || p.Decided {
		return runtime.Decision{Allowed: p.Allowed, Always: p.Decided && p.lasts}, err
	}
	allowed, outcome, err := d.agent.AwaitApproval(ctx, capabilities.FormID(p.Form))
	if err == nil {
		err = d.outlasts(ctx, outcome)
	}
	if err != nil {
		return runtime.Decision{}, err
	}
	return d.decided(digest, allowed && outcome.Digest == digest, outcome), nil
}

// runPermission is a permission for a call of a run.
type runPermission struct {
	view.Permission
	lasts bool // its rule holds for later calls too
}

// approveCall asks about a call of the run, or takes up a form about it that no other call of the run has taken.
type approveCall struct {
	host   *runtimeHost
	call   runtime.Call
	digest string
}

func (m approveCall) handle(b *mailboxActor) (runPermission, error) {
	d := m.host
	d.mu.Lock()
	defer d.mu.Unlock()
	folder := folderOf(b.state.Runs.Program())
	key := b.state.CallKey(m.digest, folder, func(key string) bool { return d.taken[key] })
	command := mailbox.RequestApproval{Tool: m.call.Tool, Input: m.call.Input, Folder: folder, Key: key}
	asked, err := requestPermission{command, false}.handle(b)
	p := asked.result
	if err == nil && !p.Decided {
		d.taken[key], d.asked[p.Form] = true, true
	}
	return runPermission{p, b.state.Rules.Lasts(p.Rule)}, err
}

// folderOf returns the folder in which a program runs: its own, or else the node's. "" is one that cannot be told.
func folderOf(p events.ProgramSet) string {
	folder, err := filepath.Abs(p.Folder)
	if err != nil || rule.CheckFolder(folder) != nil {
		return ""
	}
	return folder
}

// duringRun is a request of a run's program. It is refused when the run is no longer the current one: the forms of the
// run were cancelled with it, and nobody would cancel later ones. A nil request only checks that.
type duringRun[T any] struct {
	run     *run
	request request[T]
}

func (m duringRun[T]) handle(b *mailboxActor) (v T, err error) {
	if now, running := b.state.Runs.Current(); !running || now.Run != m.run.id {
		return v, errRunOver
	}
	if m.request == nil {
		return v, nil
	}
	return m.request.handle(b)
}

// outlasts refuses an outcome by which a question of the run was taken back with the run itself. The program hears that
// it is to end, and not that it has an answer: with that it would go on.
func (d *runtimeHost) outlasts(ctx context.Context, o view.Outcome) error {
	if o.Status != view.StatusCancelled {
		return nil
	}
	_, err := call(ctx, d.agent, duringRun[none]{run: d.run})
	if errors.Is(err, errRunOver) {
		select { // it is stopped as soon as its end is durable, as that of the question is
		case <-d.run.ctx.Done():
		case <-ctx.Done():
		}
	}
	return err
}

// note adds a form to those of the run. The mailbox's actor calls it before the form is durable.
func (d *runtimeHost) note(form capabilities.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked[form] = true
}

// decided reads what was decided, and remembers what was declined.
func (d *runtimeHost) decided(call string, allowed bool, o view.Outcome) runtime.Decision {
	decision, reason := mailbox.ReadDecision(o.Values)
	out := runtime.Decision{
		Allowed: allowed, Always: decision == mailbox.Always || decision == mailbox.Never, Reason: reason,
		Ended: o.Status == view.StatusCancelled || o.Status == view.StatusExpired,
	}
	if out.Reason == "" {
		out.Reason = o.Note
	}
	if !allowed && !out.Ended {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.denied[call] = out.Reason
	}
	return out
}

// Send sends a message to someone whom the agent holds.
func (d *runtimeHost) Send(ctx context.Context, to, text string) error {
	if err := d.check(); err != nil {
		return err
	}
	_, err := call(ctx, d.agent, duringRun[[]events.Event]{d.run, decide{mailbox.PostMessage{To: to, Text: text}}})
	return err
}
