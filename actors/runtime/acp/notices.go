package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"parley/actors/runtime"
)

// thoughtSize bounds the part of a thought in one notice, so that its JSON fits a piece of output.
const thoughtSize = 2 << 10

// notification is an update of a session.
type notification struct {
	SessionID string          `json:"sessionId"`
	Update    json.RawMessage `json:"update"`
}

// sessionUpdate is the part of an update that is read.
type sessionUpdate struct {
	Kind    string `json:"sessionUpdate"`
	Content struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

// notices converts an agent's updates into output and notices. Only the turn's goroutine uses it, except for calls.
type notices struct {
	output  *runtime.OutputBuffer
	thought strings.Builder
	due     <-chan time.Time // when to flush the thought; nil if there is none
	calls   *calls
}

// update handles an update.
func (n *notices) update(ctx context.Context, update json.RawMessage) {
	var u sessionUpdate
	// a tool call's content is a list, which is no error here
	_ = json.Unmarshal(update, &u)
	if u.Kind != "agent_thought_chunk" {
		n.flush(ctx)
	}
	switch u.Kind {
	case "agent_message_chunk":
		if u.Content.Type == "text" {
			n.output.Add(ctx, runtime.Output, u.Content.Text)
		} else {
			n.report(ctx, u.Kind, update)
		}
	case "agent_thought_chunk":
		n.think(ctx, u.Content.Text)
	case "tool_call", "tool_call_update":
		n.reportCall(ctx, u.Kind, update)
	case "plan", "plan_update", "plan_removed":
		n.report(ctx, u.Kind, update)
	}
}

// think collects a thought.
func (n *notices) think(ctx context.Context, text string) {
	for text != "" {
		end := len(text)
		if room := thoughtSize - n.thought.Len(); end > room {
			end = runtime.CutAt(text, room)
		}
		n.thought.WriteString(text[:end])
		if text = text[end:]; text != "" {
			n.flush(ctx)
		}
	}
	if n.due == nil && n.thought.Len() > 0 {
		n.due = time.After(runtime.FlushDelay)
	}
}

// flush writes the collected thought.
func (n *notices) flush(ctx context.Context) {
	n.due = nil
	if n.thought.Len() > 0 {
		text := n.thought.String()
		n.thought.Reset()
		n.put(ctx, map[string]any{"sessionUpdate": "agent_thought_chunk", "text": text})
	}
}

// reportCall writes an update of a tool call, together with the call in one line where that has changed.
func (n *notices) reportCall(ctx context.Context, kind string, update json.RawMessage) {
	line := n.calls.note(update)
	if line == "" {
		n.report(ctx, kind, update)
		return
	}
	// the node's line comes last, so that it holds against one of the agent
	text := strings.TrimSuffix(compact(update), "}") + `,"` + lineKey + `":` + string(plainJSON(line)) + "}"
	if len(text) <= runtime.MaxText {
		n.output.Put(ctx, runtime.Notice, text)
		return
	}
	n.brief(ctx, kind, update, line)
}

// lineKey is the key of the line in a notice about a tool call.
const lineKey = "parley/line"

// report writes an update, or a summary of it if it is too long.
func (n *notices) report(ctx context.Context, kind string, update json.RawMessage) {
	var b bytes.Buffer
	if json.Compact(&b, update) == nil && b.Len() <= runtime.MaxText {
		n.output.Put(ctx, runtime.Notice, b.String())
		return
	}
	n.brief(ctx, kind, update, "")
}

// brief writes the summary of an update that is too long.
func (n *notices) brief(ctx context.Context, kind string, update json.RawMessage, line string) {
	var c toolCall
	_ = json.Unmarshal(update, &c) // what is wrong in it is left out
	brief := map[string]any{"sessionUpdate": kind, "cut": true}
	for name, text := range map[string]string{"toolCallId": c.ID, "title": c.Title, "kind": c.Kind, "status": c.Status} {
		if text != "" {
			brief[name] = plainName(text)
		}
	}
	if line != "" {
		brief[lineKey] = line
	}
	n.put(ctx, brief)
}

func (n *notices) put(ctx context.Context, v map[string]any) {
	if text, err := json.Marshal(v); err == nil {
		n.output.Put(ctx, runtime.Notice, string(text))
	}
}
