package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"syscall"

	"parley"
)

// Client calls a node's operations on its Unix socket. It may be used by many goroutines.
type Client struct{ connections connections }

// NewClient makes a client of the node whose socket is at path. It connects when it is used.
func NewClient(path string) *Client { return &Client{connections{path: path}} }

// Close gives up the connections that are not in use.
func (c *Client) Close() { c.connections.close() }

// Call performs an operation. resp may be nil. Every error is a *parley.Error: the node's own, or
// NOT_RUNNING if there is none.
func (c *Client) Call(ctx context.Context, operation string, req, resp any) error {
	err := c.call(ctx, operation, req, resp)
	if cut, ok := errors.AsType[*cutOff](err); ok {
		return cut.refusal()
	}
	return err
}

func (c *Client) call(ctx context.Context, operation string, req, resp any) error {
	var text bytes.Buffer
	if err := encode(&text, req); err != nil { // what is shown as it was given has no escapes that it had not
		return fmt.Errorf("encode the request: %w", err)
	}
	body := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	if len(body) > MaxBody {
		return tooLarge()
	}
	answer, err := c.connections.exchange(ctx, operation, body)
	if err != nil {
		return connectionError(ctx, operation, err)
	}
	if answer.status != http.StatusOK {
		err := refusal(answer.status, answer.body)
		if parley.CodeOf(err) == parley.NotRunning { // it was there, to say that it ends
			return &cutOff{operation: operation, cause: err}
		}
		return err
	}
	if resp == nil {
		return nil
	}
	if raw, ok := resp.(*json.RawMessage); ok {
		*raw = bytes.TrimSpace(answer.body)
		return nil
	}
	if err := json.Unmarshal(answer.body, resp); err != nil {
		return fmt.Errorf("the node's answer to %s cannot be read: %w", operation, err)
	}
	return nil
}

// refusal reads the error in a response.
func refusal(status int, body []byte) error {
	var f Failure
	if err := json.Unmarshal(body, &f); err != nil || f.Error == nil {
		return parley.Refuse(parley.Internal, "the node answered with HTTP status %d and no error", status)
	}
	return f.Error
}

// cutOff is the end of a node, or of the connection to it, in the middle of a call: there was a node.
type cutOff struct {
	operation string
	cause     error
}

func (e *cutOff) Error() string { return fmt.Sprintf("%s: %v", e.operation, e.cause) }
func (e *cutOff) Unwrap() error { return e.cause }

func (e *cutOff) refusal() error {
	if said, ok := errors.AsType[*parley.Error](e.cause); ok {
		return said
	}
	return parley.Refuse(parley.NotRunning, "the node went away before it answered; whether %s was done is not known", e.operation).
		WithHint("parley status --wait 15s says when it is back")
}

// connectionError says why there is no answer.
func connectionError(ctx context.Context, operation string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if e, ok := errors.AsType[*parley.Error](err); ok {
		return e
	}
	dial := false
	if op, ok := errors.AsType[*net.OpError](err); ok {
		dial = op.Op == "dial"
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		return parley.Refuse(parley.NotPermitted, "the node's socket may not be opened by this user")
	case dial || errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return parley.Refuse(parley.NotRunning, "no node runs on this state folder").WithHint("start one with: parley start")
	}
	return &cutOff{operation: operation, cause: err}
}

// Backup writes the node's journal as it is now.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	// The one response that is not read as a whole is read with net/http's client.
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialUnix(ctx, c.connections.path)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://parley"+rpcPath+backupName, nil)
	if err != nil {
		return fmt.Errorf("make the request: %w", err)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return connectionError(ctx, backupName, err)
	}
	defer answer.Body.Close() //nolint:errcheck // read to its end or given up
	if answer.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(answer.Body, MaxBody))
		if err != nil {
			return connectionError(ctx, backupName, err)
		}
		return refusal(answer.StatusCode, body)
	}
	if _, err := io.Copy(w, answer.Body); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if text := answer.Trailer.Get(failureTrailer); text != "" {
		return refusal(http.StatusInternalServerError, []byte(`{"error":`+text+`}`))
	}
	return nil
}
