package client

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"parley"
	"parley/gateway/api"
)

// MaxBody bounds a request, in bytes of JSON.
const MaxBody = api.MaxBody

// Options select the node, by Socket or by URL and Token, and the agent to act for.
type Options struct {
	Socket string // path of the node's Unix socket: parley.sock in its state folder
	// Check looks at each new connection to the socket before anything is sent. Its error is that of the calls. Nil takes all.
	Check func(net.Conn) error

	URL   string // address of the node, such as http://127.0.0.1:7420
	Token string // as printed by parley token create
	As    string // name under which the node's host holds the agent to act for; "" is the token's agent, or the host

	// HTTP has each call be an HTTP request of its own, where all share one connection otherwise.
	HTTP bool

	// Transport is the HTTP transport to a URL, for instance with certificates of its own. Nil makes one for this client.
	Transport http.RoundTripper

	// Patience bounds the wait for a node that was reached before and is not now. Zero waits until the context ends. A
	// negative value does not wait, and repeats no call.
	Patience time.Duration
	Known    bool // the node ran a moment ago, so that an absence is a restart, though this client has not reached it
}

// Client calls a node's operations. It is safe for concurrent use. The caller closes it.
type Client struct {
	options   Options
	transport *muxed
	seen      atomic.Int64 // when the node was last reached, in nanoseconds since 1970; 0: never
	pageSize  int          // messages in a page of a mailbox; 0: the node's default
}

// transport makes calls to a node.
type transport interface {
	// exchange makes a call once. Its error is a *lost, or a permanent *parley.Error.
	exchange(ctx context.Context, operation string, body []byte) (answer, error)
	absence() string // the message when there is no node
	close()
}

// answer is the node's response to a call.
type answer struct {
	status int
	body   []byte // JSON
	plain  []byte // in place of JSON: the body of a frame
}

// New returns a client, which connects on its first use. It refuses invalid options with INVALID_ARGUMENT.
func New(o Options) (*Client, error) {
	c := &Client{options: o}
	switch {
	case (o.Socket == "") == (o.URL == ""):
		return nil, parley.Refuse(parley.InvalidArgument, "a client needs the path of a socket or a URL, and not both")
	case o.Socket != "":
		c.transport = overSocket(o)
	default:
		w, err := newWeb(o)
		if err != nil {
			return nil, err
		}
		c.transport = overWeb(w)
	}
	c.transport.never = o.HTTP
	if o.Known {
		c.saw()
	}
	return c, nil
}

// Connect returns a client of a running node. It refuses with NOT_RUNNING if there is none, and with UNAUTHENTICATED if
// the token is invalid.
func Connect(ctx context.Context, o Options) (*Client, error) {
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	// A token without the scope read is refused by a running node.
	err = api.Locate.Run(ctx, c, api.NameRequest{Name: "@self"})
	if err != nil && (parley.CodeOf(err) != parley.NotPermitted || c.seen.Load() == 0) {
		c.Close()
		return nil, err
	}
	return c, nil
}

// ActingAs returns a client that acts for another agent over the same connection: the agent that the node's host holds under
// a name, or for "" the host or the token's agent. Closing one of the two closes both.
func (c *Client) ActingAs(name string) *Client {
	other := &Client{options: c.options, transport: c.transport, pageSize: c.pageSize}
	other.options.As = name
	other.seen.Store(c.seen.Load())
	return other
}

// WithToken returns a client for the agent of another token over the same connection, on which that agent signs in. Closing one of
// the two closes both.
func (c *Client) WithToken(token string) *Client {
	other := &Client{options: c.options, transport: c.transport.with(token), pageSize: c.pageSize}
	other.options.Token, other.options.As = token, ""
	other.seen.Store(c.seen.Load())
	return other
}

// Close closes the idle connections.
func (c *Client) Close() { c.transport.close() }

func (c *Client) saw() { c.seen.Store(time.Now().UnixNano()) }

// Call performs any of the node's operations, which /openapi.json describes. It sends the members of the JSON of in, and decodes the
// response into out. Either may be nil. A *json.RawMessage takes the response unchanged. After a lost connection Call repeats what
// only reads, and what has an idempotency key. Requests that take one and have none get one, but those of invoke.
func (c *Client) Call(ctx context.Context, operation string, in, out any) error {
	return c.callUntil(ctx, time.Time{}, operation, in, out)
}

// callUntil is Call that does not repeat after a time, unless that is zero.
func (c *Client) callUntil(ctx context.Context, until time.Time, operation string, in, out any) error {
	b, err := c.request(operation, in)
	if err != nil {
		return err
	}
	got, err := c.perform(ctx, again{client: c, operation: operation, body: b, until: until})
	if err != nil || out == nil {
		return err
	}
	return got.decode(operation, out)
}

// get is Call that returns the response as a value.
func get[T any](ctx context.Context, c *Client, operation string, in any) (out T, err error) {
	err = c.Call(ctx, operation, in, &out)
	return out, err
}

// perform makes a call. It repeats the call if that is harmless and the node may come back.
func (c *Client) perform(ctx context.Context, a again) (answer, error) {
	for {
		got, err := c.once(ctx, a)
		if err == nil {
			return got, nil
		}
		if err := a.after(ctx, err); err != nil {
			return answer{}, err
		}
	}
}

// once makes a call once.
func (c *Client) once(ctx context.Context, a again) (answer, error) {
	exchange := c.transport.exchange
	if a.exchange != nil {
		exchange = a.exchange
	}
	got, err := exchange(ctx, a.operation, a.body)
	if err != nil {
		return answer{}, err
	}
	c.saw()
	if got.status != http.StatusOK {
		return answer{}, refusal(got)
	}
	return got, nil
}

func unwritable(err error) error {
	return parley.Refuse(parley.InvalidArgument, "what is to be sent cannot be written: %v", err)
}

func unreadable(operation string, err error) error {
	return fmt.Errorf("%w (%w)", parley.Refuse(parley.Internal, "the node's answer to %s cannot be read", operation), err)
}
