package mux

import (
	"parley/gateway/api"
	"parley/internal/pack"
)

// Kind is the kind of a frame.
type Kind uint8

// The kinds of frames that a client sends.
const (
	Call Kind = iota
	Cancel
	SignIn
	SignOut
	Ask
	Follow
	Credit
	FollowAgents
	AskBy
)

// The kinds of frames that a node sends.
const (
	Result Kind = iota
	Refusal
	Asked
	Item
	Going
)

// Protocol is the WebSocket subprotocol of connections whose messages hold frames.
const Protocol = "parley.mux"

// MaxMessage bounds a message of a client, in bytes: a frame with the largest request fits.
const MaxMessage = api.MaxBody + 4<<10

// Frame is a frame of either side. Its kind says which of the other members it has.
type Frame struct {
	Kind      Kind
	ID        uint64
	Agent     uint64
	Operation string
	Credit    uint64
	Body      []byte // one msgpack value
}

// layouts lists what follows the ID in the frames of one side: the agent, the operation, the body, the credit.
type layouts []string

var (
	ofClient = layouts{Call: "aob", Cancel: "", SignIn: "b", SignOut: "a", Ask: "ab", Follow: "abc", Credit: "c", FollowAgents: "abc", AskBy: "aob"}
	ofNode   = layouts{Result: "b", Refusal: "b", Asked: "b", Item: "b", Going: "b"}
)

// ReadClient calls fn with each frame of a message of a client. The frames' bodies are parts of the message. It returns
// fn's error, or the error of the first malformed frame: nothing behind that can be read.
func ReadClient(message []byte, fn func(Frame) error) error { return ofClient.read(message, fn) }

// ReadNode is ReadClient for a message of a node.
func ReadNode(message []byte, fn func(Frame) error) error { return ofNode.read(message, fn) }

// AppendClient appends a frame of a client to a message.
func AppendClient(message []byte, f Frame) []byte { return ofClient.append(message, f) }

// AppendNode appends a frame of a node to a message.
func AppendNode(message []byte, f Frame) []byte { return ofNode.append(message, f) }

func (l layouts) read(message []byte, fn func(Frame) error) error {
	r := Reader{rest: message}
	for len(r.rest) > 0 {
		f := l.readOne(&r)
		if r.err != nil {
			return r.err
		}
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}

func (l layouts) readOne(r *Reader) (f Frame) {
	n, kind := r.Array(), r.Uint()
	if kind >= uint64(len(l)) || n != 2+len(l[kind]) {
		r.fail()
		return f
	}
	f.Kind, f.ID = Kind(kind), r.Uint()
	for _, part := range l[kind] {
		switch part {
		case 'a':
			f.Agent = r.Uint()
		case 'o':
			f.Operation = r.String()
		case 'b':
			f.Body = r.Raw()
		case 'c':
			f.Credit = r.Uint()
		}
	}
	return f
}

func (l layouts) append(b []byte, f Frame) []byte {
	b = pack.AppendArray(b, 2+len(l[f.Kind]))
	b = pack.AppendUint(pack.AppendUint(b, uint64(f.Kind)), f.ID)
	for _, part := range l[f.Kind] {
		switch part {
		case 'a':
			b = pack.AppendUint(b, f.Agent)
		case 'o':
			b = pack.AppendString(b, f.Operation)
		case 'b':
			b = append(b, f.Body...)
		case 'c':
			b = pack.AppendUint(b, f.Credit)
		}
	}
	return b
}
