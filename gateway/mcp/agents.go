package mcp

import (
	"context"
	"encoding/json"
	"time"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// agents is one page of agents.
type agents struct {
	Agents []any  `json:"agents"`
	Cursor string `json:"cursor,omitempty"`
}

// listAgents lists agents.
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
	request := api.FetchAgentsRequest{
		Filter: view.AgentFilter{Labels: arguments.Labels, Statuses: arguments.Statuses},
		Paging: api.Paging{After: arguments.Cursor, Limit: limit(arguments.Limit)},
	}
	got, err := api.FetchAgents.Do(ctx, steady{c.agent}, request)
	if err != nil {
		return nil, err
	}
	return agentsOf(got.Agents, got.Next)
}

// agentsOf returns as many agents as fit a page, and the cursor of the next page.
func agentsOf(all []view.AgentStatus, next string) (agents, error) {
	page := agents{Agents: []any{}, Cursor: next}
	size := 0
	for i, agent := range all {
		shown, err := sanitizedWords(agent)
		if err != nil {
			return page, err
		}
		text, err := textOf(shown)
		if err != nil {
			return page, err
		}
		if size += len(text); i > 0 && size > maxPageSize {
			page.Cursor = all[i-1].ID.String()
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
	ctx, cancel := context.WithTimeout(ctx, wait+time.Second) // the node reports the end of the wait
	defer cancel()
	request := api.WaitForFinishRequest{AgentID: arguments.Agent, TimeoutMs: max(1, wait.Milliseconds())}
	got, err := api.WaitForFinish.Do(ctx, steady{c.agent}, request)
	if err != nil {
		return nil, err
	}
	return sanitizedWords(got)
}

// sanitizedWords returns the JSON of a value, with invisible characters in texts escaped.
func sanitizedWords(shown any) (any, error) {
	text, err := json.Marshal(shown)
	if err != nil {
		return nil, err
	}
	var plain any
	err = json.Unmarshal(text, &plain)
	return sanitizeWords(plain), err
}

// sanitizeWords escapes invisible characters in the texts of JSON.
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
