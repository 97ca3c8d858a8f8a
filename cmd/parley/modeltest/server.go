package modeltest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// Script is one conversation: the answers of the model, in order.
type Script struct {
	Prompt string // a part of the user's first message
	Turns  []Turn
	// React returns the answer to a request, in place of Turns. Its calls have IDs of their own in all conversations.
	React func(Seen) Turn
	// Needs is a tool that the script begins with: until it is on offer the model reads a file, again and again. An MCP server
	// may take longer than the first request of a terminal.
	Needs string
}

// Seen is what a request has for the model.
type Seen struct {
	News  []string // texts that it has not answered: of the user, of the system, and results of tools
	Tools []string // names of the tools on offer, described or not
}

// Turn is one answer of the model. A turn without calls ends the agent's work.
type Turn struct {
	Text  string
	Calls []Call
}

// Call is a tool call of an answer.
type Call struct {
	Tool  string
	Input any // its JSON is the tool's input
}

// Result is a tool's result, as the model reads it.
type Result struct {
	Tool string // "" where the agent does not repeat the call
	Text string
}

// Server is a running model server.
type Server struct {
	// URL is the address of the server, without a path.
	URL string
	// Other is the answer to a request of no script, as for the title of a session.
	Other string

	http    *httptest.Server
	scripts []Script

	mu      sync.Mutex
	latest  map[string]conversation // by prompt
	asked   map[string][]Request    // by prompt
	others  []string
	wrong   []string
	changed chan struct{} // closed at each request
}

// conversation is the part of a request that both protocols have.
type conversation struct {
	model   string
	stream  bool
	prompts []string // texts of the user
	system  string   // instructions
	tools   []string // names of the tools on offer
	later   []string // names that may be of tools on offer, which the request does not describe
	judged  bool     // the answer says of each call that it is not dangerous
	answers int      // turns that the model has taken
	results []Result
	calls   map[string]string // tools by the calls' IDs
	news    []string          // texts since the model's last answer
}

// Serve starts a server that replays scripts. The caller closes it.
func Serve(scripts ...Script) *Server {
	s := &Server{scripts: scripts, Other: "Noted", latest: map[string]conversation{}, asked: map[string][]Request{}, changed: make(chan struct{})}
	routes := http.NewServeMux()
	routes.HandleFunc("POST /v1/messages", s.answer(readMessages, writeMessages))
	routes.HandleFunc("POST /v1/messages/count_tokens", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"input_tokens":1}`)
	})
	routes.HandleFunc("POST /v1/responses", s.answer(readResponses, writeResponses))
	routes.HandleFunc("POST /v1beta/models/{call}", s.answer(readGenerate, writeGenerate))
	routes.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[],"models":[],"has_more":false}`)
	})
	s.http = httptest.NewServer(routes)
	s.URL = s.http.URL
	return s
}

// Close stops the server.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// answer returns the handler of one protocol.
func (s *Server) answer(
	read func([]byte) (conversation, error), write func(w http.ResponseWriter, c conversation, id string, t Turn),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the agent has gone
		}
		c, err := read(body)
		if err == nil && r.Header.Get("Authorization") == "" && r.Header.Get("X-Api-Key") == "" && r.Header.Get("X-Goog-Api-Key") == "" {
			err = fmt.Errorf("no key")
		}
		if err != nil {
			s.note(fmt.Sprintf("%s: %v: %.2000s", r.URL.Path, err, body))
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		id, turn := s.next(c, body)
		write(w, c, id, turn)
	}
}

// next returns the turn that answers a request, with a name of its own.
func (s *Server) next(c conversation, body []byte) (id string, t Turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { close(s.changed); s.changed = make(chan struct{}) }()
	// A request without tools is for the agent's own use, though it repeats the prompt.
	for i, script := range s.scripts {
		if len(c.tools) == 0 || !slices.ContainsFunc(c.prompts, func(p string) bool { return strings.Contains(p, script.Prompt) }) {
			continue
		}
		waits := 0
		for id := range c.calls {
			if strings.HasPrefix(id, "toolu_"+waitsFor) {
				waits++
			}
		}
		if c.answers == waits && script.Needs != "" && !slices.Contains(c.tools, script.Needs) && !slices.Contains(c.later, script.Needs) {
			time.Sleep(waitFor)
			return fmt.Sprintf("%s%d", waitsFor, waits), Turn{Calls: []Call{{Tool: "Read", Input: map[string]any{"file_path": "/etc/passwd", "limit": 1}}}}
		}
		c.answers -= waits
		s.latest[script.Prompt] = c
		s.asked[script.Prompt] = append(s.asked[script.Prompt], Request{At: time.Now(), Body: string(body)})
		if script.React != nil {
			return fmt.Sprintf("%d_%d", i, len(s.asked[script.Prompt])), script.React(Seen{c.news, slices.Concat(c.tools, c.later)})
		}
		if c.answers >= len(script.Turns) {
			s.wrong = append(s.wrong, fmt.Sprintf("%q has %d turns, and one more is asked for", script.Prompt, len(script.Turns)))
			return "over", Turn{Text: "There is no more to say"}
		}
		turn := script.Turns[c.answers]
		for _, call := range turn.Calls {
			if !slices.Contains(c.tools, call.Tool) && !slices.Contains(c.later, call.Tool) {
				s.wrong = append(s.wrong, fmt.Sprintf("%q calls %s, which is not among the tools %v", script.Prompt, call.Tool, c.tools))
			}
		}
		return fmt.Sprintf("%d_%d", i, c.answers), turn
	}
	s.others = append(s.others, string(body))
	return fmt.Sprintf("other_%d", len(s.others)), Turn{Text: s.Other}
}

const (
	waitsFor = "wait"                 // begins the IDs of the calls of a model that waits for a tool
	waitFor  = 200 * time.Millisecond // before each
)

func (s *Server) note(wrong string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, wrong)
}

// Wrong returns what requests had wrong so far.
func (s *Server) Wrong() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.wrong)
}

// Others returns the bodies of requests that no script has.
func (s *Server) Others() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.others)
}

// Request is one request to the model.
type Request struct {
	At   time.Time
	Body string // JSON
}

// Requests returns the requests of a script, in the order in which they came.
func (s *Server) Requests(prompt string) []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked[prompt])
}

// Results returns the results of tools in the latest request of a script.
func (s *Server) Results(prompt string) []Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.latest[prompt].results)
}

// Tools returns the names of the tools in the latest request of a script, described or not.
func (s *Server) Tools(prompt string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.latest[prompt]
	return slices.Concat(c.tools, c.later)
}

// Instructions returns the instructions, and all the user's texts, in the latest request of a script.
func (s *Server) Instructions(prompt string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.latest[prompt]
	return strings.Join(append([]string{c.system}, c.prompts...), "\n")
}

// stream writes server-sent events, one JSON object each. Its type names the event.
type stream struct{ w http.ResponseWriter }

func newStream(w http.ResponseWriter) stream {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	return stream{w}
}

func (s stream) send(kind string, members map[string]any) {
	members["type"] = kind
	_, _ = fmt.Fprintf(s.w, "event: %s\ndata: %s\n\n", kind, encode(members))
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // scripts hold what has a JSON form
	}
	return string(text)
}
