package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"parley"
	"parley/gateway/api"
)

// MaxBody bounds a request, in bytes of JSON.
const MaxBody = api.MaxBody

// Options say which node to talk to, and for whom: either Socket, or URL and Token.
type Options struct {
	Socket string // path of the node's Unix socket: parley.sock in its state folder
	URL    string // where the node listens, as http://127.0.0.1:7420
	Token  string // as parley token create makes them
	As     string // name under which the node's host holds the agent to act for; "" is the token's agent, or the host

	// Transport is how a URL is reached, for one with certificates of its own. Nil is one made for this client.
	Transport http.RoundTripper

	// Patience is for how long a node is waited for that was there and is not: as long as the context allows if it is
	// zero, and not at all, with no call made again, if it is negative.
	Patience time.Duration
	Known    bool // the node was there a moment ago, though this client has not seen it: an absence is a restart
}

// Client calls a node's operations. It may be used by many goroutines, and is closed when nobody uses it any more.
type Client struct {
	options   Options
	transport *muxed
	seen      atomic.Int64 // when the node was last there, in nanoseconds since 1970; 0: never
	pageSize  int          // messages that a page of a mailbox has; 0: as many as the node gives
}

// transport is a way to a node.
type transport interface {
	// exchange makes a call once. An error in place of an answer is a *lost, or a *parley.Error that will not pass.
	exchange(ctx context.Context, operation string, b body) (answer, error)
	absence() string // what is said when nobody is there
	close()
}

// answer is what the node said to a call.
type answer struct {
	status int
	body   []byte // JSON
	plain  []byte // msgpack, in place of JSON, if the call's body was
}

// New makes a client, which connects when it is used. It refuses with INVALID_ARGUMENT options that make no sense.
func New(o Options) (*Client, error) {
	c := &Client{options: o}
	switch {
	case (o.Socket == "") == (o.URL == ""):
		return nil, parley.Refuse(parley.InvalidArgument, "a client needs the path of a socket or a URL, and not both")
	case o.Socket != "":
		c.transport = overSocket(o.Socket)
	default:
		w, err := newWeb(o)
		if err != nil {
			return nil, err
		}
		c.transport = overWeb(w)
	}
	if o.Known {
		c.saw()
	}
	return c, nil
}

// Connect makes a client of a node that is there. It refuses with NOT_RUNNING where there is none, and with
// UNAUTHENTICATED if the token is not good.
func Connect(ctx context.Context, o Options) (*Client, error) {
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	// A token may be good for other things than looking, and then this is refused by a node that is there.
	err = c.Call(ctx, "locate", api.NameRequest{Name: "@self"}, nil)
	if err != nil && (parley.CodeOf(err) != parley.NotPermitted || c.seen.Load() == 0) {
		c.Close()
		return nil, err
	}
	return c, nil
}

// ActingAs returns a client that acts for another agent, over the same connection: the one that the node's host holds under
// a name, "" for the host or the token's agent. Closing one of the two closes both.
func (c *Client) ActingAs(name string) *Client {
	other := &Client{options: c.options, transport: c.transport, pageSize: c.pageSize}
	other.options.As = name
	other.seen.Store(c.seen.Load())
	return other
}

// Close gives up the connections that are not in use.
func (c *Client) Close() { c.transport.close() }

func (c *Client) saw() { c.seen.Store(time.Now().UnixNano()) }

// Call performs any of the node's operations, as they are described at its /openapi.json. in is made into JSON, and
// the answer read into out, either of which may be nil; a *json.RawMessage takes the answer as it is. What is made again after
// a lost connection is what has a key, or only reads.
func (c *Client) Call(ctx context.Context, operation string, in, out any) error {
	return c.callUntil(ctx, time.Time{}, operation, in, out)
}

// callUntil is Call, but that the call is not made again after a time, if that is not zero.
func (c *Client) callUntil(ctx context.Context, until time.Time, operation string, in, out any) error {
	b, err := c.request(in)
	if err != nil {
		return err
	}
	got, err := c.perform(ctx, again{client: c, operation: operation, body: b, until: until})
	if err != nil || out == nil {
		return err
	}
	if raw, ok := out.(*json.RawMessage); ok {
		*raw = bytes.TrimSpace(got.body)
		return nil
	}
	if err := json.Unmarshal(got.body, out); err != nil {
		return unreadable(operation, err)
	}
	return nil
}

// get is Call for who wants the answer as a value.
func get[T any](ctx context.Context, c *Client, operation string, in any) (out T, err error) {
	err = c.Call(ctx, operation, in, &out)
	return out, err
}

// request writes a request, for the client's agent unless it names another.
func (c *Client) request(in any) (body, error) {
	text := []byte("{}")
	if in != nil {
		var err error
		if text, err = written(in); err != nil {
			return body{}, unwritable(err)
		}
	}
	if as := c.options.As; as != "" && len(text) >= 2 && text[0] == '{' {
		name, err := json.Marshal(map[string]string{"as": as})
		if err != nil {
			return body{}, unwritable(err)
		}
		if rest := text[1:]; rest[0] != '}' {
			name = append(append(name[:len(name)-1], ','), rest...)
		}
		text = name // of two members "as" the last counts
	}
	if len(text) > MaxBody {
		return body{}, parley.Refuse(parley.TooLarge, "a request may have %d bytes at most", MaxBody)
	}
	return body{text: text}, nil
}

// perform makes a call, again and again where that does nothing twice and the node may come back.
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

// written writes JSON without escapes that its texts had not: what is shown as it was given would have them too.
func written(in any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(in)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

func unwritable(err error) error {
	return parley.Refuse(parley.InvalidArgument, "what is to be sent cannot be written: %v", err)
}

func unreadable(operation string, err error) error {
	return fmt.Errorf("%w (%w)", parley.Refuse(parley.Internal, "the node's answer to %s cannot be read", operation), err)
}
