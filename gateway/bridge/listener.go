package bridge

import (
	"context"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
)

// Listener is a receiver that receives presses of buttons itself. It needs no address of the node for that.
type Listener interface {
	Receiver
	// Listen passes presses of buttons to host until ctx ends.
	Listen(ctx context.Context, host Host)
	// Fits reports whether a form with fields can be answered at the receiver.
	Fits(Notice) bool
}

// Host is the node, for a Listener.
type Host interface {
	// Form returns a form as it is now, without buttons.
	Form(ctx context.Context, form string) (Notice, error)
	// Answer answers a form by a right. A form that has ended is refused with the error that tells how.
	Answer(ctx context.Context, with api.AnswerWithRequest) error
}

// host is the node of a worker.
type host struct{ *Worker }

// Form implements Host.
func (h host) Form(ctx context.Context, form string) (Notice, error) {
	ref, err := capabilities.ParseFormRef(form)
	if err != nil {
		return Notice{}, err
	}
	agent, err := h.Backend.Agent(ctx, h.Acting(h.Agent), "")
	if err != nil {
		return Notice{}, err
	}
	m, err := agent.Message(ctx, ref)
	if err != nil {
		return Notice{}, err
	}
	return noticeOf(&m, h.Base()), nil
}

// Answer implements Host.
func (h host) Answer(ctx context.Context, with api.AnswerWithRequest) error {
	return api.AnswerWith.Run(ctx, h.client(), with)
}

// listen has a Listener listen, again if it panics. The function that it returns ends that.
func (w *Worker) listen(ctx context.Context) (stop func()) {
	l, ok := w.Receiver.(Listener)
	if !ok {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			err := parley.Survive(func() error { l.Listen(ctx, host{w}); return nil })
			if err == nil {
				return
			}
			w.Log.Error("a bridge has crashed while it listened", "bridge", w.Name, "error", err)
			select {
			case <-time.After(waits[0]):
			case <-ctx.Done():
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// outcomes returns the outcomes of a form's buttons. It returns none if the receiver cannot answer.
func (w *Worker) outcomes(m *view.Message, n Notice) []string {
	l, listens := w.Receiver.(Listener)
	switch {
	case !listens && w.Base() == "":
	case m.Digest != "" && n.Whole && n.MayAllow:
		return []string{"once", "deny"}
	case m.Digest != "": // nobody allows what they do not see
		return []string{"deny"}
	case listens && len(n.Fields) > 0 && l.Fits(n):
		return []string{"answer", "decline"}
	}
	return nil
}

// fieldsOf returns the fields of a form, if all that is shown of it is whole and safe.
func fieldsOf(m *view.Message, whole bool) []events.Field {
	if m.Type != "form" || !whole {
		return nil
	}
	for _, f := range m.Fields {
		texts := []string{f.Name, f.Label, f.Help}
		for _, o := range f.Options {
			texts = append(texts, o.Value, o.Label, o.Description)
		}
		for _, text := range texts {
			if Cut(text, maxText) != text {
				return nil
			}
		}
	}
	return m.Fields
}
