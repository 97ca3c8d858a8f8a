package bridge

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

// Options configure a Worker.
type Options struct {
	Name     string // of the bridge
	For      string // the address of the receiver
	Backend  api.Backend
	Agent    capabilities.ID                     // whose forms are told; zero for the host
	Acting   func(capabilities.ID) api.Principal // the principal that acts as an agent
	Receiver Receiver
	Base     func() string // the node's address for its receivers; "" for none
	File     string        // in which the worker keeps what it has told
	Log      *slog.Logger
	Now      func() time.Time
}

// Worker tells one receiver of the open forms of an agent.
type Worker struct {
	Options
	told *deliveries
}

// NewWorker returns a worker that continues from its file.
func NewWorker(o Options) (*Worker, error) {
	t, err := readDeliveries(o.File)
	return &Worker{Options: o, told: t}, err
}

// client returns the agent whose forms were told as the client of operations.
func (w *Worker) client() api.Client {
	return api.Within{Caller: w.Backend, Principal: w.Acting(w.told.Agent)}
}

// Run tells the receiver until ctx ends, or the receiver is gone.
func (w *Worker) Run(ctx context.Context) error {
	agent, err := w.Backend.Agent(ctx, w.Acting(w.Agent), "")
	if err != nil {
		return err
	}
	if w.told.For != w.For { // the name was another's before
		if err := w.forget(ctx); err != nil {
			return err
		}
	}
	defer w.listen(ctx)()
	changed := make(chan struct{}, 1)
	defer agent.Mail().Watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	for ctx.Err() == nil && !w.told.Gone {
		var wake capabilities.Time
		err := parley.Survive(func() (err error) {
			wake, err = w.round(ctx, agent)
			return err
		})
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("a bridge cannot look at the open forms", "bridge", w.Name, "error", err)
			wake = w.now().Add(waits[0])
		}
		timer := time.NewTimer(time.Hour)
		if wake != 0 {
			timer.Reset(max(wake.Std().Sub(w.Now()), 10*time.Millisecond))
		}
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil
}

// forget revokes the rights in all notices, and empties the record of them.
func (w *Worker) forget(ctx context.Context) error {
	for _, r := range w.told.Forms {
		w.revoke(ctx, r)
	}
	w.told.For, w.told.Agent, w.told.Gone, w.told.Forms = w.For, w.Agent, false, map[string]*record{}
	return w.told.write()
}

// Drop revokes the rights in the notices of a bridge that was removed, and removes its file.
func Drop(ctx context.Context, o Options) error {
	w, err := NewWorker(o)
	if err == nil {
		err = w.forget(ctx)
	}
	if err == nil {
		err = os.Remove(o.File)
	}
	return err
}

// IsGone reports whether the receiver of a bridge has ended it, by the file of the bridge's worker.
func IsGone(file string) (bool, error) {
	t, err := readDeliveries(file)
	return t.Gone, err
}

func (w *Worker) now() capabilities.Time { return capabilities.At(w.Now()) }

// round sends the notices that are due. It returns the time of the next one, or 0.
func (w *Worker) round(ctx context.Context, agent api.Agent) (wake capabilities.Time, err error) {
	open := map[string]bool{}
	for m, err := range agent.Mail().All(ctx, view.MessageFilter{All: true, Pending: true}) {
		if err != nil {
			return 0, err
		}
		id := m.MessageID.String()
		open[id] = true
		r := w.told.Forms[id]
		if r == nil || r.Revision != m.AnswerRevision() || r.Resting {
			next := &record{Revision: m.AnswerRevision(), Schedule: Schedule{Since: w.now()}}
			if r != nil {
				w.revoke(ctx, r)
				next.Mark, next.Turn = r.Mark, r.Turn
			}
			r = next
			w.told.Forms[id] = r
		}
		if !r.Told {
			wake = sooner(wake, w.try(ctx, &m, r))
		}
	}
	for id, r := range w.told.Forms {
		if open[id] || ctx.Err() != nil || w.told.Gone {
			continue
		}
		at, err := w.end(ctx, agent, id, r)
		if err != nil {
			return 0, err
		}
		wake = sooner(wake, at)
	}
	return wake, nil
}

func sooner(a, b capabilities.Time) capabilities.Time {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// end sends the notice that a form has ended. A form without an earlier notice is dropped.
func (w *Worker) end(ctx context.Context, agent api.Agent, id string, r *record) (capabilities.Time, error) {
	ref, err := capabilities.ParseFormRef(id)
	if err != nil {
		return 0, err
	}
	m, err := agent.Message(ctx, ref)
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil || m.Archived != nil:
		w.Log.Warn("a form that was told is not there, and is forgotten", "bridge", w.Name, "form", id, "error", err)
		delete(w.told.Forms, id)
		return 0, w.told.write()
	case m.Outcome == nil:
		return w.rest(ctx, &m, r), nil
	}
	if !r.Ending {
		if r.Tries == 0 && r.Mark == "" && !r.Resting {
			delete(w.told.Forms, id)
			return 0, w.told.write()
		}
		w.revoke(ctx, r)
		*r = record{Revision: r.Revision, Schedule: Schedule{Since: w.now()}, Mark: r.Mark, Ending: true}
	}
	at := w.try(ctx, &m, r)
	if r.Told {
		delete(w.told.Forms, id)
		return 0, w.told.write()
	}
	return at, nil
}

// rest sends the notice that a form waits for others than the host, in place of its buttons. One without an earlier notice has none.
func (w *Worker) rest(ctx context.Context, m *view.Message, r *record) capabilities.Time {
	n := noticeOf(m, "")
	if !n.Waits() || r.Resting && r.Told || !r.Resting && r.Tries == 0 && r.Mark == "" {
		return 0
	}
	if !r.Resting {
		w.revoke(ctx, r)
		*r = record{Revision: r.Revision, Schedule: Schedule{Since: w.now()}, Mark: r.Mark, Resting: true, Turn: r.Turn + 1}
	}
	return w.try(ctx, m, r)
}

// try sends a notice if one is due, and returns when the next is due. The try is on disk before it is made.
func (w *Worker) try(ctx context.Context, m *view.Message, r *record) capabilities.Time {
	if w.told.Gone || ctx.Err() != nil {
		return 0
	}
	n := noticeOf(m, w.Base())
	n.Mark = r.Mark
	n.Key = n.Form.ULID.String() + "." + strconv.FormatUint(r.Revision, 10) + "." + r.key()
	due, more := r.Due(n.Key, w.now())
	if !more {
		w.Log.Warn("a receiver has not taken what it was to be told, and is not told again", "bridge", w.Name, "form", n.Form.String())
		r.Told = true
		w.keep()
		return 0
	}
	if due != 0 {
		return due
	}
	if !r.Ending && !r.Resting {
		n.Buttons = w.buttons(ctx, m, n, r)
	}
	r.Begin()
	if !w.keep() {
		return w.now().Add(waits[0])
	}
	err := parley.Survive(func() error { return w.send(ctx, n, r) })
	switch {
	case err == nil:
		r.Told = true
	case errors.Is(err, ErrGone):
		w.told.Gone = true
		w.Log.Warn("a receiver wants no more, and the bridge ends", "bridge", w.Name)
	case ctx.Err() != nil:
		return 0
	default:
		w.Log.Warn("a receiver has not taken what it was told", "bridge", w.Name, "form", n.Form.String(), "try", r.Tries, "error", err)
		return r.After(n.Key, w.now())
	}
	w.keep()
	return 0
}

// keep writes the record of notices, and reports whether that succeeded.
func (w *Worker) keep() bool {
	err := w.told.write()
	if err != nil {
		w.Log.Error("what a bridge has told cannot be kept", "bridge", w.Name, "error", err)
	}
	return err == nil
}

func (w *Worker) send(ctx context.Context, n Notice, r *record) error {
	switch {
	case !r.Ending && !r.Resting:
		mark, err := w.Receiver.Tell(ctx, n)
		if err == nil {
			r.Mark = mark
		}
		return err
	case n.Waits() || n.Status == string(view.StatusAnswered) || n.Status == string(view.StatusDeclined):
		return w.Receiver.Settle(ctx, n)
	}
	return w.Receiver.Withdraw(ctx, n)
}

// labels are those of the buttons, by outcomes.
var labels = map[string]string{"once": "Allow once", "deny": "Deny", "answer": "Answer…", "decline": "Decline"}

// buttons returns the buttons of a form, with a right that it makes for them. It replaces a right of an earlier
// process, whose secret is lost.
func (w *Worker) buttons(ctx context.Context, m *view.Message, n Notice, r *record) []Button {
	outcomes := w.outcomes(m, n)
	if r.right != nil || len(outcomes) == 0 {
		return r.right
	}
	w.revoke(ctx, r)
	right, err := api.GrantAnswer.Do(ctx, w.client(), api.GrantAnswerRequest{
		FormRef: api.RefTo(m.MessageID.String()), Outcomes: outcomes, Uses: 1, Name: w.Name,
	})
	if err != nil {
		w.Log.Warn("a notice has no buttons", "bridge", w.Name, "error", err)
		return nil
	}
	r.Grant = right.Grant
	r.right = nil
	for _, o := range outcomes {
		b := Button{Label: labels[o], Outcome: o, Secret: right.Secret}
		if w.Base() != "" {
			b.URL = w.Base() + AnswerPath + right.Secret + "/" + o
		}
		r.right = append(r.right, b)
	}
	return r.right
}

// revoke ends the right in the buttons of what was told.
func (w *Worker) revoke(ctx context.Context, r *record) {
	if r.Grant.IsZero() {
		return
	}
	err := api.Revoke.Run(ctx, w.client(), api.RevokeRequest{Grant: r.Grant.String()})
	if err != nil && parley.CodeOf(err) != parley.NotPermitted { // it has been dropped
		w.Log.Warn("a right in a notice cannot be revoked", "bridge", w.Name, "grant", r.Grant.String(), "error", err)
		return
	}
	r.Grant, r.right = capabilities.ID{}, nil
}
