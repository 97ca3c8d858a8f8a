package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/httpd"
)

// holds are the forms that processes wait for at this moment. They are not stored: a process whose node was restarted
// holds its form again.
type holds struct {
	server *Server

	mu   sync.Mutex
	open map[*api.Hold]struct{}
}

// add enters a hold. The caller calls end, which reports whether it was the last one of its form.
func (h *holds) add(held *api.Hold) (end func() bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open == nil {
		h.open = map[*api.Hold]struct{}{}
	}
	h.open[held] = struct{}{}
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.open, held)
		for other := range h.open {
			if other.Form == held.Form {
				return false
			}
		}
		return true
	}
}

// covered returns the holds that a choice includes.
func (h *holds) covered(choice api.Hold) (covered []api.Hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for held := range h.open {
		if choice.Covers(*held) {
			covered = append(covered, *held)
		}
	}
	return covered
}

// withdrawTime bounds the cancellation of a form whose holder has gone.
const withdrawTime = 10 * time.Second

// serve holds a form until its client goes away, or cancels forms that are held.
func (h *holds) serve(w http.ResponseWriter, r *http.Request) {
	defer httpd.Survive(w, h.server.monitor, "hold")
	if _, remote := r.Context().Value(principalKey{}).(api.Principal); remote {
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
	err := h.read(w, r, &hold)
	switch {
	case err != nil:
		httpd.Refuse(w, err, 0)
	case r.Method == http.MethodGet:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(api.Attendance{Attended: h.server.node.Attends(h.server.backend.Local().ID())}) // the client may have gone
	case r.Method == http.MethodDelete:
		for _, held := range h.covered(hold) {
			held.Reason = hold.Reason
			h.withdraw(r.Context(), held)
		}
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost:
		h.hold(w, r, hold)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "forms are held with POST"), http.StatusMethodNotAllowed)
	}
}

func (h *holds) read(w http.ResponseWriter, r *http.Request, hold *api.Hold) error {
	buf := h.server.bodies.Get()
	defer h.server.bodies.Put(buf)
	held := api.ChargeOf(h.server.account(r.Context()))
	defer held.Release()
	if err := h.server.bodies.ReadJSON(w, r, buf, held); err != nil {
		return err
	}
	if err := json.NewDecoder(bytes.NewReader(buf.Bytes())).Decode(hold); err != nil {
		return parley.Refuse(parley.InvalidArgument, "the hold cannot be read: %v", err)
	}
	return nil
}

// hold blocks until the client goes away, and cancels the form then. A node that stops leaves the form open.
func (h *holds) hold(w http.ResponseWriter, r *http.Request, held api.Hold) {
	last := h.add(&held)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	_ = control.SetWriteDeadline(time.Time{})
	w.WriteHeader(http.StatusOK)
	_ = control.Flush() // a client that has gone away is noticed below
	ctx, cancel := api.UntilStopping(r.Context(), h.server.draining)
	defer cancel()
	<-ctx.Done()
	if last() && h.server.draining.Err() == nil {
		h.withdraw(context.WithoutCancel(r.Context()), held)
	}
}

// withdraw cancels a form. One that has ended already stays as it is.
func (h *holds) withdraw(ctx context.Context, held api.Hold) {
	ctx, cancel := context.WithTimeout(ctx, withdrawTime)
	defer cancel()
	user := &toolUser{h.server, h.server.caller(ctx)}
	end := api.EndRequest{Acting: held.Acting, FormRef: api.RefTo(held.Form.String()), Reason: held.Reason}
	if err := user.Call(ctx, "cancel_form", end, nil); err != nil && parley.CodeOf(err) == parley.Internal {
		h.server.monitor.Failed(ctx, "hold", err)
	}
}
