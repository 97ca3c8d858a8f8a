package actors

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"

	"parley"
	"parley/actors/runtime"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/realpath"
	"parley/mailbox"
	"parley/mailbox/rule"
	"parley/persistence"
)

// runtimeHost implements runtime.Host for one run of an agent's program. The program asks and sends as the agent.
type runtimeHost struct {
	agent *Agent
	run   *run

	mu     sync.Mutex
	closed bool
	asked  map[capabilities.ID]bool // forms that the run has asked or found
	taken  map[string]bool          // keys of the run's calls
	denied map[string]string        // reasons of the calls that were denied in the run
}

func newRuntimeHost(n *Node, agent capabilities.ID, r *run) *runtimeHost {
	return &runtimeHost{
		agent: &Agent{node: n, id: agent}, run: r,
		asked: map[capabilities.ID]bool{}, taken: map[string]bool{}, denied: map[string]string{},
	}
}

var errRunOver = errors.New("the run is over")

// close refuses all later requests of the program.
func (d *runtimeHost) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// forms returns the forms that the run has asked or found.
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

// Write stores output of the agent's program.
func (d *runtimeHost) Write(ctx context.Context, stream runtime.Stream, text string) error {
	if err := d.check(); err != nil {
		return err
	}
	return d.agent.Output().write(ctx, view.OutputPiece{Run: d.run.id, Message: d.run.prompt, Stream: string(stream), Text: text})
}

// Ask asks a form as the agent, and blocks until the form has ended.
func (d *runtimeHost) Ask(ctx context.Context, q runtime.Question) (runtime.Answer, error) {
	if err := d.check(); err != nil {
		return runtime.Answer{}, err
	}
	ask := mailbox.RequestForm{Form: parley.Form{To: q.To, Title: q.Title, Description: q.Description, Fields: q.Fields}}
	if ask.To == "" {
		ask.To = capabilities.NameHost
	}
	if q.Timeout > 0 {
		ask.Deadline = d.agent.node.clock().Add(q.Timeout)
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

// askQuestion asks a question of the run as a form, or finds the form of an earlier run. It returns the form's ID.
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

// Approve asks whether the agent's program may make a call. A call that was denied in this run is denied again, and one that would write
// what another agent has leased is denied.
func (d *runtimeHost) Approve(ctx context.Context, c runtime.Call) (runtime.Decision, error) {
	if err := d.check(); err != nil {
		return runtime.Decision{}, err
	}
	asks := c.Permission
	var err error
	if asks.Folder, err = read(ctx, d.agent, programFolder{}); err != nil {
		return runtime.Decision{}, err
	}
	switch err := d.heldToLeases(ctx, asks); {
	case parley.CodeOf(err) == parley.Leased:
		return runtime.Decision{Reason: err.Error()}, nil
	case err != nil:
		return runtime.Decision{}, err
	}
	p, err := call(ctx, d.agent, duringRun[runPermission]{d.run, approveCall{d, c}})
	if err == nil && p.denied {
		return runtime.Decision{Reason: p.why}, nil
	}
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
	return d.decided(p.call, allowed && outcome.Digest == p.digest, outcome), nil
}

// runPermission is a permission for a call of a run.
type runPermission struct {
	view.Permitted
	call   string // as Permission.Call has it, in the folder of the program
	digest string // of what was asked
	lasts  bool   // a rule covers later calls too
	denied bool   // it was denied in this run
	why    string
}

// approveCall asks for approval of a call of the run. It first looks for an earlier form that no other call of the run uses.
type approveCall struct {
	host *runtimeHost
	call runtime.Call
}

func (m approveCall) handle(b *mailboxActor) (runPermission, error) {
	d := m.host
	d.mu.Lock()
	defer d.mu.Unlock()
	asks := m.call.Permission
	asks.Folder = folderOf(b.state.Runs.Program())
	p := runPermission{call: asks.Call()}
	if p.why, p.denied = d.denied[p.call]; p.denied {
		return p, nil
	}
	question := asks.Digest() // which tells apart what is said of equal calls
	if m.call.DenyOnly {
		question += ":deny"
	}
	key, err := b.state.CallKey(question, func(key string) bool { return d.taken[key] })
	if err != nil {
		return p, err
	}
	command := mailbox.RequestApproval{Permission: asks, Key: key, DenyOnly: m.call.DenyOnly, Anew: true}
	asked, err := requestPermission{command: command}.handle(b)
	p.Permitted, p.lasts = asked.result, b.state.Rules.Lasts(asked.result.Rule)
	if err != nil || p.Decided {
		return p, err
	}
	d.taken[key], d.asked[p.Form] = true, true
	form, err := b.state.Mail.FindFormID(p.Form)
	if err != nil {
		return p, err
	}
	p.digest = form.Form.Digest()
	return p, nil
}

// programFolder returns the folder in which the agent's program runs; see folderOf.
type programFolder struct{}

func (programFolder) handle(b *mailboxActor) (string, error) {
	return folderOf(b.state.Runs.Program()), nil
}

// folderOf returns the folder in which a program runs: its own, or the node's if it has none. It returns "" if the folder is
// unknown.
func folderOf(p events.ProgramSet) string {
	folder, err := filepath.Abs(p.Folder)
	if err != nil || rule.CheckFolder(folder) != nil {
		return ""
	}
	return folder
}

// duringRun is a request of a run's program. It is refused once the run is no longer current: the run's forms were
// cancelled with it, and later ones would stay open. A nil request only checks that.
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

// outlasts refuses an outcome that cancelled the form together with its run. So the program gets its end and not an outcome,
// with which it would continue.
func (d *runtimeHost) outlasts(ctx context.Context, o view.Outcome) error {
	if o.Status != view.StatusCancelled {
		return nil
	}
	_, err := call(ctx, d.agent, duringRun[none]{run: d.run})
	if errors.Is(err, errRunOver) {
		select { // the run is stopped once its end is durable, like the form's outcome
		case <-d.run.ctx.Done():
		case <-ctx.Done():
		}
	}
	return err
}

// note adds a form to the run's forms. The mailbox's actor calls it before the form is durable.
func (d *runtimeHost) note(form capabilities.ID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked[form] = true
}

// decided returns the decision of an outcome, and records a denied call.
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

// MayWrite implements runtime.Host.
func (d *runtimeHost) MayWrite(ctx context.Context, file string) error {
	if err := d.check(); err != nil {
		return err
	}
	one, path, err := LeasesOf(d.agent).Blocking(ctx, realpath.All(file), nil)
	if err != nil || one.Lease == 0 {
		return err
	}
	return LeasedTo(one, path, d.agent.node.clock())
}

// MayRun implements runtime.Host.
func (d *runtimeHost) MayRun(ctx context.Context, command []string, folder string) error {
	if err := d.check(); err != nil {
		return err
	}
	input, err := json.Marshal(map[string]any{"command": command})
	if err != nil {
		return err
	}
	return d.heldToLeases(ctx, parley.Permission{Tool: "terminal", Input: string(input), Folder: folder})
}

// heldToLeases refuses with LEASED a call that would write what another agent has leased, as far as its input says.
func (d *runtimeHost) heldToLeases(ctx context.Context, p parley.Permission) error {
	leased := d.agent.node.leased.Load()
	if leased == nil {
		return nil
	}
	one, file, err := (*leased)(ctx, d.agent, &p)
	if err != nil || one.Lease == 0 {
		return err
	}
	return LeasedTo(one, file, d.agent.node.clock())
}

// Send sends a message to an agent that the program's agent has a reference to.
func (d *runtimeHost) Send(ctx context.Context, to, text string) error {
	if err := d.check(); err != nil {
		return err
	}
	_, err := call(ctx, d.agent, duringRun[[]events.Event]{d.run, decide{mailbox.PostMessage{To: to, Post: parley.Post{Text: text}}}})
	return err
}

// Output is the output of an agent's program.
type Output struct{ agent *Agent }

// Output returns the output of the agent's program.
func (a *Agent) Output() Output { return Output{a} }

// write adds to the agent's timeline, and returns when that is on disk.
func (o Output) write(ctx context.Context, p view.OutputPiece) error {
	p.At = o.agent.node.now()
	body, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err := o.agent.node.journal.AppendOutput(ctx, o.agent.id, body); err != nil {
		return err
	}
	o.agent.node.outputs.notify(o.agent.id, none{})
	return nil
}

// Since returns the output of the agent's program after a cursor, oldest first, at most limit pieces. Output that the
// node no longer keeps is left out.
func (o Output) Since(ctx context.Context, after uint64, limit int) ([]view.OutputPiece, error) {
	kept, err := o.agent.node.journal.Output(ctx, o.agent.id, after, limit)
	if err != nil {
		return nil, err
	}
	return readPieces(kept)
}

// Latest returns the latest output of the agent's program, oldest first, at most limit pieces, and the cursor after it;
// 0 if there is none. With the limit 0 it returns the cursor alone.
func (o Output) Latest(ctx context.Context, limit int) ([]view.OutputPiece, uint64, error) {
	kept, cursor, err := o.agent.node.journal.LatestOutput(ctx, o.agent.id, limit)
	if err != nil {
		return nil, 0, err
	}
	pieces, err := readPieces(kept)
	return pieces, cursor, err
}

// Before returns the last output of the agent's program before a cursor, oldest first, at most limit pieces.
func (o Output) Before(ctx context.Context, cursor uint64, limit int) ([]view.OutputPiece, error) {
	kept, err := o.agent.node.journal.OutputBefore(ctx, o.agent.id, cursor, limit)
	if err != nil {
		return nil, err
	}
	return readPieces(kept)
}

// Beyond blocks until the program has output after a cursor, and returns the cursor of the last. If ctx ends first, it
// returns the given cursor and no error.
func (o Output) Beyond(ctx context.Context, cursor uint64) (uint64, error) {
	err := o.await(ctx, func() (bool, error) {
		_, now, err := o.Latest(ctx, 0)
		ends := err == nil && now > cursor
		if ends {
			cursor = now
		}
		return ends, err
	})
	return cursor, err
}

func readPieces(kept []persistence.OutputPiece) ([]view.OutputPiece, error) {
	pieces := make([]view.OutputPiece, len(kept))
	for i, k := range kept {
		if k.Lost > 0 {
			continue // below, when the pieces around it are known
		}
		if err := json.Unmarshal(k.Body, &pieces[i]); err != nil {
			return nil, parley.Refuse(parley.Internal, "a piece of output cannot be read: %v", err)
		}
		pieces[i].Cursor = k.Cursor
	}
	for i, k := range kept {
		if k.Lost > 0 {
			pieces[i] = lostOutput(pieces, i, k)
		}
	}
	return pieces, nil
}

// lostOutput returns a piece that reports the loss of output between the pieces around it.
func lostOutput(pieces []view.OutputPiece, i int, k persistence.OutputPiece) view.OutputPiece {
	p := view.OutputPiece{Cursor: k.Cursor, Stream: "errors"}
	span := ""
	if i > 0 {
		span = " from " + pieces[i-1].At.String()
		p.Run, p.Message, p.At = pieces[i-1].Run, pieces[i-1].Message, pieces[i-1].At
	}
	if i+1 < len(pieces) {
		span += " to " + pieces[i+1].At.String()
		p.Run, p.Message, p.At = pieces[i+1].Run, pieces[i+1].Message, pieces[i+1].At
	}
	p.Text = "\nparley: output" + span + " was lost, because the store of output is damaged\n"
	return p
}

// await calls look after each piece of output until it reports true or an error, or ctx ends: that is no error.
func (o Output) await(ctx context.Context, look func() (bool, error)) error {
	more := make(chan struct{}, 1)
	defer o.agent.node.outputs.drop(o.agent.node.outputs.wait(o.agent.id, more))
	for {
		done, err := look()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && o.agent.node.life.Err() != nil {
			return errClosing() // and the store with it
		}
		if err != nil || done {
			return err
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil
		case <-o.agent.node.life.Done():
			return errClosing()
		}
	}
}
