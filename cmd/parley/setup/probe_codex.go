package setup

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"parley/cmd/parley/hook"
	"parley/cmd/parley/proc"
)

// ranFile is what the call that is tried leaves in its folder if it runs.
const ranFile = "ran"

// probeCodex has Codex make a call that leaves its sandbox, as probe does with Claude Code. It speaks to its app server,
// since "codex exec" asks nobody. It returns what is wrong: nothing if the hook was called, asks this node, and the call
// was refused for it. Codex has a folder of its own, with copies of what the configuration says of hooks and approvals.
// No login is copied, and it reaches no network: its proxy is the model, which refuses.
func (s settings) probeCodex(ctx context.Context, sources []source) (wrong []string) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	untried := func(err error) []string { return []string{"the call could not be tried: " + shortened(err.Error())} }
	scratch, err := os.MkdirTemp("", "parley-probe-*")
	if err != nil {
		return untried(err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // a folder that is only temporary
	model, err := playModel()
	if err != nil {
		return untried(err)
	}
	defer model.close()
	copied := codexCopy{settings: s, config: filepath.Join(resolve(scratch, maxLinks), "config"), project: filepath.Join(resolve(scratch, maxLinks), "project")}
	folder, err := copied.write(sources, model.address)
	if err != nil {
		return untried(err)
	}
	token := rand.Text()
	c := probeCommand(ctx, scratch, folder, token, "codex", "app-server")
	c.Env = append(c.Env, "CODEX_HOME="+copied.config)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		c.Env = append(c.Env, name+"=http://"+model.address, strings.ToLower(name)+"=http://"+model.address)
	}
	var said bytes.Buffer
	c.Stderr = &said
	in, err := c.StdinPipe()
	if err != nil {
		return untried(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return untried(err)
	}
	if err := c.Start(); err != nil {
		return untried(err)
	}
	run, err := converse(in, io.LimitReader(out, maxRequest), folder)
	_ = in.Close() // which ends it
	ended := c.Wait()
	_ = proc.KillGroup(c.Process.Pid) // what it has left
	result, made := model.result()
	switch {
	case !made && ctx.Err() != nil:
		return untried(fmt.Errorf("it took longer than %v", probeTime))
	case !made && errors.Is(err, io.EOF):
		return untried(fmt.Errorf("it has ended: %v: %s", ended, errorOf(said.String())))
	case !made && err != nil:
		return untried(err)
	case !made:
		return untried(errors.New("it has not made the call"))
	}
	_, ran := os.Stat(filepath.Join(folder, ranFile))
	wrong = copied.unused(sources, run)
	switch {
	case ran == nil:
		wrong = append(wrong, "Codex RAN the call, and asked nobody: its sandbox allows everything (sandbox_mode, default_permissions)")
	case strings.Contains(result, hook.ProbeReason(token, s.State)):
	case strings.Contains(result, token):
		wrong = append(wrong, "the hook that is called asks another node: "+shortened(result))
	case run.failure != "":
		wrong = append(wrong, "the hook failed, so the call is left to Codex' own prompt: "+shortened(run.failure))
	case run.asked:
		wrong = append(wrong, "no hook was called, and the call is left to Codex' own prompt")
	default:
		wrong = append(wrong, "no hook was called, and the call ended so: "+shortened(result))
	}
	return wrong
}

// errorOf returns the error that Codex says on standard error, or all that it says.
func errorOf(said string) string {
	for line := range strings.Lines(said) {
		if words, ok := strings.CutPrefix(line, "Error: "); ok {
			return words
		}
	}
	return said
}

// codexCopy is the configuration that a probe of Codex has.
type codexCopy struct {
	settings
	config, project string // folders: the person's, and that of the repository
}

// folderOf returns the copy of a folder with configuration.
func (c codexCopy) folderOf(folder string) string {
	inside, err := filepath.Rel(c.root(), folder)
	c.Project = false
	if folder == c.codexFolder() || err != nil {
		return c.config
	}
	return filepath.Join(c.project, inside)
}

// write writes the copies, and returns the folder that Codex works in.
func (c codexCopy) write(sources []source, address string) (folder string, err error) {
	folder = filepath.Dir(c.folderOf(filepath.Join(c.Folder, ".codex")))
	paths := []string{c.config, folder}
	git := filepath.Join(c.project, ".git") // as little as Codex takes for a repository
	if Repository(c.Folder) != "" {
		paths = append(paths, filepath.Join(git, "objects"), filepath.Join(git, "refs"))
	}
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return "", err
		}
	}
	if len(paths) > 2 {
		if err := os.WriteFile(filepath.Join(git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o600); err != nil {
			return "", err
		}
	}
	for _, from := range sources {
		real, to := filepath.Dir(from.path), c.folderOf(filepath.Dir(from.path))
		f, err := readSettings(resolve(filepath.Join(real, "config.toml"), maxLinks))
		if err != nil {
			return "", err
		}
		var all map[string]any
		if err := toml.Unmarshal(f.before, &all); err != nil {
			return "", err
		}
		config := kept(all)
		if to == c.config {
			c.complete(config, all, sources, address)
		}
		text, err := toml.Marshal(config)
		if err != nil {
			return "", err
		}
		if err := os.MkdirAll(to, 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(to, "config.toml"), text, 0o600); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(to, "hooks.json"), c.disarmed(from.doc), 0o600); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// kept returns what a file of Codex' configuration says of hooks and approvals.
func kept(all map[string]any) map[string]any {
	config, features := map[string]any{}, map[string]any{}
	for _, name := range []string{
		"approval_policy", "approvals_reviewer", "sandbox_mode", "default_permissions", "permissions", "profile", "allow_managed_hooks_only",
	} {
		if value, there := all[name]; there {
			config[name] = value
		}
	}
	given, _ := all["features"].(map[string]any)
	for _, name := range []string{"hooks", "codex_hooks"} {
		if value, there := given[name]; there {
			features[name] = value
		}
	}
	config["features"] = features
	return config
}

// complete gives the person's configuration the model, and the trust in hooks and folders under the paths of the copies.
func (c codexCopy) complete(config, all map[string]any, sources []source, address string) {
	maps.Copy(config, map[string]any{
		"model": "parley", "model_provider": "parley", "check_for_update_on_startup": false, "cli_auth_credentials_store": "file",
		"analytics": map[string]any{"enabled": false},
		"model_providers": map[string]any{"parley": map[string]any{
			"name": "parley", "base_url": "http://" + address + "/v1", "wire_api": "responses", "request_max_retries": 0, "stream_max_retries": 0,
		}},
	})
	features, _ := config["features"].(map[string]any)
	for _, name := range []string{"apps", "plugins", "shell_snapshot"} {
		features[name] = false
	}
	projects, _ := all["projects"].(map[string]any)
	trusted := map[string]any{}
	for path, project := range projects {
		for at := c.Folder; ; at = filepath.Dir(at) {
			if sameFolder(path, at) {
				level, _ := project.(map[string]any)
				trusted[filepath.Dir(c.folderOf(filepath.Join(at, ".codex")))] = map[string]any{"trust_level": level["trust_level"]}
			}
			if at == c.root() || at == filepath.Dir(at) {
				break
			}
		}
	}
	if main := mainWorktree(c.root()); main != "" && trusted[c.project] == nil {
		for path, project := range projects {
			if level, _ := project.(map[string]any); sameFolder(path, main) {
				trusted[c.project] = map[string]any{"trust_level": level["trust_level"]}
			}
		}
	}
	config["projects"] = trusted
	hooks, _ := all["hooks"].(map[string]any)
	given, _ := hooks["state"].(map[string]any)
	state := map[string]any{}
	for key, value := range given {
		for _, from := range sources {
			for _, path := range []string{from.path, resolve(from.path, maxLinks)} {
				if place, ok := strings.CutPrefix(key, path+":"); ok {
					state[c.hooksOf(from)+":"+place] = value
				}
			}
		}
	}
	config["hooks"] = map[string]any{"state": state}
}

// mainWorktree returns the folder whose trust a linked worktree of Git has too, "" if a folder is none.
func mainWorktree(root string) string {
	f, err := readSettings(filepath.Join(root, ".git"))
	if err != nil { // it is a folder
		return ""
	}
	linked, _ := strings.CutPrefix(strings.TrimSpace(string(f.before)), "gitdir: ")
	main, _, found := strings.Cut(filepath.ToSlash(linked), "/.git/worktrees/")
	if !found {
		return ""
	}
	return filepath.FromSlash(main)
}

func (c codexCopy) hooksOf(from source) string {
	return filepath.Join(c.folderOf(filepath.Dir(from.path)), "hooks.json")
}

// disarmed returns a file of hooks in which those of others do nothing.
func (c codexCopy) disarmed(d *document) []byte {
	var all map[string]any
	if json.Unmarshal(d.text, &all) != nil {
		return d.text
	}
	hooks, _ := all["hooks"].(map[string]any)
	c.disarm(hooks)
	return plainJSON(all)
}

// codexHook is a hook as Codex lists it.
type codexHook struct {
	Event   string `json:"eventName"`
	Command string `json:"command"`
	Source  string `json:"sourcePath"`
	Enabled bool   `json:"enabled"`
	Trust   string `json:"trustStatus"`
}

// unused returns what keeps Codex from running hooks of Parley's.
func (c codexCopy) unused(sources []source, run codexRun) (wrong []string) {
	for _, from := range sources {
		wanted := from.doc.own(c.agent.Name)
		if len(wanted) == 0 {
			continue
		}
		var off, untrusted []string
		listed := false
		for _, h := range run.hooks {
			if h.Source != c.hooksOf(from) || !isOwnHook(plainJSON(hookHandler{Command: h.Command}), c.agent.Name) {
				continue
			}
			listed = true
			event := strings.ToUpper(h.Event[:min(1, len(h.Event))]) + h.Event[min(1, len(h.Event)):]
			switch {
			case h.Trust == "untrusted", h.Trust == "modified":
				untrusted = append(untrusted, event)
			case !h.Enabled:
				off = append(off, event)
			}
		}
		switch {
		case !listed && len(run.warnings) > 0:
			wrong = append(wrong, fmt.Sprintf("Codex does not take the hooks in %s: %s", from.path,
				shortened(strings.ReplaceAll(strings.Join(run.warnings, "; "), c.hooksOf(from), "it"))))
		case !listed:
			wrong = append(wrong, fmt.Sprintf("Codex does not take the hooks in %s: it takes those of a project once you trust its folder", from.path))
		}
		if len(untrusted) > 0 {
			wrong = append(wrong, fmt.Sprintf("you have not trusted the hooks on %s in %s, so that they do not run: type /hooks in Codex", strings.Join(untrusted, ", "), from.path))
		}
		if len(off) > 0 {
			wrong = append(wrong, fmt.Sprintf("the hooks on %s in %s are switched off: type /hooks in Codex", strings.Join(off, ", "), from.path))
		}
	}
	return wrong
}

// codexRun is what Codex says of a run.
type codexRun struct {
	hooks    []codexHook
	warnings []string // about files of hooks
	asked    bool     // it asked its client, as it asks a person at its prompt
	failure  string   // of a hook
}

// packet is a message of Codex' app server: JSON-RPC, one a line.
type packet struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	Params struct {
		Run struct { // of a hook
			Status  string `json:"status"`
			Entries []struct {
				Text string `json:"text"`
			} `json:"entries"`
		} `json:"run"`
		Turn struct {
			Error *struct {
				Message string `json:"message"`
			} `json:"error"`
		} `json:"turn"`
	} `json:"params"`
	Result struct {
		Data []struct {
			Hooks    []codexHook `json:"hooks"`
			Warnings []string    `json:"warnings"`
			Errors   []struct {
				Message string `json:"message"`
			} `json:"errors"`
		} `json:"data"`
		Thread struct {
			ID string `json:"id"`
		} `json:"thread"`
	} `json:"result"`
}

// The requests of a probe, by ID.
const (
	initialize = "1"
	listHooks  = "2"
	startTurns = "3"
	startTurn  = "4"
)

// converse has Codex list its hooks and take a turn in a folder. It denies what Codex asks.
func converse(in io.Writer, out io.Reader, folder string) (run codexRun, err error) {
	send := func(members map[string]any) { _, _ = in.Write(append(plainJSON(members), '\n')) } // or it has ended, which out says
	call := func(id, method string, params map[string]any) {
		send(map[string]any{"id": json.RawMessage(id), "method": method, "params": params})
	}
	call(initialize, "initialize", map[string]any{"clientInfo": map[string]string{"name": "parley", "version": "1"}})
	for messages := json.NewDecoder(out); ; {
		var p packet
		if err := messages.Decode(&p); err != nil {
			return run, io.EOF // it has ended
		}
		switch {
		case p.Method != "" && p.ID != nil:
			run.asked = true
			send(map[string]any{"id": p.ID, "result": map[string]string{"decision": "decline"}})
		case p.Method == "hook/completed" && p.Params.Run.Status == "failed":
			for _, e := range p.Params.Run.Entries {
				run.failure = strings.TrimSpace(run.failure + " " + e.Text)
			}
		case p.Method == "turn/completed" && p.Params.Turn.Error != nil:
			return run, errors.New(p.Params.Turn.Error.Message)
		case p.Method == "turn/completed":
			return run, nil
		case p.Error != nil:
			return run, errors.New(p.Error.Message)
		}
		switch string(p.ID) {
		case initialize:
			send(map[string]any{"method": "initialized"})
			call(listHooks, "hooks/list", map[string]any{"cwds": []string{folder}})
		case listHooks:
			for _, entry := range p.Result.Data {
				run.hooks, run.warnings = append(run.hooks, entry.Hooks...), append(run.warnings, entry.Warnings...)
				for _, e := range entry.Errors {
					run.warnings = append(run.warnings, e.Message)
				}
			}
			call(startTurns, "thread/start", map[string]any{"cwd": folder, "ephemeral": true})
		case startTurns:
			call(startTurn, "turn/start", map[string]any{
				"threadId": p.Result.Thread.ID, "input": []any{map[string]any{"type": "text", "text": "Try the hook.", "text_elements": []any{}}},
			})
		}
	}
}

// answerResponses answers a request of the Responses API. It reports whether it is one.
func (m *model) answerResponses(w http.ResponseWriter, body []byte) bool {
	var in struct {
		Model string `json:"model"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Input []struct {
			Type   string          `json:"type"`
			Output json.RawMessage `json:"output"`
		} `json:"input"`
	}
	if json.Unmarshal(body, &in) != nil {
		return false
	}
	for _, item := range in.Input {
		if item.Type == "function_call_output" {
			m.keep(textOf(item.Output), false)
		}
	}
	item := map[string]any{
		"type": "message", "id": "msg_probe", "role": "assistant", "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": "Done.", "annotations": []any{}}},
	}
	for tool, argument := range map[string]string{"exec_command": "cmd", "shell_command": "command"} { // it has one of them
		offered := slices.ContainsFunc(in.Tools, func(t struct {
			Name string `json:"name"`
		},
		) bool {
			return t.Name == tool
		})
		if _, made := m.result(); offered && !made {
			arguments := map[string]any{argument: "echo > " + ranFile, "sandbox_permissions": "require_escalated", "justification": "To try the hook."}
			item = map[string]any{
				"type": "function_call", "id": "fc_probe", "call_id": "call_probe", "name": tool, "arguments": string(plainJSON(arguments)), "status": "completed",
			}
		}
	}
	send := events(w)
	response := map[string]any{"id": "resp_probe", "object": "response", "model": in.Model, "status": "in_progress", "output": []any{}}
	send("response.created", map[string]any{"response": response})
	send("response.output_item.added", map[string]any{"output_index": 0, "item": item})
	send("response.output_item.done", map[string]any{"output_index": 0, "item": item})
	response["status"], response["output"] = "completed", []any{item}
	response["usage"] = map[string]any{
		"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
		"input_tokens_details": map[string]int{"cached_tokens": 0}, "output_tokens_details": map[string]int{"reasoning_tokens": 0},
	}
	send("response.completed", map[string]any{"response": response})
	return true
}
