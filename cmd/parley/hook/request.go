package hook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/cmd/parley/terminal"
	"parley/gateway/api"
	"parley/gateway/client"
	"parley/mailbox"
)

// A hook waits as long as its agent lets it, which setup enters in the agent's settings: both give up on a hook after ten
// minutes otherwise, and drop the answer of one that took longer. So a hook ends before that.
const (
	Timeout = 24 * time.Hour        // that setup gives a hook
	Wait    = Timeout - time.Minute // that a hook waits for a decision
)

const (
	maxRequest   = 64 << 20               // bytes of a request; one after a call has the call's output too
	maxAttempts  = 5                      // that look for a follower of the inbox
	attemptEvery = 100 * time.Millisecond // a client that was just sent something takes a moment to ask again
	cancelTime   = 2 * time.Second        // to cancel a form
	formOutlives = 30 * time.Second       // how long a form stays open after a hook that was killed
	patience     = 15 * time.Second       // how long a wait outlasts its node: long enough for a restart
)

// Options say how a hook asks.
type Options struct {
	As         string // the name of the agent that asks; "" for the asker of the folder
	Timeout    time.Duration
	WaitAnyway bool // ask also where nobody follows the inbox
	SkipAsked  bool // on PermissionRequest, ask only about calls that PreToolUse leaves
	LeasesOnly bool // on PreToolUse, deny what another agent has leased, and leave every other call
	WhenAway   Away // what happens where nobody decides

	Unheard string // path of api.UnheardFolder; "" notes nothing
	Added   string // path of AddedFolder; "" notes nothing

	Tools []string // the names of the tools of Parley's MCP server

	Client func(client.Options) *client.Client         // opens a client of the node
	Dial   func(ctx context.Context) (net.Conn, error) // connects to the node's socket
	Holder func() (pid int, held bool, err error)      // returns the process of the node that has the state folder; nil: none has
	Env    func(string) (string, bool)
}

// Run reads one request of an agent and returns the response to print, nil for none, and its decision. A call that is
// left to the agent has neither a response nor a reason. An error says that the request cannot be read far enough to
// answer it. The caller ends with a status that is not zero. The entry in the agent's settings makes that a denial.
func (a Agent) Run(ctx context.Context, in io.Reader, o Options) (response *Response, d Decision, err error) {
	text, err := terminal.Read(in, "the request", maxRequest)
	if err != nil {
		return nil, left, err
	}
	call, err := a.readCall(text)
	if call.event == "" {
		return nil, left, err
	}
	defer func() {
		if crash := recover(); crash != nil { // which would end the program with the status that denies
			d = undecided("the hook crashed: %v", crash)
		}
		if d != left {
			d = a.settle(call, d, o)
			response = a.answer(call, d)
		}
	}()
	switch {
	case err != nil:
		return nil, undecided("%s", terminal.Message(err)), nil
	case call.event == DirectoryAdded:
		return nil, left, a.noteAdded(call.added[0], o)
	case call.carries():
		if call.event == SessionStart && call.source == "startup" {
			_ = o.forgetAdded(a) // what stays has more asked about
		}
		response, _ := a.carry(ctx, call, o)
		return response, left, nil
	case call.ends():
		return a.end(ctx, call, o), left, nil
	}
	return nil, a.ask(ctx, call, o), nil
}

// end withdraws what the end of a call, a turn or a session leaves open, and carries mail where one of these can.
func (a Agent) end(ctx context.Context, call toolCall, o Options) *Response {
	response, as := a.carry(ctx, call, o)
	if as == "" {
		o.Unheard = "" // it starts nothing now that a node would have to know
		done, err := a.register(ctx, call, o)
		if err != nil { // without a node nothing is open
			return response
		}
		as = done.Name
	}
	o.As = as
	if withdraw(ctx, a, call, o) && response == nil {
		response = &Response{SystemMessage: "Parley: this call ran with another input than the one that was allowed: a hook of others has changed it"}
	}
	return response
}

// ask decides about a call, or does what its event is for.
func (a Agent) ask(ctx context.Context, call toolCall, o Options) Decision {
	done, failed := a.register(ctx, call, o) // also for a call that is left: what it starts is below the agent
	if failed == nil {
		if done.Mail != nil && len(done.Mail.Offers) > 0 {
			a.prove(ctx, call, o, done.Mail.Offers)
		}
		o.As = done.Name
		if done.Leased != nil && !done.Leased.Maybe {
			return leasedTo(*done.Leased)
		}
	}
	switch {
	case o.LeasesOnly && call.event == PreToolUse:
		return left // also without a node: a lease is no gate
	case call.event == Elicitation && call.wanted.Server == ServerName:
		return left // whoever answers has the form already
	case a.asksItself(call) && call.event != PreToolUse && call.event != Elicitation:
		return undecided("%s is a question to whoever works with it", terminal.Visible(call.tool))
	case call.event == PreToolUse && a.isOwnTool(call, o):
		return Decision{Decided: true, Allowed: true, Reason: "the agent's own mail in Parley"}
	case failed != nil && parley.CodeOf(failed) != parley.NotRunning:
		return undecided("%s", terminal.Message(failed))
	}
	if startsSubagent(call.tool) {
		var err error
		call.added, err = o.addedTo(a)
		call.hidden = err != nil
	}
	asks := a.asksItself(call)
	leaves := !asks && a.leaves(call, o.Env)
	if leaves && call.event == PreToolUse && done.Leased != nil {
		if !a.isAlone(o) && o.WhenAway != Deny { // its own prompt, at which it asks, and Parley asks beside it
			return undecided("%s", mayBeLeased(*done.Leased))
		}
		leaves = false
	}
	if leaves && call.event == PreToolUse && a.unasked != nil {
		if why := a.unasked(call, a.workFolder(call, o.Env), o.Env); why != "" {
			if o.WhenAway != Deny && o.WhenAway != Mode { // its own prompt, at which it asks, and Parley asks beside it
				return undecided("%s", why)
			}
			leaves = false
		}
	}
	if leaves && call.event == PreToolUse || !leaves && call.event == PermissionRequest && o.SkipAsked {
		return left
	}
	if !asks && call.event != Elicitation {
		if err := checkInput(call); err != nil { // whoever is there: the mode does not allow it
			return undecided("%s", terminal.Message(err))
		}
	}
	if failed != nil {
		return away("%s", terminal.Message(failed))
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	switch {
	case call.event == Elicitation:
		return answerElicitation(ctx, a, call, o)
	case asks:
		return answerQuestions(ctx, a, call, o)
	}
	d := decide(ctx, a, call, o)
	if call.tool == planTool && a.edits && d.Allowed {
		if hasOtherPlan(call) {
			return Decision{Decided: true, Reason: "the plan was allowed in Parley, but its file has been changed since it was shown: present the plan again"}
		}
		d.Input = string(call.input) // an allow without it leaves the plan at the agent's prompt
	}
	return d
}

// checkInput refuses what the node would: a call that cannot be shown in full.
func checkInput(call toolCall) error {
	var sent bytes.Buffer
	if err := json.Compact(&sent, call.input); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the input is no JSON")
	}
	return mailbox.CheckInput(call.tool, sent.String())
}

// decide asks for approval of a call and waits for the decision.
func decide(ctx context.Context, agent Agent, call toolCall, o Options) Decision {
	r := newRequest(agent, call, o)
	defer r.client.Close()
	permission, release, err := r.send(ctx)
	if err != nil {
		return r.failed(ctx, err)
	}
	defer release()
	switch {
	case permission.Leased != nil:
		return leasedTo(api.LeasedFile{Lease: *permission.Leased})
	case permission.Decided:
		return byRule(permission)
	case permission.Unattended:
		r.cancel(permission.Form, "nobody was there")
		return away("nobody follows the inbox")
	}
	return r.await(ctx, permission.Form)
}

// request is the approval that a hook asks for one call.
type request struct {
	options Options
	client  *client.Client // makes a call once
	agent   Agent
	call    toolCall
	as      api.Acting
	alone   chan struct{} // a review has left the decision to somebody who is not there; has room for one
}

// newRequest returns a request. The caller closes its client.
func newRequest(agent Agent, call toolCall, o Options) *request {
	return &request{options: o, client: o.Client(client.Options{Patience: -1}), agent: agent, call: call, as: api.Acting{As: o.As}, alone: make(chan struct{}, 1)}
}

// send asks for the approval, which is held until the caller calls release. It tries more than once to find a follower of the inbox.
func (r *request) send(ctx context.Context) (p view.Permitted, release func(), err error) {
	req := api.ApproveRequest{Acting: r.as, Approval: parley.Approval{
		Tool:     r.call.tool,
		Input:    r.call.input,
		Folder:   r.agent.callFolder(r.call, r.options.Env),
		Part:     r.call.partName(),
		Key:      r.call.key(r.agent),
		Attended: !r.options.WaitAnyway,
		Editable: r.agent.takesInput(r.call),
	}}
	if r.options.Timeout > 0 {
		req.Deadline = capabilities.At(time.Now().Add(r.options.Timeout + formOutlives))
	}
	key, again := req.Key, 0
	for attempt := 1; ; attempt++ {
		p, release, err = r.ask(ctx, api.HeldAsk{Approval: &req})
		if err == nil && endedUndecided(p) && again < maxAgain {
			release()
			again++
			req.Key = fmt.Sprintf("%s-%d", key, again)
			continue
		}
		if err != nil || !p.Unattended || attempt >= maxAttempts {
			return p, release, err
		}
		release()
		select {
		case <-ctx.Done():
			return p, nil, ctx.Err()
		case <-time.After(attemptEvery):
		}
	}
}

// maxAgain bounds how often a call is asked about again: a session may be resumed with the same call, whose question ended with its hook.
const maxAgain = 100

// endedUndecided reports whether a question that was asked before has ended without a decision.
func endedUndecided(p view.Permitted) bool {
	return p.Outcome != nil && (p.Outcome.Status == view.StatusCancelled || p.Outcome.Status == view.StatusExpired)
}

// await waits for the decision. It cancels a form that nobody has answered in time: the agent's own prompt asks it then,
// and a form that expires approves nothing.
func (r *request) await(ctx context.Context, form capabilities.ID) Decision {
	o, d := r.awaitOutcome(ctx, form)
	if o.Status == "" {
		return d
	}
	return decisionOf(o)
}

// awaitOutcome waits for the outcome of a form, which it cancels as await does. Without an outcome it returns the
// decision.
func (r *request) awaitOutcome(ctx context.Context, form capabilities.ID) (view.Outcome, Decision) {
	waits, end := context.WithCancel(ctx)
	defer end()
	alone := make(chan bool, 1)
	go func() { // ends with waits
		select {
		case <-r.alone:
			alone <- true
			end()
		case <-waits.Done():
			alone <- false
		}
	}()
	o, err := r.outcome(waits, form, r.options.Timeout)
	end()
	if err == nil && o.Status == view.StatusAsked {
		return r.askedBack(form, o)
	}
	if err == nil {
		return o, undecided("the question was %s", o.Status)
	}
	d, why := r.failed(ctx, err), r.agent.Title+" waits no longer"
	switch code := parley.CodeOf(err); {
	case <-alone && ctx.Err() == nil:
		d, why = away("its reviewer has left it to the host, and nobody follows the inbox"), "nobody was there"
	case code == parley.Timeout && ctx.Err() == nil:
		d, why = away("nobody has decided within %s", capabilities.Span(r.options.Timeout)), "nobody has decided in time"
	case ctx.Err() != nil && r.agent.wakes != nil && r.agent.wakes(r.options.Env): // by Esc, or with its terminal: not by an answer at a prompt
		why = "it was ended in the terminal of " + r.agent.Title
	case d.Away: // somebody may look at the question: it is not the mode's any more
		d = undecided("the node has ended while the question was open")
	}
	if late, ok := r.cancel(form, why); ok {
		return late, d
	}
	return view.Outcome{}, d
}

// askedBack ends an approval on which the person has asked back: a model that is held cannot reply. It is denied with the
// question, and may make the call again once it has replied. An answer that came first counts.
func (r *request) askedBack(form capabilities.ID, o view.Outcome) (view.Outcome, Decision) {
	if late, ok := r.cancel(form, "you asked back"); ok {
		return late, left
	}
	return view.Outcome{}, Decision{Decided: true, Reason: fmt.Sprintf("%s asks before deciding: %s. The question is among your mail in Parley. "+
		"Reply to it, then make the call again.", terminal.Visible(cmp.Or(o.ByName, "the person")), terminal.Quoted(o.Note))}
}

// outcome waits for a form's outcome, without limit if timeout is 0.
func (r *request) outcome(ctx context.Context, form capabilities.ID, timeout time.Duration) (view.Outcome, error) {
	waiter := r.options.Client(client.Options{As: r.as.As, Patience: patience, Known: true})
	defer waiter.Close()
	var (
		o   client.Outcome
		err error
	)
	o, err = client.AwaitQuestion(ctx, waiter, client.ID(form.String()), 0, timeout)
	if err != nil {
		return view.Outcome{}, err
	}
	return readOutcome(o.Raw)
}

// cancel cancels a form, so that nobody answers a question that is asked elsewhere. It returns the outcome of an answer
// that came first.
func (r *request) cancel(form capabilities.ID, why string) (view.Outcome, bool) {
	if form.IsZero() {
		return view.Outcome{}, false
	}
	ctx, done := context.WithTimeout(context.Background(), cancelTime) // the hook's own context may have ended
	defer done()
	err := api.CancelForm.Run(ctx, r.client, api.EndRequest{Acting: r.as, FormRef: api.RefTo(form.String()), Reason: why})
	if parley.CodeOf(err) != parley.AlreadyAnswered {
		return view.Outcome{}, false
	}
	o, err := r.outcome(ctx, form, cancelTime)
	return o, err == nil
}

// failed returns the decision after an error: none.
func (r *request) failed(ctx context.Context, err error) Decision {
	if ctx.Err() != nil {
		return undecided("the hook was stopped")
	}
	if parley.CodeOf(err) == parley.NotRunning {
		err = r.options.unreached(ctx)
	}
	switch {
	case parley.CodeOf(err) == parley.NotRunning, errors.Is(err, errNobody):
		return away("%s", terminal.Message(err))
	}
	return undecided("%s", terminal.Message(err))
}

// byRule returns the decision of a standing rule or a mandate.
func byRule(p view.Permitted) Decision {
	if p.Allowed && !p.Mandate.IsZero() {
		return Decision{Decided: true, Allowed: true, Reason: "within a mandate in Parley"}
	}
	if p.Allowed {
		return Decision{Decided: true, Allowed: true, Reason: "always allowed, by a rule in Parley"}
	}
	return Decision{Decided: true, Reason: "never allowed, by a rule in Parley"}
}

// readOutcome reads the outcome of a form.
func readOutcome(raw json.RawMessage) (o view.Outcome, err error) {
	if err := json.Unmarshal(raw, &o); err != nil {
		return o, parley.Refuse(parley.Internal, "the node's answer cannot be read: %v", err)
	}
	return o, nil
}

// decisionOf returns the decision of an approval's outcome. Only an answer decides. A cancelled or expired form does
// not.
func decisionOf(o view.Outcome) Decision {
	choice, reason := o.Text("decision"), o.Text("reason")
	switch {
	case o.Status == view.StatusDeclined:
		return Decision{Decided: true, Reason: withReason("declined in Parley", o.Note)}
	case o.Status != view.StatusAnswered:
		return undecided("the question was %s", o.Status)
	case o.Allowed && o.EditedInput != "":
		return Decision{Decided: true, Allowed: true, Reason: withReason("allowed in Parley with another input", reason), Input: o.EditedInput}
	case o.Allowed:
		return Decision{Decided: true, Allowed: true, Reason: withReason("allowed in Parley", reason)}
	case choice == mailbox.Deny, choice == mailbox.Never:
		return Decision{Decided: true, Reason: withReason("denied in Parley", reason)}
	}
	return undecided("the decision %q is none of the host's", choice)
}

func withReason(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}
