package main

// codex answers the hooks of Codex, which are made after Claude Code's. As its source of 2026 reads their output:
//
//   - PermissionRequest takes a decision with behavior and message, and nothing else: an answer with updatedInput,
//     updatedPermissions or a true interrupt is dropped. No output is no decision, and the approval goes on as it would.
//     Its input has a turn_id and no tool_use_id.
//   - PreToolUse takes a deny with a reason. It refuses allow, but for a changed input, and ask: what is not denied
//     takes its usual way, so nothing is said of it.
//   - systemMessage is shown as a warning. Exit status 2 with words on standard error denies.
func codex() codingAgent {
	return codingAgent{name: "codex", title: "Codex", answer: codexAnswer, setup: setupCodex}
}

func codexAnswer(event string, r ruling) *hookAnswer {
	switch {
	case event == permissionRequest:
		return onPermissionRequest(r)
	case event == preToolUse && !r.decided:
		return remark(r)
	case event == preToolUse && !r.allowed:
		return &hookAnswer{Specific: &hookSpecific{Event: preToolUse, Permission: hookDeny, Reason: r.reason}}
	}
	return nil
}
