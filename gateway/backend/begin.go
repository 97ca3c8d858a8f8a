package backend

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
)

// Begin performs an operation as Call does, for a caller without a goroutine, and calls done once. It returns false for an
// operation that needs a goroutine: then it has done nothing. Forms, answers and waits for an outcome need none. Cancel ends
// a wait, which calls done no more; it is nil where there is none.
//
// With asked, an operation that asks (form, request, approve) goes on with the wait for its outcome: where that comes later, asked
// is called first with what was asked, and done with the outcome. Neither function may block.
func (b *Backend) Begin(ctx context.Context, p api.Principal, operation string, r api.Request, asked func(resp any), done func(resp any, err error)) (cancel func(), begun bool) {
	if own := p.(*principal); own.below {
		report := done
		done = func(resp any, err error) { report(resp, own.fromBelow(err)) }
	}
	var ended func(view.Outcome, error)
	if asked != nil {
		ended = func(o view.Outcome, err error) { done(o, err) }
	}
	told := func(v any, open bool, err error) {
		if asked != nil && open && err == nil {
			asked(v)
			return
		}
		done(v, err)
	}
	toldOf := func(v view.Asked, err error) { told(v, v.Outcome == nil, err) }
	a, err := (*actors.Agent)(nil), error(nil)
	switch {
	case operation == string(api.Form):
		var req api.FormRequest
		if a, err = b.readFor(ctx, p, r, &req); err == nil {
			cancel = actors.BeginAsk(a, req.Form, toldOf, ended)
		}
	case operation == string(api.RequestCapability) && asked != nil:
		var req api.CapabilityRequest
		if a, err = b.readFor(ctx, p, r, &req); err == nil {
			cancel = a.Requests().Begin(req.Request, toldOf, ended)
		}
	case operation == string(api.Approve) && asked != nil:
		cancel, err = b.beginApprove(ctx, p, r, told, ended)
	case operation == string(api.RespondForm):
		var ref capabilities.FormRef
		var answer parley.Answer
		if a, ref, answer, err = b.readAnswer(ctx, p, r); err == nil {
			actors.BeginAnswer(ctx, a, ref, answer, func(o view.Outcome, err error) { done(o, err) })
		}
	case operation == string(api.Await):
		return b.beginAwait(ctx, p, r, done)
	default:
		return nil, false
	}
	if err != nil {
		done(nil, err)
	}
	if asked == nil {
		cancel = nil // it waits for nothing
	}
	return cancel, true
}

// beginApprove begins an approval, unless a lease of another denies the call.
func (b *Backend) beginApprove(ctx context.Context, p api.Principal, r api.Request, told func(v any, open bool, err error), ended func(view.Outcome, error)) (cancel func(), err error) {
	var req api.ApproveRequest
	if err := r.Read(&req); err != nil {
		return nil, err
	}
	a, caller, approval, err := approvalFor(ctx, b, p.(*principal), req)
	if err != nil {
		return nil, err
	}
	if denied, err := deniedByLease(ctx, caller, req.Approval); denied.Decided || err != nil {
		told(denied, false, err)
		return nil, nil
	}
	return actors.BeginApprove(a, approval, req.Attended, func(v view.Permitted, err error) {
		told(v, !v.Decided && v.Outcome == nil && !v.Form.IsZero(), err)
	}, ended), nil
}

// beginAwait begins a wait for the outcome of a form, which ends when its time has passed. It returns false for a wait for a
// state, which needs a goroutine.
func (b *Backend) beginAwait(ctx context.Context, p api.Principal, r api.Request, done func(resp any, err error)) (cancel func(), begun bool) {
	var req api.AwaitRequest
	a, err := b.readFor(ctx, p, r, &req)
	if err == nil && req.Until != "" && req.Until != api.UntilAsked {
		return nil, false
	}
	ref, wait, err := readAwait(req, err)
	if err != nil {
		done(nil, err)
		return nil, true
	}
	var asked *uint64
	if req.Until == api.UntilAsked {
		asked = &req.After
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
	drop := actors.BeginAwait(a, ref, asked, func(o view.Outcome, err error) {
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
	}, true
}

// readAwait returns the form of a wait, and how long it is, unless there is an error already.
func readAwait(req api.AwaitRequest, err error) (ref capabilities.FormRef, wait time.Duration, _ error) {
	if err == nil {
		err = checkAll(req)
	}
	if err == nil {
		ref, err = req.FormRef.Parse()
	}
	if err == nil {
		wait, err = waitTime(req.WaitMs)
	}
	return ref, wait, err
}

// readFor reads a request, and returns the agent that is to perform it.
func (b *Backend) readFor(ctx context.Context, p api.Principal, r api.Request, into acting) (*actors.Agent, error) {
	if err := r.Read(into); err != nil {
		return nil, err
	}
	return actorOf(ctx, b, p.(*principal), into, into.Actor())
}

// AfterRelease calls fn once after all functions that Begin has to call now: for one commit of the node these are many. Fn must not block.
func (b *Backend) AfterRelease(fn func()) { b.node.AfterRelease(fn) }

func (b *Backend) readAnswer(ctx context.Context, p api.Principal, r api.Request) (a *actors.Agent, ref capabilities.FormRef, answer parley.Answer, err error) {
	var req api.RespondFormRequest
	if a, err = b.readFor(ctx, p, r, &req); err == nil {
		ref, err = req.FormRef.Parse()
	}
	if err != nil {
		return nil, ref, answer, err
	}
	return actors.VotingAgain(a, req.SecondVote), ref, req.Answer, nil
}
