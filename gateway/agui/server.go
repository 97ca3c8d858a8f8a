package agui

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/httpd"
	"parley/gateway/sanitize"
)

const (
	// Path is the path of a run of the caller's host. A name that the caller holds, or an agent's ID, may follow it.
	Path = "/ag-ui"

	// Reason is the reason of an interrupt: a form waits for an answer.
	Reason = "parley:form"

	protocolVersion = "1.0"
	keepAlive       = 15 * time.Second
	maxID           = 90 // bytes of the ID of a thread or run
)

// Client is the caller of a run.
type Client interface {
	api.Client // within the caller's rights and limits
	// Identity returns the ID of the caller.
	Identity() string
}

// Has reports whether a path is one of runs.
func Has(path string) bool { return path == Path || strings.HasPrefix(path, Path+"/") }

// input is the request of a run, as far as it is used.
type input struct {
	Thread   string    `json:"threadId"`
	Run      string    `json:"runId"`
	Messages []message `json:"messages"`
	Resume   []resume  `json:"resume"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

// resume answers an interrupt.
type resume struct {
	Interrupt string `json:"interruptId"`
	Status    string `json:"status"`
	Payload   any    `json:"payload"`
}

// Serve runs an agent for a client, and streams the events of the run until it ends. The body of the request has been
// checked and bounded.
func Serve(w http.ResponseWriter, r *http.Request, c Client) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "a run is begun with POST"), http.StatusMethodNotAllowed)
		return
	}
	var in input
	err := json.NewDecoder(r.Body).Decode(&in)
	switch {
	case err != nil:
		err = parley.Refuse(parley.InvalidArgument, "the input of a run is not JSON of its type")
	case in.Thread == "" || in.Run == "" || len(in.Thread) > maxID || len(in.Run) > maxID:
		err = parley.Refuse(parley.InvalidArgument, "a run has a threadId and a runId of 1 to %d bytes", maxID)
	case len(in.Resume) > 1:
		err = parley.Refuse(parley.InvalidArgument, "a run has one interrupt at most")
	}
	agent, unescaped := url.PathUnescape(strings.TrimPrefix(strings.TrimPrefix(r.URL.EscapedPath(), Path), "/"))
	if err == nil && unescaped != nil {
		err = parley.Refuse(parley.InvalidArgument, "the path names no agent")
	}
	if err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	s := newStream(r.Context(), w)
	defer s.end()
	run := &run{client: c, stream: s, input: &in, agent: agent}
	s.send(event{"type": "RUN_STARTED", "threadId": in.Thread, "runId": in.Run, "protocolVersion": protocolVersion})
	if err := run.serve(r.Context()); err != nil && r.Context().Err() == nil {
		e := parley.AsError(err)
		s.send(event{"type": "RUN_ERROR", "message": sanitize.Lines(e.Message), "code": string(e.Code)})
	}
}
