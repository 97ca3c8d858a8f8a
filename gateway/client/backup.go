package client

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"

	"parley"
	"parley/gateway/api"
)

const (
	backupName     = "backup"
	failureTrailer = "Parley-Error"
)

// Backup writes the node's present journal. It works on the node's own socket only.
func (c *Client) Backup(ctx context.Context, w io.Writer) error { return c.backup(ctx, "", w) }

// BackupAfter writes the part of the node's journal after a mark of package persistence, or all of it after "".
func (c *Client) BackupAfter(ctx context.Context, after string, w io.Writer) error {
	return c.backup(ctx, "?after="+url.QueryEscape(after), w)
}

func (c *Client) backup(ctx context.Context, query string, w io.Writer) error {
	if c.options.Socket == "" {
		return parley.Refuse(parley.NotPermitted, "a backup is made on the node's own socket")
	}
	// This response alone is streamed, so it is read with net/http's client.
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.options.dial(ctx)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://parley"+api.CallPath+backupName+query, nil)
	if err != nil {
		return parley.Refuse(parley.InvalidArgument, "a backup cannot be asked for: %v", err)
	}
	a := again{client: c, operation: backupName}
	got, err := transport.RoundTrip(r)
	if err != nil {
		return a.over(ctx, &lost{sent: !isDial(err), cause: err})
	}
	defer got.Body.Close() //nolint:errcheck // read to its end or given up
	if got.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(got.Body, MaxBody))
		if err != nil {
			return a.over(ctx, &lost{sent: true, cause: err})
		}
		return a.over(ctx, refusal(answer{status: got.StatusCode, body: body}))
	}
	out := output{w: w}
	switch _, err := io.Copy(&out, got.Body); {
	case out.err != nil:
		return fmt.Errorf("write the backup: %w", out.err)
	case err != nil && ctx.Err() != nil:
		return a.ended(ctx)
	case err != nil:
		return parley.Refuse(parley.NotRunning, "the node went away before the backup was whole").
			WithHint("what was written is no backup: make it again")
	}
	if text := got.Trailer.Get(failureTrailer); text != "" {
		return a.over(ctx, refusal(answer{status: http.StatusInternalServerError, body: []byte(`{"error":` + text + `}`)}))
	}
	return nil
}

// output keeps the error of a write, which is not the node's.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	o.err = err
	return n, err
}
