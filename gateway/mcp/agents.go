package mcp

import (
	"context"
	"encoding/json"
	"time"

	"parley"
	"parley/capabilities"
	"parley/gateway/sanitize"
)

// agents is one page of agents.
type agents struct {
	Agents []any  `json:"agents"`
	Cursor string `json:"cursor,omitempty"`
}

// listAgents lists the agents that there are.
func listAgents(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Labels   map[string]string `json:"labels"`
		Statuses []string          `json:"statuses"`
		Cursor   string            `json:"cursor"`
		Limit    int               `json:"limit"`
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	if _, err := capabilities.ParseID(arguments.Cursor); err != nil && arguments.Cursor != "" {
		return nil, parley.Refuse(parley.InvalidArgument, "%.40q is no cursor of this tool", arguments.Cursor)
	}
	filter := map[string]any{}
	if len(arguments.Labels) > 0 {
		filter["labels"] = arguments.Labels
	}
	if len(arguments.Statuses) > 0 {
		filter["statuses"] = arguments.Statuses
	}
	var got struct {
		Agents []map[string]any `json:"agents"`
		Next   string           `json:"next"`
	}
	request := map[string]any{"filter": filter, "after": arguments.Cursor, "limit": limit(arguments.Limit)}
	if err := steadily(ctx, c.agent, "fetch_agents", request, &got); err != nil {
		return nil, err
	}
	return agentsOf(got.Agents, got.Next)
}

// agentsOf shows as many agents as there is room for, and where there are more.
func agentsOf(all []map[string]any, next string) (agents, error) {
	page := agents{Agents: []any{}, Cursor: next}
	size := 0
	for i, agent := range all {
		shown := sanitizeWords(agent)
		text, err := textOf(shown)
		if err != nil {
			return page, err
		}
		if size += len(text); i > 0 && size > maxPageSize {
			page.Cursor, _ = all[i-1]["id"].(string)
			break
		}
		page.Agents = append(page.Agents, shown)
	}
	return page, nil
}

// waitForAgent waits until an agent has finished, failed or needs permission.
func waitForAgent(ctx context.Context, c *call) (any, error) {
	var arguments struct {
		Agent string `json:"agent"`
		waiting
	}
	if err := c.read(&arguments); err != nil {
		return nil, err
	}
	wait, err := arguments.duration()
	if err != nil {
		return nil, err
	}
	if arguments.Agent == "" {
		return nil, parley.Refuse(parley.InvalidArgument, "which agent?").WithHint("list_agents lists them")
	}
	ctx, cancel := context.WithTimeout(ctx, wait+time.Second) // the node is to say what became of the wait
	defer cancel()
	var got any
	request := map[string]any{"agentId": arguments.Agent, "timeoutMs": max(1, wait.Milliseconds())}
	if err := steadily(ctx, c.agent, "wait_for_finish", request, &got); err != nil {
		return nil, err
	}
	return sanitizeWords(got), nil
}

// sanitizeWords is JSON whose texts, which others chose, hide nothing.
func sanitizeWords(v any) any {
	switch v := v.(type) {
	case string:
		return sanitize.Lines(v)
	case []any:
		for i := range v {
			v[i] = sanitizeWords(v[i])
		}
	case map[string]any:
		shown := make(map[string]any, len(v))
		for name, of := range v {
			shown[sanitize.Line(name)] = sanitizeWords(of)
		}
		return shown
	case json.RawMessage, json.Number, bool, float64, nil:
	}
	return v
}
