package backend

import (
	"context"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/mailbox"
)

// Bounds of one waiting call. A client that wants to wait longer calls again.
const (
	defaultWait = 25 * time.Second
	minWait     = 50 * time.Millisecond // enough to look once, also on a busy node
	maxWait     = 50 * time.Second
)

func requestForm(ctx context.Context, a *actors.Agent, r api.FormRequest) (view.Asked, error) {
	return a.Ask(ctx, r.Form)
}

func requestCapability(ctx context.Context, a *actors.Agent, r api.CapabilityRequest) (view.Asked, error) {
	return a.Requests().Send(ctx, r.Request)
}

func await(ctx context.Context, a *actors.Agent, r api.AwaitRequest) (view.Outcome, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Outcome{}, err
	}
	if err := checkAll(r); err != nil {
		return view.Outcome{}, err
	}
	ctx, cancel, err := bounded(ctx, r.WaitMs)
	if err != nil {
		return view.Outcome{}, err
	}
	defer cancel()
	wait := a.Await
	switch r.Until {
	case "":
	case api.UntilAsked:
		wait = func(ctx context.Context, ref capabilities.FormRef) (view.Outcome, error) {
			return a.Mail().AwaitQuestion(ctx, ref, r.After)
		}
	default:
		wait = func(ctx context.Context, ref capabilities.FormRef) (view.Outcome, error) {
			return a.Mail().AwaitState(ctx, ref, r.Until, r.All)
		}
	}
	o, err := wait(ctx, ref)
	if err != nil && ctx.Err() != nil && waitPassed(err) {
		return view.Outcome{Status: view.StatusOpen}, nil
	}
	return o, err
}

// checkAll refuses a wait for the end of a form with all members of a group.
func checkAll(r api.AwaitRequest) error {
	if r.All && (r.Until == "" || r.Until == api.UntilAsked) {
		return parley.Refuse(parley.InvalidArgument, "all is for a wait for a state of a message").WithHint("give until: offered, shown or handled")
	}
	return nil
}

// bounded returns the context of one waiting call.
func bounded(ctx context.Context, waitMs *int64) (context.Context, context.CancelFunc, error) {
	wait, err := waitTime(waitMs)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	return ctx, cancel, nil
}

// waitTime returns how long a call waits that asks for so many milliseconds.
func waitTime(waitMs *int64) (time.Duration, error) {
	switch {
	case waitMs == nil:
		return defaultWait, nil
	case *waitMs < 0:
		return 0, parley.Refuse(parley.InvalidArgument, "waitMs %d is negative", *waitMs)
	}
	return min(max(time.Duration(min(*waitMs, maxWait.Milliseconds()))*time.Millisecond, minWait), maxWait), nil
}

// waitPassed reports whether err is the end of a wait by its time or by the stopping node.
func waitPassed(err error) bool {
	code := parley.CodeOf(err)
	return code == parley.Timeout || code == parley.NotRunning || api.IsContextEnd(err)
}

func respondForm(ctx context.Context, a *actors.Agent, r api.RespondFormRequest) (view.Outcome, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Outcome{}, err
	}
	return actors.VotingAgain(a, r.SecondVote).Answer(ctx, ref, r.Answer)
}

func saveDraft(ctx context.Context, a *actors.Agent, r api.SaveDraftRequest) (api.Done, error) {
	ref, err := draftOf(r.FormRef, r.To)
	if err != nil {
		return api.Done{}, err
	}
	switch {
	case r.Text == nil && r.To != "":
		return api.Done{}, parley.Refuse(parley.InvalidArgument, "the draft of a message needs a text")
	case r.Text == nil:
		return api.Done{}, a.Mail().SaveDraft(ctx, ref, r.Texts)
	case len(r.Texts) > 0:
		return api.Done{}, parley.Refuse(parley.InvalidArgument, "the draft of a message has a text, not texts of fields")
	}
	return api.Done{}, a.Mail().DraftMessage(ctx, mailbox.DraftMessage{To: r.To, Reply: ref, Text: *r.Text})
}

func fetchDraft(ctx context.Context, a *actors.Agent, r api.FetchDraftRequest) (view.Draft, error) {
	ref, err := draftOf(r.FormRef, r.To)
	if err != nil {
		return view.Draft{}, err
	}
	if r.To != "" || r.Reply {
		return a.Mail().MessageDraft(ctx, r.To, ref)
	}
	return a.Mail().Draft(ctx, ref)
}

func declineForm(ctx context.Context, a *actors.Agent, r api.DeclineRequest) (view.Outcome, error) {
	return decline(ctx, r, actors.VotingAgain(a, r.SecondVote).Decline)
}

func reject(ctx context.Context, a *actors.Agent, r api.DeclineRequest) (view.Outcome, error) {
	return decline(ctx, r, a.Requests().Reject)
}

func decline(ctx context.Context, r api.DeclineRequest, how func(context.Context, capabilities.FormRef, uint64, string) (view.Outcome, error)) (view.Outcome, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Outcome{}, err
	}
	return how(ctx, ref, r.Revision, r.Reason)
}

// draftOf returns the form or message that a draft is for. A draft of a message to an agent has none.
func draftOf(ref api.FormRef, to string) (capabilities.FormRef, error) {
	switch {
	case to == "":
		return ref.Parse()
	case ref != (api.FormRef{}):
		return capabilities.FormRef{}, parley.Refuse(parley.InvalidArgument, "a draft is for an agent or for a message, not for both")
	}
	return capabilities.FormRef{}, nil
}

func cancelForm(ctx context.Context, b *Backend, p *principal, r api.EndRequest) (view.Outcome, error) {
	a, ref, err := asker(ctx, b, p, &r, r.As)
	if err != nil {
		return view.Outcome{}, err
	}
	return a.Cancel(ctx, ref, r.Reason)
}

func amendForm(ctx context.Context, b *Backend, p *principal, r api.AmendFormRequest) (view.Message, error) {
	a, ref, err := asker(ctx, b, p, &r, r.As)
	if err != nil {
		return view.Message{}, err
	}
	return a.Amend(ctx, ref, r.Amendment)
}

// asker returns the agent that a request is for, and the form in it, which that agent may change: no process of another session of a coding
// agent waits for the answer.
func asker(ctx context.Context, b *Backend, p *principal, req referring, as string) (a *actors.Agent, ref capabilities.FormRef, err error) {
	if a, err = actorOf(ctx, b, p, req, as); err != nil {
		return nil, ref, err
	}
	ref, err = req.Reference().Parse()
	if err == nil && p.below {
		var m view.Message
		if m, err = a.Message(ctx, ref); err == nil {
			err = p.mayChange(m)
		}
	}
	return a, ref, err
}

func withdrawVote(ctx context.Context, a *actors.Agent, r api.MessageRequest) (api.Withdrawn, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return api.Withdrawn{}, err
	}
	queued, err := a.Withdraw(ctx, ref)
	return api.Withdrawn{Queued: queued}, err
}

// usualClaim is how long an agent is on a form that does not say it.
const usualClaim = 30 * time.Minute

func claimForm(ctx context.Context, a *actors.Agent, r api.ClaimFormRequest) (view.Claimed, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Claimed{}, err
	}
	long := usualClaim
	if r.ForMs != nil {
		if *r.ForMs < time.Minute.Milliseconds() || *r.ForMs > 24*time.Hour.Milliseconds() {
			return view.Claimed{}, parley.Refuse(parley.InvalidArgument, "a form is claimed for a minute at least, and 24 hours at most")
		}
		long = time.Duration(*r.ForMs) * time.Millisecond
	}
	if r.Release {
		long = 0
	}
	return a.Mail().Claim(ctx, ref, long, r.TakeOver)
}

func setAway(ctx context.Context, a *actors.Agent, r api.SetAwayRequest) (view.StandIns, error) {
	return a.SetAway(ctx, mailbox.SetAway{From: r.From, Until: r.Until, Delegate: r.To})
}

func setMember(ctx context.Context, a *actors.Agent, r api.SetMemberRequest) (view.StandIns, error) {
	return a.SetMember(ctx, mailbox.SetMember{Agent: r.Agent, In: !r.Remove})
}

func listStandIns(ctx context.Context, a *actors.Agent, _ api.StandInsRequest) (view.StandIns, error) {
	return a.StandIns(ctx)
}

func forwardForm(ctx context.Context, a *actors.Agent, r api.ForwardFormRequest) (api.Done, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return api.Done{}, err
	}
	return api.Done{}, a.Forward(ctx, ref, r.Recipient)
}

func resolve(ctx context.Context, a *actors.Agent, r api.ResolveRequest) (view.Outcome, error) {
	ref, err := r.FormRef.Parse()
	if err != nil {
		return view.Outcome{}, err
	}
	return a.Requests().Resolve(ctx, ref, r.Name, r.Narrow)
}
