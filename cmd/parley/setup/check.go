package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley"
	"parley/cmd/parley/hook"
)

// Check reports how Parley is entered in Claude Code's settings: in words, and whether that asks in every mode. It reports
// no words where neither settings nor the program are found.
func Check(ctx context.Context, o Options) (words string, good bool) {
	s := settings{Options: o, agent: hook.ClaudeCode()}
	paths := []string{s.claudeFiles().hooks}
	s.Project = true
	paths = append(paths, s.claudeFiles().hooks)
	var entered, missing []string
	for _, path := range paths {
		events, err := s.enteredIn(path)
		if err != nil {
			return err.Error(), false
		}
		entered = append(entered, events...)
	}
	for _, h := range s.claudeHooks("") {
		if !slices.Contains(entered, h.event) {
			missing = append(missing, h.event)
		}
	}
	version, found := claudeVersion(ctx)
	switch {
	case len(entered) == 0 && !found:
		return "", true
	case len(entered) == 0:
		return "not set up: parley setup claude-code", true
	case len(missing) > 0:
		return fmt.Sprintf("no hook on %s, so not every mode asks: parley setup claude-code enters it", strings.Join(missing, ", ")), false
	case !found:
		return "asks in every mode; the program claude is not on the path, so its version is not known", true
	case isOlder(version, LeastClaudeCode):
		return fmt.Sprintf("version %s is too old to ask in every mode: at least %s", version, LeastClaudeCode), false
	}
	return "asks in every mode, version " + version, true
}

// enteredIn returns the events on which a file has Parley's hook.
func (s settings) enteredIn(path string) (events []string, err error) {
	f, err := readSettings(path)
	if err != nil {
		return nil, err
	}
	all, ok := readObject(f.before)
	if !ok {
		return nil, parley.Refuse(parley.InvalidArgument, "%s is no JSON object, or has comments", f.Path)
	}
	hooks, _ := readObject(all.get("hooks")) // empty where they are none
	for _, event := range hooks {
		var groups []struct {
			Hooks []json.RawMessage `json:"hooks"`
		}
		if json.Unmarshal(event.value, &groups) != nil {
			continue
		}
		for _, g := range groups {
			if slices.ContainsFunc(g.Hooks, func(h json.RawMessage) bool { return isOwnHook(h, s.agent.Name) }) {
				events = append(events, event.name)
			}
		}
	}
	return events, nil
}

// claudeVersion returns the version of the program claude on the path, and whether there is one.
func claudeVersion(ctx context.Context) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "claude", "--version").Output()
	version, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	return version, err == nil && version != ""
}

// isOlder reports whether a version comes before another. Both are numbers between dots.
func isOlder(version, than string) bool {
	a, b := strings.Split(version, "."), strings.Split(than, ".")
	for i := range min(len(a), len(b)) {
		x, _ := strconv.Atoi(a[i])
		y, _ := strconv.Atoi(b[i])
		if x != y {
			return x < y
		}
	}
	return len(a) < len(b)
}
