package setup

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/cmd/parley/hook"
	"parley/cmd/parley/proc"
	"parley/cmd/parley/terminal"
)

const (
	probeTime  = time.Minute // for a coding agent to make the call: it takes a second or two on an idle machine
	probeGrace = time.Second // for what it has started to end
	maxRequest = 16 << 20    // bytes of a request to the model
	maxSaid    = 300         // bytes of a program's output that are shown
)

// probe has Claude Code make a call that does nothing. It has the settings of the folder, and a model that is played here.
// It returns what is wrong: "" if the hook was called, asks this node, and the call was refused for it. The person's own
// folders are left as they are. The run has a folder of its own, with copies of what settings say of hooks and calls.
// With dies, the hook is killed in place of an answer, and the call is to be blocked for that.
func (s settings) probe(ctx context.Context, sources []source, dies bool) (wrong string) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	scratch, err := os.MkdirTemp("", "parley-probe-*")
	if err != nil {
		return "the call could not be tried: " + err.Error()
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // a folder that is only temporary
	config, project := filepath.Join(scratch, "config"), filepath.Join(scratch, "project")
	if err := s.copySettings(sources, config, project); err != nil {
		return "the call could not be tried: " + err.Error()
	}
	model, err := playModel()
	if err != nil {
		return "the call could not be tried: " + err.Error()
	}
	defer model.close()
	token := rand.Text()
	words := []string{"claude", "-p", "Try the hook.", "--permission-mode", "default"}
	if dies {
		token, words = hook.ProbeDies, append(words, "--allowedTools", "Bash") // what is not blocked runs
	}
	c := probeCommand(ctx, scratch, project, token, words...)
	c.Env = append(c.Env, "CLAUDE_CONFIG_DIR="+config, "ANTHROPIC_BASE_URL=http://"+model.address, "ANTHROPIC_API_KEY=none",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	said, err := c.CombinedOutput()
	if c.Process != nil {
		_ = proc.KillGroup(c.Process.Pid) // what it has left
	}
	result, made := model.result()
	switch {
	case !made && ctx.Err() != nil:
		return fmt.Sprintf("the call could not be tried: it took longer than %v", probeTime)
	case !made && err == nil:
		err = errors.New("it has not made the call")
		fallthrough
	case !made:
		return fmt.Sprintf("the call could not be tried: %v: %s", err, shortened(string(said)))
	case dies && model.wasRefused():
		return ""
	case dies:
		return fmt.Sprintf("where a hook fails the call runs: its entries are not as setup makes them: parley setup %s replaces them", s.agent.Name)
	case strings.Contains(result, hook.ProbeReason(token, s.State)):
		return ""
	case strings.Contains(result, token):
		return "the hook that is called asks another node: " + shortened(result)
	}
	return "the hook was not called, or did not answer, and the call ended so: " + shortened(result)
}

// probeCommand returns the command with which a coding agent tries a call. What it has started ends with it.
func probeCommand(ctx context.Context, scratch, folder, token string, words ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	proc.Detach(c)
	c.Cancel = func() error { return proc.KillGroup(c.Process.Pid) }
	c.Dir, c.WaitDelay = folder, probeGrace
	c.Env = append(slices.DeleteFunc(os.Environ(), isAgents),
		"XDG_CACHE_HOME="+scratch, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", hook.ProbeVariable+"="+token)
	return c
}

// isAgents reports whether a variable tells a coding agent its model, or is of a session around this program. Those that
// leave hooks out are not among them.
func isAgents(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return !slices.Contains(simpleModes(), name) && !isShells(name) && slices.ContainsFunc([]string{"CLAUDE", "ANTHROPIC_", "CODEX_", "OPENAI_", "AWS_", "OTEL_"}, func(p string) bool { return strings.HasPrefix(name, p) })
}

// copySettings writes what the settings say of hooks and calls where Claude Code finds it for a project. Hooks of others
// do nothing there. What an administrator sets takes effect without a copy.
func (s settings) copySettings(sources []source, config, project string) error {
	for _, folder := range []string{config, filepath.Join(project, ".claude")} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
	}
	for _, from := range sources {
		if from.managed {
			continue
		}
		to := filepath.Join(config, "settings.json")
		if from.flag == " --project" {
			to = filepath.Join(project, ".claude", filepath.Base(from.path))
		}
		if err := os.WriteFile(to, s.harmless(from.doc), 0o600); err != nil {
			return err
		}
	}
	// All settings of a project take effect once a person trusts it.
	trusted := map[string]any{"projects": map[string]any{resolve(project, maxLinks): map[string]bool{"hasTrustDialogAccepted": true}}}
	return os.WriteFile(filepath.Join(config, ".claude.json"), plainJSON(trusted), 0o600)
}

// harmless returns what settings say of hooks and calls. Hooks of others do nothing in it. Of the variables all are left that may reach a
// hook, but for those of the model and of what the probe itself sets.
func (s settings) harmless(d *document) []byte {
	var all struct {
		Hooks       map[string]any    `json:"hooks,omitempty"`
		Off         any               `json:"disableAllHooks,omitempty"`
		Permissions any               `json:"permissions,omitempty"`
		Env         map[string]string `json:"env,omitempty"`
	}
	for _, name := range []string{"hooks", "disableAllHooks", "permissions", "env"} { // each by itself: one may be no such thing
		if raw := d.get(name); raw != nil {
			_ = json.Unmarshal(plainJSON(map[string]json.RawMessage{name: raw}), &all)
		}
	}
	for name := range all.Env {
		if upper := strings.ToUpper(name); isAgents(name) || strings.HasSuffix(upper, "_PROXY") || name == "XDG_CACHE_HOME" || name == hook.ProbeVariable {
			delete(all.Env, name)
		}
	}
	s.disarm(all.Hooks)
	return plainJSON(all)
}

// disarm replaces the hooks of others by such that do nothing. Each keeps its place.
func (s settings) disarm(hooks map[string]any) {
	for _, groups := range hooks {
		list, _ := groups.([]any)
		for _, group := range list {
			g, _ := group.(map[string]any)
			handlers, _ := g["hooks"].([]any)
			for i, h := range handlers {
				if _, isObject := h.(map[string]any); isObject && !isOwnHook(plainJSON(h), s.agent.Name) {
					handlers[i] = hookHandler{Type: "command", Command: "exit 0", Timeout: int(endTime.Seconds())}
				}
			}
		}
	}
}

// shortened returns the beginning of a program's output, in one line.
func shortened(said string) string {
	return terminal.Visible(fmt.Sprintf("%.*s", maxSaid, strings.Join(strings.Fields(said), " ")))
}

// model plays a model of Anthropic's Messages API and of OpenAI's Responses API: it has the agent make one call, and keeps
// the result.
type model struct {
	address string
	server  *http.Server
	done    chan struct{}

	mu      sync.Mutex
	made    bool
	refused bool // the call was not run
	text    string
}

func playModel() (*model, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m := &model{address: listener.Addr().String(), done: make(chan struct{})}
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: probeTime}
	go func() { // ends with close
		defer close(m.done)
		_ = m.server.Serve(listener)
	}()
	return m, nil
}

func (m *model) close() {
	_ = m.server.Close()
	<-m.done
}

// result returns the result of the call as the model reads it, and whether the call was made.
func (m *model) result() (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text, m.made
}

// wasRefused reports whether the result of the call is an error.
func (m *model) wasRefused() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}

// keep keeps the result of the call.
func (m *model) keep(text string, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made, m.text, m.refused = true, text, refused
}

// ServeHTTP answers with the call, and with a word once it was made. It refuses all else, also to be a proxy.
func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	answers := map[string]func(http.ResponseWriter, []byte) bool{"/v1/messages": m.answerMessages, "/v1/responses": m.answerResponses}
	answer, known := answers[r.URL.Path]
	if err != nil || r.Method != http.MethodPost || !known || !answer(w, body) {
		http.NotFound(w, r)
	}
}

// answerMessages answers a request of the Messages API. It reports whether it is one.
func (m *model) answerMessages(w http.ResponseWriter, body []byte) bool {
	var in struct {
		Model    string            `json:"model"`
		Stream   bool              `json:"stream"`
		Tools    []json.RawMessage `json:"tools"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &in) != nil {
		return false
	}
	for _, message := range in.Messages {
		var blocks []struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
			Failed  bool            `json:"is_error"`
		}
		_ = json.Unmarshal(message.Content, &blocks) // it may be a text
		for _, b := range blocks {
			if b.Type == "tool_result" {
				m.keep(textOf(b.Content), b.Failed)
			}
		}
	}
	content := map[string]any{"type": "text", "text": "Done."}
	reason := "end_turn"
	if _, made := m.result(); !made && len(in.Tools) > 0 {
		content = map[string]any{"type": "tool_use", "id": "toolu_probe", "name": "Bash", "input": map[string]string{"command": ":", "description": "Do nothing"}}
		reason = "tool_use"
	}
	writeMessage(w, in.Model, in.Stream, content, reason)
	return true
}

// textOf returns the text of a result: it is one, or a list of blocks.
func textOf(content json.RawMessage) (text string) {
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &text) != nil && json.Unmarshal(content, &blocks) == nil {
		for _, b := range blocks {
			text += b.Text
		}
	}
	return text
}

// events begins a stream of events, and returns what sends one.
func events(w http.ResponseWriter) func(kind string, members map[string]any) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(kind string, members map[string]any) {
		members["type"] = kind
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, plainJSON(members))
	}
}

// writeMessage writes a message with one block: as an object, or as events.
func writeMessage(w http.ResponseWriter, name string, stream bool, content map[string]any, reason string) {
	usage := map[string]int{"input_tokens": 1, "output_tokens": 1}
	message := map[string]any{
		"id": "msg_probe", "type": "message", "role": "assistant", "model": name, "content": []any{content}, "stop_reason": reason, "stop_sequence": nil, "usage": usage,
	}
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(plainJSON(message))
		return
	}
	send := events(w)
	delta := map[string]any{"type": "text_delta", "text": content["text"]}
	if input, called := content["input"]; called {
		delta = map[string]any{"type": "input_json_delta", "partial_json": string(plainJSON(input))}
		content["input"] = map[string]string{}
	} else {
		content["text"] = ""
	}
	message["content"], message["stop_reason"] = []any{}, nil
	send("message_start", map[string]any{"message": message})
	send("content_block_start", map[string]any{"index": 0, "content_block": content})
	send("content_block_delta", map[string]any{"index": 0, "delta": delta})
	send("content_block_stop", map[string]any{"index": 0})
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": reason, "stop_sequence": nil}, "usage": usage})
	send("message_stop", map[string]any{})
}
