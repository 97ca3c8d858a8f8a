package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/diff"

	"parley/actors/runtime"
)

// Bounds of the calls that are remembered, for a request for permission that only names one.
const (
	keptCalls    = 64
	keptCallSize = 320 << 10 // bytes of one update
	keptSize     = 4 << 20   // bytes of their titles, inputs and contents
)

// toolCall is a call of a tool as an agent describes it, or a change of one.
type toolCall struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Kind      string          `json:"kind"`
	Status    string          `json:"status"`
	RawInput  json.RawMessage `json:"rawInput"`
	Content   json.RawMessage `json:"content"`
	Locations []location      `json:"locations"`

	lost           lostParts
	changes        bool // it changes files
	added, removed int  // lines of its newest diffs
	line           string
}

// location is a file that a call is about.
type location struct {
	Path string `json:"path"`
}

// lostParts are the parts of a call that were too long to be kept.
type lostParts struct{ title, input, content bool }

// with returns the call after a change. A part that was lost stays so until it is given anew.
func (c toolCall) with(change toolCall) toolCall {
	c.ID = change.ID
	for _, part := range []struct{ old, new *string }{{&c.Kind, &change.Kind}, {&c.Status, &change.Status}} {
		if *part.new != "" {
			*part.old = *part.new
		}
	}
	if change.Title != "" || change.lost.title {
		c.Title, c.lost.title = change.Title, change.lost.title
	}
	if isGiven(change.RawInput) || change.lost.input {
		c.RawInput, c.lost.input = change.RawInput, change.lost.input
	}
	if isGiven(change.Content) || change.lost.content {
		c.Content, c.lost.content = change.Content, change.lost.content
	}
	if len(change.Locations) > 0 {
		c.Locations = change.Locations
	}
	if change.changes {
		c.changes, c.added, c.removed = true, change.added, change.removed
	}
	return c
}

// isShowable reports whether the whole call can be shown.
func (c toolCall) isShowable() bool { return c.lost == lostParts{} }

// size returns the bytes of the call's title, input, content and locations.
func (c toolCall) size() int {
	size := len(c.Title) + len(c.Kind) + len(c.Status) + len(c.RawInput) + len(c.Content)
	for _, l := range c.Locations {
		size += len(l.Path)
	}
	return size
}

// drop removes the parts that may be long.
func (c *toolCall) drop() {
	c.lost = lostParts{
		title: c.lost.title || c.Title != "", input: c.lost.input || isGiven(c.RawInput), content: c.lost.content || isGiven(c.Content),
	}
	c.Title, c.RawInput, c.Content, c.Locations = "", nil, nil, nil
	c.Kind, c.Status = plainName(c.Kind), plainName(c.Status)
}

// countLines counts the lines that the diffs of a call add and remove. Without locations it names their files.
func (c *toolCall) countLines() {
	var diffs []struct{ Type, Path, OldText, NewText string }
	if json.Unmarshal(c.Content, &diffs) != nil {
		return
	}
	named := len(c.Locations) > 0
	for _, d := range diffs {
		if d.Type != "diff" {
			continue
		}
		c.changes = true
		if !named {
			c.Locations = append(c.Locations, location{d.Path})
		}
		for i, line := range strings.Split(string(diff.Diff("a", ended(d.OldText), "b", ended(d.NewText))), "\n") {
			switch {
			case i < 3: // the names of the texts
			case strings.HasPrefix(line, "+"):
				c.added++
			case strings.HasPrefix(line, "-"):
				c.removed++
			}
		}
	}
}

// ended returns a text whose last line has an end.
func ended(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(strings.TrimSuffix(text, "\n") + "\n")
}

// describe returns the call in one line: its kind, its command or files, the lines that it adds and removes, and its
// status.
func (c toolCall) describe(by agentInfo) string {
	var words []string
	if isKind(c.Kind) {
		words = append(words, c.Kind)
	}
	if subject := c.subject(by); subject != "" || len(words) == 0 {
		words = append(words, cmp.Or(subject, "tool"))
	}
	if c.changes {
		words = append(words, fmt.Sprintf("+%d −%d", c.added, c.removed))
	}
	if c.Status != "" {
		words = append(words, "· "+strings.ReplaceAll(plainName(c.Status), "_", " "))
	}
	return strings.Join(words, " ")
}

// subject returns the command of a call, its files, or its title.
func (c toolCall) subject(by agentInfo) string {
	if command, _, ok := commandOf(c, by); ok {
		line, _ := textOf(command["command"])
		return plainName(line)
	}
	var files []string
	for _, l := range c.Locations[:min(len(c.Locations), maxShownFiles)] {
		files = append(files, plainName(by.relative(l.Path)))
	}
	if more := len(c.Locations) - maxShownFiles; more > 0 {
		files = append(files, fmt.Sprintf("and %d more", more))
	}
	return cmp.Or(strings.Join(files, " "), plainName(c.Title))
}

// maxShownFiles bounds the files in the line of a call.
const maxShownFiles = 3

// calls has the newest calls of a turn.
type calls struct {
	by agentInfo

	mu    sync.Mutex
	byID  map[string]toolCall
	order []string
}

// note adds an update of a call. It returns the call in one line, "" if the line is the same as before.
func (c *calls) note(update json.RawMessage) string {
	var change toolCall
	if json.Unmarshal(update, &change) != nil || len(change.ID) > runtime.MaxID {
		return ""
	}
	if change.size() > keptCallSize {
		change.drop()
	} else {
		change.countLines()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.byID[change.ID]; !known {
		if len(c.order) == keptCalls {
			delete(c.byID, c.order[0])
			c.order = slices.Delete(c.order, 0, 1)
		}
		c.order = append(c.order, change.ID)
	}
	call := c.byID[change.ID].with(change)
	line := call.describe(c.by)
	if line == call.line {
		line = ""
	} else {
		call.line = line
	}
	c.byID[change.ID] = call
	c.shrink()
	return line
}

// shrink drops the inputs of the oldest calls until the others are within keptSize.
func (c *calls) shrink() {
	size := 0
	for _, call := range c.byID {
		size += call.size()
	}
	for _, id := range c.order {
		if size <= keptSize {
			return
		}
		call := c.byID[id]
		size -= call.size()
		call.drop()
		c.byID[id] = call
	}
}

// complete returns a call together with its earlier updates.
func (c *calls) complete(call toolCall) toolCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID[call.ID].with(call)
}
