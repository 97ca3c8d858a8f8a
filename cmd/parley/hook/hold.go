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
	"parley/capabilities"
	"parley/gateway/api"
)

const holdAgain = 200 * time.Millisecond // between two attempts to reach a node that restarts

// errOldNode reports a node that holds no forms.
var errOldNode = parley.Refuse(parley.InvalidArgument, "the node that runs is of an earlier version").WithHint("parley restart has it run this version")

// hold keeps a connection to the node, which cancels the form when the connection ends, until the caller calls release.
// A node that restarts is asked again.
func (r *request) hold(ctx context.Context, form capabilities.ID) (release func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // a hook that is stopped cancels the form itself
	done := make(chan struct{})
	h := r.call.hold(r.as)
	h.Form, h.Reason = form, r.agent.Title+" waits no longer"
	go func() { // ends with ctx
		defer close(done)
		for ctx.Err() == nil {
			if _, err := r.options.exchange(ctx, http.MethodPost, api.HoldPath, h); errors.Is(err, errOldNode) { // ends with the node or with ctx
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(holdAgain):
			}
		}
	}()
	return func() { cancel(); <-done }
}

// withdraw cancels the approvals that the end of a call, a turn or a session leaves open.
func withdraw(ctx context.Context, agent Agent, call toolCall, o Options) {
	if call.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTime)
	defer cancel()
	h := call.hold(api.Acting{As: o.As})
	h.Reason = "it was decided at the prompt of " + agent.Title
	if call.tool == "" {
		h.Reason = agent.Title + " has ended its work"
	}
	_, _ = o.exchange(ctx, http.MethodDelete, api.HoldPath, h) // without a node nothing is open
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

// dialTime bounds the look whether there is a node.
const dialTime = time.Second

// connectionRefused is the error of Windows, which package syscall has under another number than the other systems'.
const connectionRefused = syscall.Errno(10061)

// unreached returns the error of a node that has not answered. It is NOT_RUNNING only where nothing takes connections on the
// socket: a node that hangs is there, and a person who lets calls run where there is none did not mean that.
func (o Options) unreached(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dialTime)
	defer cancel()
	conn, err := o.Dial(ctx)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was sent
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, connectionRefused):
		return parley.Refuse(parley.NotRunning, "no node runs on this state folder")
	}
	return parley.Refuse(parley.Timeout, "the node does not answer").WithHint("parley status and parley doctor say why")
}

// exchange sends a request to an address of the node's socket, and reads the response to its end.
func (o Options) exchange(ctx context.Context, method, path string, request any) ([]byte, error) {
	var body io.Reader // a node does not see its client go before it has read the body
	if request != nil {
		text, err := json.Marshal(request)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return o.Dial(ctx) }}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, "http://parley"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	got, err := transport.RoundTrip(req)
	if err != nil {
		return nil, o.unreached(ctx)
	}
	defer got.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(io.LimitReader(got.Body, api.MaxBody))
	if err != nil || got.StatusCode < http.StatusBadRequest {
		return text, err
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
