package backend

import (
	"context"

	"parley/actors"
	"parley/actors/view"
	"parley/gateway/api"
	"parley/mailbox/form"
)

// Begin performs an operation as Call does, for a caller without a goroutine, and calls done once. It returns false for an
// operation that needs a goroutine: then it has done nothing. Forms and answers need none. Done must not block.
func (b *Backend) Begin(ctx context.Context, p api.Principal, operation string, r api.Request, done func(resp any, err error)) bool {
	switch operation {
	case "form":
		a, ask, err := b.readAsk(ctx, p, r)
		if err != nil {
			done(nil, err)
			return true
		}
		a.BeginAsk(ask, func(asked view.Asked, err error) { done(asked, err) }, nil)
	case "respond_form":
		a, answer, err := b.readAnswer(ctx, p, r)
		if err != nil {
			done(nil, err)
			return true
		}
		a.BeginAnswer(ctx, answer, func(o view.Outcome, err error) { done(o, err) })
	default:
		return false
	}
	return true
}

// BeginAsk performs the operation form. It calls asked once. Unless that has an outcome or is an error, it calls ended once
// afterwards, with the outcome, or not at all if forget is called first. Neither may block.
func (b *Backend) BeginAsk(ctx context.Context, p api.Principal, r api.Request, asked func(view.Asked, error), ended func(view.Outcome, error)) (forget func()) {
	a, ask, err := b.readAsk(ctx, p, r)
	if err != nil {
		asked(view.Asked{}, err)
		return func() {}
	}
	return a.BeginAsk(ask, asked, ended)
}

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
