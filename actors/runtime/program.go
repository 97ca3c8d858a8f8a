package runtime

import (
	"context"
	"time"

	"parley"
	"parley/events"
)

// Spec configures a program.
type Spec struct {
	Command     []string      // the program and its arguments
	Folder      string        // where it runs; "" is where the node does
	Environment []string      // "NAME=value"
	Inherit     []string      // names of variables of the node's own that it gets beside what all programs get
	Keep        bool          // one process serves one prompt after the other
	RunTime     time.Duration // of one run; 0 is as long as it takes
	Access      []string      // what it may do through the node: read, write, terminal
	User        string        // the system's user that it runs as; "" is the launcher's default
	Wrap        []string      // words that stand before the command; none are the launcher's default
	Launcher    *Launcher     // who starts it; nil is one of its own
}

// Prompt is the input of a run.
type Prompt struct {
	Run     string // the run's ID
	Agent   string // the agent's ID
	Message string // the ID of the message; "" if the run is for none
	From    string // the ID of who sent it
	Text    string
}

// Stream is the kind of a piece of output.
type Stream string

// The streams.
const (
	Output Stream = "output" // the program's messages
	Errors Stream = "errors" // what it writes to standard error
	Notice Stream = "notice" // what it reports of its doing, a JSON object
)

// Bounds of a program's requests.
const (
	MaxLine  = 1 << 20  // bytes of one line of its protocol
	MaxText  = 16 << 10 // bytes of one piece of output; longer ones are cut in several
	MaxDepth = 64       // levels of nested JSON in a line
	MaxID    = 200      // bytes of an ID that it makes
	MaxOpen  = 64       // questions that are open at once
	TailSize = 4 << 10  // bytes of its last output that are kept to explain a failure
)

// Question is a form that a program asks. ID is chosen by the program. The same ID is the same question within one
// attempt at a message, also after a restart.
type Question struct {
	ID          string
	To          string // a name that the agent holds; "" is its host
	Title       string
	Description string
	Fields      []events.Field
	Timeout     time.Duration // until it expires; 0 is never
}

// Answer is the end of a question: answered, declined, cancelled or expired.
type Answer struct {
	Status string
	Values []byte // a JSON object; nil unless answered
	By     string
	Note   string
}

// Call is a tool call that needs permission. Folder and Offers are the node's to fill in.
type Call struct {
	parley.Permission
	DenyOnly bool // the program cannot be told that the call is allowed
}

// Decision is the decision about a call. A question that was declined, cancelled or has expired does not allow it.
type Decision struct {
	Allowed bool
	Always  bool // it was decided for calls like it too
	Ended   bool // nobody decided: the question was cancelled or has expired
	Reason  string
}

// Host is the node as a program sees it during a run. Its methods may be called by many goroutines. Those that block do
// so until ctx ends.
type Host interface {
	// Write keeps output. It fails when it cannot be kept any more.
	Write(ctx context.Context, stream Stream, text string) error
	// Ask asks a question and waits for its end.
	Ask(ctx context.Context, q Question) (Answer, error)
	// Approve asks whether a call may be made, unless that is decided beforehand, and waits for the decision.
	Approve(ctx context.Context, c Call) (Decision, error)
	// MayWrite refuses with LEASED a file, an absolute path, that another agent has a lease on.
	MayWrite(ctx context.Context, file string) error
	// MayRun refuses with LEASED a command, made in a folder, whose words say that it writes what another agent has a lease on.
	MayRun(ctx context.Context, command []string, folder string) error
	// Send sends a message to someone whom the agent holds under a name.
	Send(ctx context.Context, to, text string) error
}

// Result is the end of a run. Err is nil for a good end. Tail is the end of the output.
type Result struct {
	Err  error
	Tail string
}

// Program is one agent's program. One goroutine at a time uses it.
type Program interface {
	// Prepare gets the program ready for its first prompt, if there is anything to do before.
	Prepare(ctx context.Context) error
	// Run runs the program for a prompt, and calls taken once, when the program has it. It returns when the run is
	// over; when ctx ends it has the program stop, kills it if it does not, and returns. The program may stay
	// alive for the next prompt.
	Run(ctx context.Context, p Prompt, d Host, taken func()) Result
	// Close ends the program and waits until nothing of it is left.
	Close()
}
