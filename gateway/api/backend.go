package api

import (
	"context"
	"fmt"
	"iter"
	"reflect"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
)

// Backend performs operations on a node. It is all that an edge needs of the node. Its methods may be called at the same
// time.
type Backend interface {
	Caller
	// Operations returns the table of operations by name. It must not be changed.
	Operations() map[string]Operation
	// Agent returns the agent that a principal acts for: its own with "" or SELF, for the node's host also one that it
	// holds under a name. It refuses with NOT_PERMITTED or UNKNOWN_NAME.
	Agent(ctx context.Context, p Principal, as string) (Agent, error)
	// Check refuses with UNAUTHENTICATED a principal whose token or session has ended. It returns no other error.
	Check(ctx context.Context, p Principal) error
	// WhileGood has end called once, when the principal's token or session has ended, unless stop is called before.
	WhileGood(p Principal, end func()) (stop func())
}

// Caller performs operations.
type Caller interface {
	// Call performs an operation, and returns its response, which is of the operation's response type. Whatever an
	// operation changed is durable when it returns. It does not ask whether the principal may call the operation, and does
	// not count the call: Serve counts it. An operation that waits ends with ctx, and when the principal's token ends.
	Call(ctx context.Context, p Principal, operation string, r Request) (any, error)
	// Lister returns the account of the agent for which a principal requests a listing: that of another if the node's host
	// acts for it.
	Lister(ctx context.Context, p Principal, r Request) Account
}

// Within is a Client in the node's own process. It does not ask whether the principal may call an operation, and does not count
// the call.
type Within struct {
	Caller    Caller
	Principal Principal
}

// Call implements Client.
func (w Within) Call(ctx context.Context, operation string, request, response any) error {
	got, err := w.Caller.Call(ctx, w.Principal, operation, Typed{request})
	if err != nil || response == nil {
		return err
	}
	return Typed{got}.Read(response)
}

// Request is a request that its operation has not read yet.
type Request interface {
	// Read stores the request in a value of the operation's request type, to which into points.
	Read(into any) error
}

// JSON is a request as JSON text. None is the empty request.
type JSON []byte

// Read implements Request.
func (b JSON) Read(into any) error { return Decode(b, into) }

// Typed is a request as a value of the operation's request type.
type Typed struct{ Value any }

// Read implements Request.
func (t Typed) Read(into any) error {
	to, from := reflect.ValueOf(into).Elem(), reflect.ValueOf(t.Value)
	if t.Value == nil || from.Type() != to.Type() {
		return fmt.Errorf("a %T was given for a %s", t.Value, to.Type())
	}
	to.Set(from)
	return nil
}

// Serve performs an operation within the limits of the charge's account, and has encode write its response. Encode
// returns the size of that. A large response is charged until the caller releases the charge. Serve takes a place only
// now, when the whole request is there.
func Serve(ctx context.Context, c Caller, p Principal, o Operation, r Request, held *Charge, encode func(resp any) (int, error)) error {
	a := held.account
	if err := a.Take(o.Kind(), 1); err != nil {
		return err
	}
	defer a.Give(o.Kind(), 1)
	var lister Account // nil for what is no listing
	if o.Lists {
		lister = c.Lister(ctx, p, r)
	}
	if o.Lists && !o.Waits {
		built, err := lister.Build(ctx)
		if err != nil {
			return err
		}
		defer built()
	}
	resp, err := c.Call(ctx, p, o.Name, r)
	if err != nil {
		return err
	}
	if o.Lists && o.Waits {
		built, err := lister.BuildReady(ctx)
		if err != nil {
			return err
		}
		defer built()
	}
	var size int
	if lister == nil {
		size, err = encode(resp)
	} else {
		err = lister.InTurn(ctx, func() (err error) {
			size, err = encode(resp)
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("encode the response: %w", err)
	}
	if size <= PieceSize {
		return nil
	}
	if o.Scope == ScopeRead { // it can be asked for again
		return held.Add(int64(size))
	}
	held.Force(int64(size))
	return nil
}

// PieceSize bounds how much of a large response is written at once. A larger response is charged to its account.
const PieceSize = 64 << 10

// Agent is an agent that a principal acts for. Its methods do not ask whether the principal may: the edge does.
type Agent interface {
	// ID returns the agent's ID.
	ID() capabilities.ID
	// IsHost reports whether the agent is the node's host.
	IsHost() bool
	// Mail returns the agent's messages.
	Mail() Mail
	// Names returns the values that the agent holds.
	Names() Names
	// Rules returns the agent's standing rules.
	Rules() Rules
	// Output returns the output of the agent's program.
	Output() Output
	// Message returns one message of the agent's mail.
	Message(ctx context.Context, ref capabilities.FormRef) (view.Message, error)
	// Compile reads the fields of a form as sending it would, and returns them as its recipient sees them.
	Compile(fields []events.Field) ([]events.Field, error)
	// WatchAgents watches the agents that the agent sees and a filter picks, or only which if that is not "". It calls changed
	// when there is something new after the last Next, or when the node stops. Changed must not block.
	WatchAgents(ctx context.Context, f view.AgentFilter, which string, changed func()) (AgentWatch, error)
	// Status returns the agent's status.
	Status(context.Context) (view.AgentStatus, error)
	// Version returns the version of the agent's mailbox.
	Version(context.Context) (uint64, error)
	// Beyond blocks until the mailbox has a version after the given one, and returns it.
	Beyond(ctx context.Context, version uint64) (uint64, error)
	// Log returns the events after a version, at most so many.
	Log(ctx context.Context, after uint64, limit int) (view.Log, error)
}

// AgentWatch watches the agents that an agent sees.
type AgentWatch interface {
	// Next returns the changes since the last call: at first all agents that are picked. It does not wait.
	Next(context.Context) ([]view.AgentChange, error)
	// Stop ends the watch.
	Stop()
}

// Mail lists and follows the messages of an agent.
type Mail interface {
	// Page returns messages from a number on, at most so many.
	Page(ctx context.Context, f view.MessageFilter, first uint64, limit int) (view.Inbox, error)
	// Last returns the last messages before a number, at most so many; before 0 is the end. They are by number.
	Last(ctx context.Context, f view.MessageFilter, before uint64, limit int) (view.Inbox, error)
	// All iterates over the messages that a filter picks.
	All(ctx context.Context, f view.MessageFilter) iter.Seq2[view.Message, error]
	// Since returns the messages that changed after a cursor. It does not wait.
	Since(ctx context.Context, f view.MessageFilter, cursor uint64) (view.Inbox, error)
	// Watch calls changed after each change of the messages, until stop. Changed must not block.
	Watch(changed func()) (stop func())
	// Changes blocks until messages have changed after a cursor, and returns them.
	Changes(ctx context.Context, f view.MessageFilter, cursor uint64) (view.Inbox, error)
	// FormsOf returns the messages whose forms have an origin, oldest first. Empty members of the origin match all.
	FormsOf(ctx context.Context, o events.Origin) (view.Inbox, error)
	// InTurn calls work when it is the agent's turn, as Account's does.
	InTurn(ctx context.Context, work func() error) error
	// Count returns how many messages a search finds, of those from an agent and decided by one, "" for all. It counts up
	// to view.MaxCounted and one more.
	Count(ctx context.Context, s view.Search, from, decidedBy string) (int, error)
	// Counts returns the numbers of messages in the lists.
	Counts(context.Context) (view.MessageCounts, error)
	// HasAsked reports whether the agent asked a form with a key.
	HasAsked(ctx context.Context, key string) (bool, error)
}

// Names reads the values that an agent holds, and its grants to others.
type Names interface {
	// List returns the names below a path, "" for the agent's own, from behind one on. Most is their largest number, or 0.
	List(ctx context.Context, path, after string, most int) ([]string, error)
	// Show returns the value of a name. Secrets are masked unless they are to be revealed.
	Show(ctx context.Context, name string, reveal bool) (capabilities.Value, error)
	// Grants returns references that the agent gave, the oldest first.
	Grants(context.Context, view.GrantFilter) ([]view.Granted, error)
}

// Rules reads an agent's standing rules and mandates.
type Rules interface {
	// List returns the standing rules, oldest first.
	List(context.Context) ([]view.Rule, error)
	// Number returns how many there are.
	Number(context.Context) (int, error)
	// Ruled returns calls of agents of this node that were decided without a question, the newest first, and how many events of these
	// agents are not looked at yet. The caller may look into the agents.
	Ruled(ctx context.Context, agents []capabilities.ID, q view.RuledQuery) (calls []view.RuledCall, behind uint64, err error)
	// CountRuled returns how many such calls there are, up to view.MaxCounted and one more.
	CountRuled(ctx context.Context, agents []capabilities.ID, q view.RuledQuery) (int, error)
	// CountDecided counts how many calls of agents of this node were decided since a time, with a question and without. It returns at once;
	// the function has the numbers of the agents of which they are known soon. The caller may look into the agents.
	CountDecided(ctx context.Context, since capabilities.Time, agents []capabilities.ID) func() map[capabilities.ID]view.Decided
	// Reviewer returns the terms of the agent's policy of review; nil if it has another policy.
	Reviewer(context.Context) (*events.ReviewerSet, error)
	// Mandates returns the mandates, oldest first: those that last and, with all, the last ones that have ended.
	Mandates(ctx context.Context, all bool) ([]view.Mandate, error)
	// Mandate returns a mandate with the last calls that it has covered, oldest first, at most so many.
	Mandate(ctx context.Context, id capabilities.ID, limit int) (view.Mandate, []view.MandateCall, error)
}

// Output reads the output of an agent's program.
type Output interface {
	// Latest returns the last pieces, at most so many, and the cursor after them.
	Latest(ctx context.Context, limit int) ([]view.OutputPiece, uint64, error)
	// Before returns the last pieces before a cursor, at most so many.
	Before(ctx context.Context, cursor uint64, limit int) ([]view.OutputPiece, error)
	// Beyond blocks until there is output after a cursor, and returns the cursor of the last piece. If ctx ends first, it
	// returns the given cursor.
	Beyond(ctx context.Context, cursor uint64) (uint64, error)
}

// UntilStopping returns a context that also ends when stopping does, with ErrStopping as its cause.
func UntilStopping(ctx, stopping context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(stopping, func() { end(ErrStopping) })
	return ctx, func() {
		stop()
		end(nil)
	}
}

// ErrStopping ends the waits of a node that stops.
var ErrStopping = parley.Refuse(parley.NotRunning, "the node is stopping").
	WithHint("what was asked for may still happen")
