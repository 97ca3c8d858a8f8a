package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"
	"time"

	"parley"
	"parley/actors/view"
	"parley/gateway/api"
)

// maxCut bounds the input of a call that has ended, in bytes, if no approval can have it.
const maxCut = 8000

const holdAgain = 200 * time.Millisecond // between two attempts to reach a node that restarts

// errOldNode reports a node that holds no forms.
var errOldNode = parley.Refuse(parley.InvalidArgument, "the node that runs is of an earlier version").WithHint("parley restart has it run this version")

// ask asks an approval or a question. The form that comes of it is held until the caller calls release: a connection is kept to the
// node, which cancels the form when it ends. It is the one of the request, so that a hook that is killed at any moment leaves no form
// open. A node that restarts is asked again.
func (r *request) ask(ctx context.Context, a api.HeldAsk) (asked view.Permitted, release func(), err error) {
	a.Hold = r.call.hold(r.as)
	a.Reason, a.Attended = r.agent.Title+" waits no longer", a.Approval != nil && a.Approval.Attended
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a hook that is stopped cancels the form itself
	unbound := context.AfterFunc(ctx, cancel)                       // once it knows of one
	body, err := r.options.open(whole, http.MethodPost, api.HeldAskPath, a)
	var more *json.Decoder
	if err == nil {
		more = json.NewDecoder(io.LimitReader(body, api.MaxBody))
		if err = more.Decode(&asked); err != nil {
			_ = body.Close() // only read from
			err = r.options.unreached(ctx)
		}
	}
	if !unbound() && err == nil {
		_ = body.Close()
		err = ctx.Err()
	}
	if err != nil {
		cancel()
		return view.Permitted{}, nil, err
	}
	a.Form = asked.Form
	done := make(chan struct{})
	go func() { // ends with whole, and with the body where no form is open
		defer close(done)
		r.attend(more, &a.Hold)
		_ = body.Close()
		if !asked.Form.IsZero() && asked.Outcome == nil {
			r.hold(whole, a.Hold)
		}
	}()
	return asked, func() { cancel(); <-done }, nil
}

// hold holds a form whose connection has ended, until ctx does.
func (r *request) hold(ctx context.Context, h api.Hold) {
	for ctx.Err() == nil {
		body, err := r.options.open(ctx, http.MethodPost, api.HoldPath, h)
		switch {
		case errors.Is(err, errOldNode):
			return
		case err == nil: // it ends with the node or with ctx
			r.attend(json.NewDecoder(io.LimitReader(body, api.MaxBody)), &h)
			_ = body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(holdAgain):
		}
	}
}

// attend reads the rest of the response to a hold. It notes that a review has left the decision to somebody who is not there, and has the
// hold ask for that once.
func (r *request) attend(body *json.Decoder, h *api.Hold) {
	for {
		var got api.Attendance
		if body.Decode(&got) != nil {
			return
		}
		if h.Attended = false; !got.Attended {
			select {
			case r.alone <- struct{}{}:
			default:
			}
		}
	}
}

// withdraw cancels the approvals that the end of a call, a turn or a session leaves open. It reports whether the call was made with
// another input than the one that was allowed.
func withdraw(ctx context.Context, agent Agent, call toolCall, o Options) (other bool) {
	if call.session == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTime)
	defer cancel()
	h := call.hold(api.Acting{As: o.As})
	h.Reason = endReason(agent, call, o)
	if call.tool != "" && call.id != "" && agent.takesInput(call) {
		if h.Input = string(call.input); checkInput(call) != nil {
			h.Input, h.Cut = parley.Cut(h.Input, maxCut), true
		}
	}
	text, _ := o.exchange(ctx, http.MethodDelete, api.HoldPath, h) // without a node nothing is open
	var got api.CallEnded
	return json.Unmarshal(text, &got) == nil && got.Other
}

// endReason says what is known of how a call ended that is open in Parley. Only a call that has run was allowed, and where there is a
// prompt it was there.
func endReason(agent Agent, call toolCall, o Options) string {
	switch {
	case call.event == SessionEnd:
		return "the session of " + agent.Title + " has ended"
	case call.tool == "":
		return agent.Title + " has ended its work"
	case call.event == PostToolUse && !agent.isAlone(o):
		return "it was decided at the prompt of " + agent.Title
	}
	return "the call has ended without a decision in Parley"
}

// attended reports whether somebody follows the mail of the node's host.
func (o Options) attended(ctx context.Context) (bool, error) {
	text, err := o.exchange(ctx, http.MethodGet, api.HoldPath, api.Hold{})
	if err != nil {
		return false, err
	}
	var got api.Attendance
	if json.Unmarshal(text, &got) != nil {
		return false, parley.Refuse(parley.Internal, "the node's answer cannot be read")
	}
	return got.Attended, nil
}

const (
	dialTime  = time.Second           // bounds the look whether there is a node
	startTime = 3 * time.Second       // for the socket of a node that starts to be there, or for one that ends to be gone
	dialAgain = 50 * time.Millisecond // between two looks
)

// connectionRefused is the error of Windows, which package syscall has under another number than the other systems'.
const connectionRefused = syscall.Errno(10061)

// isAbsent reports whether an attempt to connect has found that nothing takes connections on the socket.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, connectionRefused)
}

// connect connects to the node's socket. While a process has the state folder and nothing takes connections, it starts or ends, or its
// socket was removed: connect waits for a moment.
func (o Options) connect(ctx context.Context) (net.Conn, error) {
	for until := time.Now().Add(startTime); ; {
		conn, err := o.Dial(ctx)
		if err == nil || !isAbsent(err) || o.held() == nil || time.Now().After(until) {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(dialAgain):
		}
	}
}

// held returns the error of a state folder that a process has, though nobody connects to it, or whose lock cannot be read. It returns nil
// where nobody has the folder.
func (o Options) held() error {
	if o.Holder == nil {
		return nil
	}
	pid, held, err := o.Holder()
	switch {
	case err != nil:
		return parley.Refuse(parley.Timeout, "it cannot be told whether a node runs: %v", err).WithHint("parley doctor says more")
	case held:
		return parley.Refuse(parley.Timeout, "a node runs as process %d, and does not answer on its socket", pid).WithHint("parley status and parley doctor say why")
	}
	return nil
}

// unreached returns the error of a node that has not answered. It is NOT_RUNNING only where nothing takes connections on the
// socket and no process has the state folder: a node that hangs, or whose socket was removed, is there, and a person who lets calls run
// where there is none did not mean that.
func (o Options) unreached(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTime)
	defer cancel()
	conn, err := o.Dial(ctx)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was sent
	case isAbsent(err):
		if err := o.held(); err != nil {
			return err
		}
		return parley.Refuse(parley.NotRunning, "no node runs on this state folder")
	case parley.CodeOf(err) == parley.Timeout: // what answers is not the node
		return err
	}
	return parley.Refuse(parley.Timeout, "the node does not answer").WithHint("parley status and parley doctor say why")
}

// exchange sends a request to an address of the node's socket, and reads the response to its end.
func (o Options) exchange(ctx context.Context, method, path string, request any) ([]byte, error) {
	body, err := o.open(ctx, method, path, request)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // only read from
	return io.ReadAll(io.LimitReader(body, api.MaxBody))
}

// open sends a request to an address of the node's socket. The caller reads the response, and closes it. The connection ends with it.
func (o Options) open(ctx context.Context, method, path string, request any) (io.ReadCloser, error) {
	var body io.Reader // a node does not see its client go before it has read the body
	if request != nil {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false) // the input of a call is shown as it was sent
		if err := e.Encode(request); err != nil {
			return nil, err
		}
		body = &text
	}
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return o.connect(ctx) },
		DisableKeepAlives: true,
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://parley"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	got, err := transport.RoundTrip(req)
	if err != nil {
		return nil, o.unreached(ctx)
	}
	if got.StatusCode < http.StatusBadRequest {
		return got.Body, nil
	}
	defer got.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(io.LimitReader(got.Body, api.MaxBody))
	if err != nil {
		return nil, err
	}
	var failed api.Failure
	unread := json.Unmarshal(text, &failed) != nil || failed.Error == nil
	switch {
	case got.StatusCode == http.StatusNotFound && (unread || failed.Error.Code == parley.InvalidArgument): // it has no such address
		return nil, errOldNode
	case unread:
		return nil, parley.Refuse(parley.Internal, "the node answers %s", got.Status)
	}
	return nil, failed.Error
}
