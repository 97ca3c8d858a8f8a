package hook

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// entry returns how Claude Code was started: "cli" in a terminal, "sdk-cli" with -p.
func entry(env func(string) (string, bool)) string {
	name, _ := env("CLAUDE_CODE_ENTRYPOINT")
	return name
}

func isInTerminal(env func(string) (string, bool)) bool { return entry(env) == "cli" }

func isPrinting(env func(string) (string, bool)) bool { return entry(env) == "sdk-cli" }

// leftByClaudeCode reports whether PreToolUse leaves a call to the rules of Claude Code: a call that needs no question,
// one that the user's settings allow, or one for which PermissionRequest follows. PermissionRequest is called only where
// Claude Code would show a prompt of its own. In a terminal that is certain in the mode default for some tools, and for a plan.
// PreToolUse is called in every mode, in a terminal or not, for the calls of subagents too.
func leftByClaudeCode(call toolCall, folder string, env func(string) (string, bool)) bool {
	if entry(env) == "cli" && (call.mode == "default" && isShown(call.tool) || call.tool == planTool) {
		return true
	}
	if needsNoQuestion(call, folder, env) {
		return true
	}
	return slices.ContainsFunc(allowedBySettings(folder, env), func(entry string) bool { return allowsCall(entry, call) })
}

// ClaudeConfig returns the folder with a person's settings of Claude Code, "" without one.
func ClaudeConfig(env func(string) (string, bool)) string {
	if set, ok := env("CLAUDE_CONFIG_DIR"); ok && filepath.IsAbs(set) {
		return set
	}
	if home, ok := env("HOME"); ok && filepath.IsAbs(home) {
		return filepath.Join(home, ".claude")
	}
	return ""
}

// AllowedTools returns the rules of the settings for a folder that allow all calls of a tool. The hook leaves these to Claude
// Code. It returns each rule once, and none for a tool that needs no question.
func AllowedTools(folder string, env func(string) (string, bool)) (rules []string) {
	for _, rule := range allowedBySettings(folder, env) {
		tool, _, limited := strings.Cut(rule, "(")
		isAsked := tool != "mcp__"+ServerName && !slices.ContainsFunc(ClaudeTools(), func(t ClaudeTool) bool { return t.Name == tool && !t.Asked })
		if tool != "" && isAsked && (!limited || rule == "Bash(*)") && !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return rules
}

// allowsCall reports whether a permission rule of Claude Code allows a call. It understands a tool by its name, all
// tools of an MCP server, and a domain. It also understands a command line, and the beginning of a simple one. Any
// other rule allows nothing here.
func allowsCall(entry string, call toolCall) bool {
	tool, rest, limited := strings.Cut(entry, "(")
	if !limited {
		return tool == call.tool || strings.HasPrefix(tool, "mcp__") && strings.HasPrefix(call.tool, strings.TrimSuffix(tool, "__*")+"__")
	}
	spec, closed := strings.CutSuffix(rest, ")")
	if !closed || tool != call.tool {
		return false
	}
	switch tool {
	case "Bash":
		line, ok := textMember(call.input, "command")
		return ok && allowsCommand(spec, line)
	case "WebFetch":
		address, ok := textMember(call.input, "url")
		domain, of := strings.CutPrefix(spec, "domain:")
		at, err := url.Parse(address)
		return ok && of && err == nil && domain != "" && at.Hostname() == domain
	}
	return false
}

// allowsCommand reports whether a rule for Bash allows a command line: the very line, or the beginning of a simple
// command, as in "npm run:*" and "npm run *".
func allowsCommand(spec, line string) bool {
	if spec == "*" || spec == line {
		return true
	}
	words, open := strings.CutSuffix(spec, ":*")
	if !open {
		words, open = strings.CutSuffix(spec, " *")
	}
	if !open || words == "" || strings.ContainsAny(words, "*") || strings.ContainsAny(line, "|&;<>()$`\\\n\r{}") {
		return false
	}
	return line == words || strings.HasPrefix(line, words+" ")
}
