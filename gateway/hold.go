package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"parley"
	"parley/actors"
	"parley/actors/runtime"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/httpd"
)

// holds are the forms that processes wait for at this moment. They are not stored: a process whose node was restarted
// holds its form again. What was allowed and has not ended is known from the log.
type holds struct {
	server  *Server
	started time.Time     // when processes could hold forms for the first time
	found   chan struct{} // closed once it is known what was held before that

	mu        sync.Mutex
	open      []*held                                             // whose processes wait, in the order of their beginning
	gone      map[string][]*held                                  // by guest, in the order in which their processes went
	abandoned map[capabilities.ID]func(ctx context.Context) error // what cancels an open form that no process may wait for any more
	ran       map[string][]time.Time                              // by guest, the messages of the last hour about calls that ran with another input
}

// held is a hold. One that ended with an allowed form stays. Without an ID of its call it does until that has ended, which is not the end
// of an equal call that still waits. With one it stays longer: the call may have been made with another input, and may be reported to
// have ended more than once.
type held struct {
	api.Hold
	coder runtime.Process // the coding agent that has started its process; zero for none that is known
	rule  string          // api.InputDigest of an input that a rule has allowed; "" for a form
	told  bool            // that the call was made with another input
}

// maxGone bounds the holds of one guest whose process has gone: those of calls that rules have allowed, and the others. A session that
// was killed does not say that its calls have ended.
const maxGone = 200

// add enters a hold, and returns it.
func (h *holds) add(one *held) *held {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = append(h.open, one)
	return one
}

// leave notes that the process of a hold has gone. It reports whether no other process waits for the form.
func (h *holds) leave(one *held) (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := slices.Index(h.open, one); at >= 0 { // else it was forgotten meanwhile
		h.open = slices.Delete(h.open, at, at+1)
		h.keep(one)
	}
	return !slices.ContainsFunc(h.open, func(o *held) bool { return o.Form == one.Form && o.As == one.As }) // another guest cannot wait for it
}

// keep adds a hold to those of its guest whose processes have gone. The caller holds h.mu.
func (h *holds) keep(one *held) {
	if h.gone == nil {
		h.gone = map[string][]*held{}
	}
	isLike := func(o *held) bool { return (o.rule == "") == (one.rule == "") }
	gone, alike := append(h.gone[one.As], one), 0
	for _, o := range gone {
		if isLike(o) {
			alike++
		}
	}
	if alike > maxGone {
		at := slices.IndexFunc(gone, isLike)
		gone = slices.Delete(gone, at, at+1)
	}
	h.gone[one.As] = gone
}

// forget removes a hold, and reports whether it was there.
func (h *holds) forget(one *held) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := slices.Index(h.open, one); at >= 0 {
		h.open = slices.Delete(h.open, at, at+1)
		return true
	}
	gone := h.gone[one.As]
	at := slices.Index(gone, one)
	switch {
	case at < 0:
		return false
	case len(gone) == 1:
		delete(h.gone, one.As)
	default:
		h.gone[one.As] = slices.Delete(gone, at, at+1)
	}
	return true
}

// over forgets a hold, and reports whether it was there. The form of a call without an ID counts no more, after a start either: its asker
// has dismissed it.
func (h *holds) over(ctx context.Context, one *held) bool {
	if !h.forget(one) {
		return false
	}
	if one.Use != "" || one.Call == "" || one.Form.IsZero() {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	acting, err := h.server.backend.Agent(ctx, h.server.caller(ctx), one.As)
	if err == nil {
		err = actors.AgentOf(h.server.node, acting.ID()).Dismiss(ctx, capabilities.FormID(one.Form))
	}
	if err != nil {
		h.server.monitor.Failed(ctx, "hold", err)
	}
	return true
}

// covered returns the holds that a choice includes and that its caller may end, those whose process has gone first. What is left of a
// call that has an ID is not among them: there is nothing to withdraw.
func (h *holds) covered(ctx context.Context, choice api.Hold) (covered []*held) {
	by := h.server.coders.caller(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, one := range h.gone[choice.As] {
		if one.Use == "" && choice.Covers(one.Hold) && mayEnd(by, one.coder) {
			covered = append(covered, one)
		}
	}
	for _, one := range h.open {
		if choice.Covers(one.Hold) && mayEnd(by, one.coder) {
			covered = append(covered, one)
		}
	}
	return covered
}

// mayChange refuses with NOT_PERMITTED to cancel or amend a form that a process of another coding agent than the caller's waits for. After
// a start that process may still be on its way back.
func (h *holds) mayChange(by runtime.Owner, m view.Message) error {
	if err := h.waitsElsewhere(by, m); err != nil {
		return err
	}
	left := takeUpTime - time.Since(h.started)
	if left <= 0 || !h.isOfBefore(m) {
		return nil
	}
	if coder := h.server.coding.Process(m.From, m.Origin.Session); coder.PID == 0 || !mayEnd(by, coder) {
		return parley.Refuse(parley.NotPermitted, "the node has just started, and another session of this folder may wait for the answer").
			WithHint("try again in %s: until then the process that waits has time to come back", left.Round(time.Second))
	}
	return nil
}

// mayHold refuses with NOT_PERMITTED to wait for a form that another session of the folder has asked, as long as that runs: its approval
// would outlive it.
func (h *holds) mayHold(ctx context.Context, hold api.Hold) error {
	by := h.server.coders.caller(ctx)
	if by.Agent.IsZero() {
		return nil
	}
	agent, err := h.server.backend.Agent(ctx, h.server.caller(ctx), hold.As)
	if err != nil {
		return err
	}
	m, err := agent.Message(ctx, capabilities.FormID(hold.Form))
	if err == nil {
		err = h.waitsElsewhere(by, m)
	}
	if err == nil && h.isOfBefore(m) && (m.Origin.Session != hold.Session || !mayEnd(by, h.server.coding.Process(m.From, m.Origin.Session))) {
		err = errOtherWaits()
	}
	return err
}

// waitsElsewhere refuses with NOT_PERMITTED a form that a process of another coding agent than the caller's waits for.
func (h *holds) waitsElsewhere(by runtime.Owner, m view.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.ContainsFunc(h.open, func(one *held) bool { return one.Form == m.MessageID && !mayEnd(by, one.coder) }) {
		return errOtherWaits()
	}
	return nil
}

func errOtherWaits() error {
	return parley.Refuse(parley.NotPermitted, "another session of this folder waits for the answer")
}

// isOfBefore reports whether a form was asked with a hold before the node's start, and no process has come back for it.
func (h *holds) isOfBefore(m view.Message) bool {
	return wasHeld(m) && m.Date.Std().Before(h.started) && !h.isHeld(m.MessageID)
}

// end cancels the forms that a choice includes. Of equal calls that are counted it ends one: a call that was allowed, or
// else one that still waits. It reports whether a call was made with another input than the one that was allowed.
func (h *holds) end(ctx context.Context, choice api.Hold) (other bool) {
	other = h.compare(ctx, choice)
	select {
	case <-h.found: // what was allowed before the node's start counts
	case <-ctx.Done():
	}
	counted := false
	for _, one := range h.covered(ctx, choice) {
		counts := choice.Counts(one.Hold)
		if counts && counted {
			continue
		}
		cancelled, allowed := h.withdraw(ctx, one.Hold, choice.Reason)
		if allowed && one.Use != "" { // it is compared with what ran
			continue
		}
		counted = (cancelled || allowed) && h.over(ctx, one) && counts || counted
	}
	return other
}

// withdrawTime bounds the cancellation of a form whose holder has gone.
const withdrawTime = 10 * time.Second

const withdrawAgain = 100 * time.Millisecond // between two attempts, where too many ends come at once

// serve holds a form until its client goes away, or cancels forms that are held.
func (h *holds) serve(w http.ResponseWriter, r *http.Request) {
	defer httpd.Survive(w, h.server.monitor, "hold")
	if !h.server.caller(r.Context()).IsLocal() {
		httpd.Refuse(w, parley.Refuse(parley.NotPermitted, "forms are held on the node's socket"), http.StatusForbidden)
		return
	}
	account := h.server.account(r.Context())
	if err := account.Take(api.KindWaits, 1); err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	defer account.Give(api.KindWaits, 1)
	var hold api.HeldAsk
	err := readBody(h.server, w, r, &hold)
	if err == nil && r.Method != http.MethodGet {
		_, err = h.server.backend.Agent(r.Context(), h.server.caller(r.Context()), hold.As)
	}
	switch {
	case err != nil:
		httpd.Refuse(w, err, 0)
	case r.URL.Path == api.HeldAskPath && r.Method == http.MethodPost:
		h.ask(w, r, hold)
	case r.URL.Path == api.HeldAskPath:
		w.Header().Set("Allow", "POST")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "forms are asked with POST"), http.StatusMethodNotAllowed)
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(api.Attendance{Attended: h.server.node.Attends(h.server.backend.Local().ID())}) // the client may have gone
	case r.Method == http.MethodDelete:
		if !h.end(r.Context(), hold.Hold) {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(api.CallEnded{Other: true}) // the client may have gone
	case r.Method == http.MethodPost:
		if err := h.mayHold(r.Context(), hold.Hold); err != nil {
			httpd.Refuse(w, err, 0)
			return
		}
		h.hold(w, r, hold.Hold, nil)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "forms are held with POST"), http.StatusMethodNotAllowed)
	}
}

// readBody reads the body of a request that is no operation.
func readBody(s *Server, w http.ResponseWriter, r *http.Request, into any) error {
	buf := s.bodies.Get()
	defer s.bodies.Put(buf)
	held := api.ChargeOf(s.account(r.Context()))
	defer held.Release()
	if err := s.bodies.ReadJSON(w, r, buf, held); err != nil {
		return err
	}
	if err := json.NewDecoder(bytes.NewReader(buf.Bytes())).Decode(into); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the request cannot be read: %v", err)
	}
	return nil
}

// ask asks, responds, and holds the form that is open then.
func (h *holds) ask(w http.ResponseWriter, r *http.Request, a api.HeldAsk) {
	endless(w) // the deadline of the body would end the request, and the form with it, where the disk is slow
	asked, err := h.asked(r.Context(), a)
	if err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	var first bytes.Buffer
	if err := httpd.Encode(&first, asked); err != nil {
		h.server.fail(w, r, "hold", err)
		return
	}
	if asked.Decided && asked.Allowed && a.Use != "" {
		h.leave(h.add(&held{Hold: a.Hold, coder: h.server.coders.caller(r.Context()).Coder(), rule: api.InputDigest(a.Approval.Input)}))
	}
	if asked.Form.IsZero() || asked.Outcome != nil {
		h.server.respond(w, first.Bytes())
		return
	}
	a.Form = asked.Form
	if err := h.mayHold(r.Context(), a.Hold); err != nil { // it was asked before, under the same key
		httpd.Refuse(w, err, 0)
		return
	}
	h.hold(w, r, a.Hold, first.Bytes())
}

// asked performs what a hold asks. It goes on when the client goes away: the form may be on its way to the disk, and is withdrawn
// by its ID then.
func (h *holds) asked(ctx context.Context, a api.HeldAsk) (asked view.Permitted, err error) {
	user := &toolUser{h.server, h.server.caller(ctx)}
	if err := user.principal.Account().Pace(); err != nil {
		return asked, err
	}
	ctx, cancel := api.UntilStopping(context.WithoutCancel(ctx), h.server.draining)
	defer cancel()
	switch {
	case (a.Approval == nil) == (a.Question == nil):
		return asked, parley.Refuse(parley.InvalidArgument, "either an approval or a question is asked")
	case a.Approval != nil:
		a.Approval.Origin = originOf(a.Hold)
		asked, err = api.Approve.Do(ctx, user, *a.Approval)
	default:
		a.Question.Origin = originOf(a.Hold)
		asked.Asked, err = api.Form.Do(ctx, user, *a.Question)
	}
	return asked, err
}

// hold responds with first and blocks until the client goes away, and cancels the form then. A node that stops leaves the form open.
func (h *holds) hold(w http.ResponseWriter, r *http.Request, hold api.Hold, first []byte) {
	one := h.add(&held{Hold: hold, coder: h.server.coders.caller(r.Context()).Coder()})
	endless(w)
	if first != nil {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(first)
	_ = http.NewResponseController(w).Flush() // a client that has gone away is noticed below
	ctx, cancel := api.UntilStopping(r.Context(), h.server.draining)
	defer cancel()
	if hold.Attended {
		if attended, is := h.handedOver(ctx, hold); is {
			_ = json.NewEncoder(w).Encode(api.Attendance{Attended: attended})
			_ = http.NewResponseController(w).Flush() // as above
		}
	}
	<-ctx.Done()
	if last := h.leave(one); !last || h.server.draining.Err() != nil {
		h.forget(one)
		return
	}
	beyond := context.WithoutCancel(r.Context())
	if _, allowed := h.withdraw(beyond, hold, hold.Reason); !allowed || hold.Call == "" && hold.Use == "" {
		h.over(beyond, one)
	}
}

// Whether somebody follows the host's mail is looked at for a while: pages and commands come back a moment after a node's start.
const (
	attendFor   = 5 * time.Second
	attendEvery = 100 * time.Millisecond
)

// handedOver blocks until the review of an approval leaves the decision to the asker's host. It reports whether somebody follows the host's
// mail then. It returns false if the approval is not reviewed, or was decided, and when ctx ends.
func (h *holds) handedOver(ctx context.Context, hold api.Hold) (attended, is bool) {
	acting, err := h.server.backend.Agent(ctx, h.server.caller(ctx), hold.As)
	if err != nil {
		return false, false
	}
	agent, changed := actors.AgentOf(h.server.node, acting.ID()), make(chan struct{}, 1)
	stop := agent.Mail().Watch(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer stop()
	for {
		m, err := agent.Message(ctx, capabilities.FormID(hold.Form))
		switch {
		case err == nil && (m.Review == nil || m.Outcome != nil):
			return false, false
		case err == nil && m.Review.How != "":
			for end := time.Now().Add(attendFor); !h.server.node.Attends(m.To) && time.Now().Before(end) && rests(ctx, attendEvery); {
			}
			return h.server.node.Attends(m.To), ctx.Err() == nil
		case err != nil && !passes(err):
			return false, false
		}
		var again <-chan time.Time
		if err != nil {
			again = time.After(attendEvery)
		}
		select {
		case <-ctx.Done():
			return false, false
		case <-changed:
		case <-again:
		}
	}
}

// endless takes the deadlines from a request that lasts.
func endless(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
}

// withdraw cancels the form of a hold. One that has ended already stays as it is: allowed says that its call may be made.
func (h *holds) withdraw(ctx context.Context, hold api.Hold, why string) (cancelled, allowed bool) {
	ctx, cancel := context.WithTimeout(ctx, withdrawTime)
	defer cancel()
	user := &toolUser{h.server, h.server.caller(ctx)}
	form := api.RefTo(hold.Form.String())
	end := func(ctx context.Context) error {
		return api.CancelForm.Run(ctx, user, api.EndRequest{Acting: hold.Acting, FormRef: form, Reason: why})
	}
	err := end(ctx)
	for parley.CodeOf(err) == parley.RateLimited && rests(ctx, withdrawAgain) { // many that are held at once may end at once
		err = end(ctx)
	}
	cancelled = err == nil
	if parley.CodeOf(err) == parley.AlreadyAnswered {
		var m view.Message
		m, err = api.GetMessage.Do(ctx, user, api.MessageRequest{Acting: hold.Acting, FormRef: form})
		allowed = err == nil && m.Outcome != nil && m.Outcome.Allowed
	}
	if passes(err) {
		h.server.monitor.Failed(ctx, "hold", err)
		h.abandon(hold.Form, end)
	}
	return cancelled, allowed
}

// rests waits a while, and reports whether ctx goes on.
func rests(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}
