package main

// claudeCode answers the hooks of Claude Code. As its hook reference of October 2026 has it:
//
//   - PermissionRequest runs when it is about to ask, and has no tool_use_id; its decision allows or denies, and a
//     hook without one leaves the prompt as it is. Rules in its settings that deny or ask still hold after an allow.
//   - PreToolUse runs before every call; permissionDecision is allow, deny or ask, its reason goes to the model where
//     it denies and to the person otherwise.
//   - systemMessage is shown to the person. Exit status 2 blocks on PreToolUse, and JSON is read at 0.
//   - AskUserQuestion and ExitPlanMode want a person's own answer: to allow them is not enough.
//   - CLAUDE_PROJECT_DIR has the project's root in a hook's environment.
func claudeCode() codingAgent {
	return codingAgent{
		name: "claude-code", title: "Claude Code", folder: "CLAUDE_PROJECT_DIR",
		own:    []string{"AskUserQuestion", "ExitPlanMode"},
		answer: claudeAnswer, setup: setupClaude,
	}
}

func claudeAnswer(event string, r ruling) *hookAnswer {
	switch event {
	case permissionRequest:
		return onPermissionRequest(r)
	case preToolUse:
		s := &hookSpecific{Event: preToolUse, Permission: hookAsk, Reason: "Parley: " + r.reason}
		switch {
		case r.decided && r.allowed:
			s.Permission, s.Reason = hookAllow, r.reason
		case r.decided:
			s.Permission, s.Reason = hookDeny, r.reason
		}
		return &hookAnswer{Specific: s}
	}
	return nil // not known what was asked: standard error has it
}
