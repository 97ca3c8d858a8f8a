package backend

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/mailbox/form"
)

// Begin performs an operation as Call does, for a caller without a goroutine, and calls done once. It returns false for an
// operation that needs a goroutine: then it has done nothing. Forms, answers and waits for an outcome need none. Cancel ends
// a wait, which calls done no more; it is nil for other operations. Done must not block.
func (b *Backend) Begin(ctx context.Context, p api.Principal, operation string, r api.Request, done func(resp any, err error)) (cancel func(), begun bool) {
	switch operation {
	case "form":
		a, ask, err := b.readAsk(ctx, p, r)
		if err != nil {
			done(nil, err)
			return nil, true
		}
		a.Async().Ask(ask, func(asked view.Asked, err error) { done(asked, err) }, nil)
	case "respond_form":
		a, answer, err := b.readAnswer(ctx, p, r)
		if err != nil {
			done(nil, err)
			return nil, true
		}
		a.Async().Answer(ctx, answer, func(o view.Outcome, err error) { done(o, err) })
	case "await":
		return b.beginAwait(ctx, p, r, done), true
	default:
		return nil, false
	}
	return nil, true
}

// beginAwait begins a wait for the outcome of a form, which ends when its time has passed.
func (b *Backend) beginAwait(ctx context.Context, p api.Principal, r api.Request, done func(resp any, err error)) (cancel func()) {
	a, ref, wait, err := b.readAwait(ctx, p, r)
	if err != nil {
		done(nil, err)
		return nil
	}
	var ended sync.Once // by the outcome, the end of the time, or cancel
	var forget atomic.Pointer[func()]
	passed := time.AfterFunc(wait, func() {
		ended.Do(func() {
			if f := forget.Load(); f != nil {
				(*f)()
			}
			done(view.Outcome{Status: view.StatusOpen}, nil)
		})
	})
	drop := a.Async().Await(ref, func(o view.Outcome, err error) {
		ended.Do(func() {
			passed.Stop()
			done(o, err)
		})
	})
	forget.Store(&drop)
	return func() {
		ended.Do(func() {})
		passed.Stop()
		drop()
	}
}

func (b *Backend) readAwait(ctx context.Context, p api.Principal, r api.Request) (a *actors.Agent, ref capabilities.FormRef, wait time.Duration, err error) {
	var req api.AwaitRequest
	if err = r.Read(&req); err == nil {
		a, err = b.agent(ctx, p.(*principal), req.As)
	}
	if err == nil {
		ref, err = req.FormRef.Parse()
	}
	if err == nil {
		wait, err = waitTime(req.WaitMs)
	}
	return a, ref, wait, err
}

// BeginAsk performs the operation form. It calls asked once. Unless that has an outcome or is an error, it calls ended once
// afterwards, with the outcome, or not at all if forget is called first. Neither may block.
func (b *Backend) BeginAsk(ctx context.Context, p api.Principal, r api.Request, asked func(view.Asked, error), ended func(view.Outcome, error)) (forget func()) {
	a, ask, err := b.readAsk(ctx, p, r)
	if err != nil {
		asked(view.Asked{}, err)
		return func() {}
	}
	return a.Async().Ask(ask, asked, ended)
}

// AfterRelease calls fn once after all functions that Begin and BeginAsk have to call now: for one commit of the node these
// are many. Fn must not block.
func (b *Backend) AfterRelease(fn func()) { b.node.AfterRelease(fn) }

func (b *Backend) readAsk(ctx context.Context, p api.Principal, r api.Request) (*actors.Agent, actors.Ask, error) {
	var req api.FormRequest
	if err := r.Read(&req); err != nil {
		return nil, actors.Ask{}, err
	}
	a, err := b.agent(ctx, p.(*principal), req.As)
	if err != nil {
		return nil, actors.Ask{}, err
	}
	ask, err := askOf(req)
	return a, ask, err
}

func (b *Backend) readAnswer(ctx context.Context, p api.Principal, r api.Request) (*actors.Agent, actors.Answer, error) {
	var req api.RespondFormRequest
	if err := r.Read(&req); err != nil {
		return nil, actors.Answer{}, err
	}
	a, err := b.agent(ctx, p.(*principal), req.As)
	if err != nil {
		return nil, actors.Answer{}, err
	}
	answer, err := answerOf(req)
	return a, answer, err
}

// askOf returns the ask of a request.
func askOf(r api.FormRequest) (actors.Ask, error) {
	fields, err := r.Fields.List(form.ParseFields)
	return actors.Ask{
		To: r.Recipient, Description: r.Description, Title: r.Title, Fields: fields,
		Name: r.Name, Key: r.Key, Deadline: r.Deadline, NoForward: r.NoForward,
	}, err
}

// answerOf returns the answer of a request.
func answerOf(r api.RespondFormRequest) (actors.Answer, error) {
	ref, err := r.FormRef.Parse()
	return actors.Answer{Form: ref, Digest: r.Digest, Values: r.Values, Texts: r.Texts}, err
}
