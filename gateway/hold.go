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
	"parley/actors/view"
	"parley/gateway/api"
	"parley/gateway/httpd"
)

// holds are the forms that processes wait for at this moment. They are not stored: a process whose node was restarted
// holds its form again.
type holds struct {
	server *Server

	mu   sync.Mutex
	open []*held // in the order of their beginning
}

// held is a hold. One that ended with an allowed form stays until the call has ended, where calls are counted: its end is
// not that of an equal call which still waits.
type held struct {
	api.Hold
	gone bool // its process waits no longer
}

// maxGone bounds the holds whose process has gone. A session that was killed does not say that its calls have ended.
const maxGone = 1000

// add enters a hold.
func (h *holds) add(one *held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = append(h.open, one)
}

// leave notes that the process of a hold has gone. It reports whether no other process waits for the form.
func (h *holds) leave(one *held) (last bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	one.gone = true
	gone := 0
	for _, o := range h.open {
		if o.gone {
			gone++
		}
	}
	if gone > maxGone {
		at := slices.IndexFunc(h.open, func(o *held) bool { return o.gone })
		h.open = slices.Delete(h.open, at, at+1)
	}
	return !slices.ContainsFunc(h.open, func(o *held) bool { return !o.gone && o.Form == one.Form })
}

// forget removes a hold, and reports whether it was there.
func (h *holds) forget(one *held) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := slices.Index(h.open, one)
	if at >= 0 {
		h.open = slices.Delete(h.open, at, at+1)
	}
	return at >= 0
}

// covered returns the holds that a choice includes, those whose process has gone first.
func (h *holds) covered(choice api.Hold) (covered []*held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, gone := range []bool{true, false} {
		for _, one := range h.open {
			if one.gone == gone && choice.Covers(one.Hold) {
				covered = append(covered, one)
			}
		}
	}
	return covered
}

// end cancels the forms that a choice includes. Of equal calls that are counted it ends one: a call that was allowed, or
// else one that still waits.
func (h *holds) end(ctx context.Context, choice api.Hold) {
	counted := false
	for _, one := range h.covered(choice) {
		counts := choice.Counts(one.Hold)
		if counts && counted {
			continue
		}
		cancelled, allowed := h.withdraw(ctx, one.Hold, choice.Reason)
		counted = (cancelled || allowed) && h.forget(one) && counts || counted
	}
}

// withdrawTime bounds the cancellation of a form whose holder has gone.
const withdrawTime = 10 * time.Second

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
	var hold api.Hold
	err := readBody(h.server, w, r, &hold)
	if err == nil && r.Method != http.MethodGet {
		_, err = h.server.backend.Agent(r.Context(), h.server.caller(r.Context()), hold.As)
	}
	switch {
	case err != nil:
		httpd.Refuse(w, err, 0)
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(api.Attendance{Attended: h.server.node.Attends(h.server.backend.Local().ID())}) // the client may have gone
	case r.Method == http.MethodDelete:
		h.end(r.Context(), hold)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost:
		h.hold(w, r, hold)
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

// hold blocks until the client goes away, and cancels the form then. A node that stops leaves the form open.
func (h *holds) hold(w http.ResponseWriter, r *http.Request, hold api.Hold) {
	one := &held{Hold: hold}
	h.add(one)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
	w.WriteHeader(http.StatusOK)
	_ = control.Flush() // a client that has gone away is noticed below
	ctx, cancel := api.UntilStopping(r.Context(), h.server.draining)
	defer cancel()
	<-ctx.Done()
	last := h.leave(one)
	if last && h.server.draining.Err() == nil {
		_, allowed := h.withdraw(context.WithoutCancel(r.Context()), hold, hold.Reason)
		if allowed && hold.Call != "" && hold.Use == "" {
			return
		}
	}
	h.forget(one)
}

// withdraw cancels the form of a hold. One that has ended already stays as it is: allowed says that its call may be made.
func (h *holds) withdraw(ctx context.Context, hold api.Hold, why string) (cancelled, allowed bool) {
	ctx, cancel := context.WithTimeout(ctx, withdrawTime)
	defer cancel()
	user := &toolUser{h.server, h.server.caller(ctx)}
	form := api.RefTo(hold.Form.String())
	err := user.Call(ctx, "cancel_form", api.EndRequest{Acting: hold.Acting, FormRef: form, Reason: why}, nil)
	cancelled = err == nil
	if parley.CodeOf(err) == parley.AlreadyAnswered {
		var m view.Message
		err = user.Call(ctx, "get_message", api.MessageRequest{Acting: hold.Acting, FormRef: form}, &m)
		allowed = err == nil && m.Outcome != nil && m.Outcome.Allowed
	}
	if parley.CodeOf(err) == parley.Internal {
		h.server.monitor.Failed(ctx, "hold", err)
	}
	return cancelled, allowed
}
