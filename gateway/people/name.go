package people

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"parley"
	"parley/actors/view"
	"parley/capabilities"
)

// The labels of coding agents and of their sessions, which the node alone gives.
const (
	LabelKind    = "kind"
	LabelProgram = "program"
	LabelFolder  = "folder" // an absolute path, or a digest of one that is no label

	CodingAgent   = "coding-agent"   // of LabelKind
	CodingSession = "coding-session" // the same
)

// mark stands between the program and the folder in the title and the name of a coding agent.
const mark = " · "

// isCoder reports whether labels are those of a coding agent or of a session of one.
func isCoder(labels map[string]string) bool {
	return labels[LabelKind] == CodingAgent || labels[LabelKind] == CodingSession
}

// CheckDescription refuses with NOT_PERMITTED a title and labels by which an agent would look like a coding agent, or like
// another one than it is. Now is the agent as it is; nil for one that is made. The node itself makes coding agents without it.
func CheckDescription(title string, labels map[string]string, now *view.AgentStatus) error {
	if now != nil && isCoder(now.Labels) {
		for _, l := range []string{LabelKind, LabelProgram, LabelFolder} {
			if labels[l] != now.Labels[l] {
				return parley.Refuse(parley.NotPermitted, "the label %s of a coding agent is its node's", l)
			}
		}
		if title != now.Title {
			return parley.Refuse(parley.NotPermitted, "a coding agent is called after its program and its folder").
				WithHint("parley name gives it another name")
		}
		return nil
	}
	if isCoder(labels) {
		return parley.Refuse(parley.NotPermitted, "the label %s=%s is for coding agents, which the node makes", LabelKind, labels[LabelKind]).
			WithHint("parley setup has a coding agent be one")
	}
	if strings.Contains(title, mark) && (now == nil || title != now.Title) {
		return parley.Refuse(parley.NotPermitted, "a title with %q is for coding agents", mark)
	}
	return nil
}

// You is what the reader is called.
const You = "you"

// Names are the names of agents for one reader.
type Names struct {
	reader capabilities.ID
	named  map[capabilities.ID]string
}

// coder is a coding agent or a session of one.
type coder struct {
	id      capabilities.ID
	program string
	folder  string // "" if it is not known
	shown   string // its last part
	created capabilities.Time
	address bool
}

// NamesOf returns the names of agents as a reader sees them.
func NamesOf(reader capabilities.ID, agents []view.AgentStatus) *Names {
	n := &Names{reader: reader, named: make(map[capabilities.ID]string, len(agents))}
	var coders []coder
	for i := range agents {
		a := &agents[i]
		if c, ok := coderOf(a, reader); ok {
			coders = append(coders, c)
			continue
		}
		n.named[a.ID] = nameOf(a.Name, a.Title)
	}
	n.nameCoders(coders)
	return n
}

// coderOf returns what an agent is as a coding agent. It is one if the reader's node has made it for a program in a folder: no
// agent makes or describes another with the labels of one.
func coderOf(a *view.AgentStatus, reader capabilities.ID) (c coder, ok bool) {
	program := a.Labels[LabelProgram]
	if !isCoder(a.Labels) || a.ID.Node != reader.Node || program == "" {
		return c, false
	}
	kind := a.Labels[LabelKind]
	title, shown, ok := strings.Cut(a.Title, mark)
	if !ok || title == "" || shown == "" {
		return c, false
	}
	c = coder{id: a.ID, program: title, shown: shown, created: a.Created, address: kind == CodingAgent}
	if folder := a.Labels[LabelFolder]; path.IsAbs(folder) {
		c.folder, c.shown = folder, path.Base(folder)
	} else if kind == CodingSession {
		if at := strings.LastIndex(shown, mark); at > 0 {
			c.shown = shown[:at]
		}
	}
	return c, true
}

// nameCoders names coding agents. Those of folders with one name are told by the folder above.
func (n *Names) nameCoders(all []coder) {
	folders := map[string][]string{} // by program and last part
	for _, c := range all {
		key := c.program + "\x00" + c.shown
		if !slices.Contains(folders[key], c.folder) {
			folders[key] = append(folders[key], c.folder)
		}
	}
	sessions := map[string][]coder{} // by program and folder
	for _, c := range all {
		if some := folders[c.program+"\x00"+c.shown]; len(some) > 1 && c.folder != "" {
			c.shown = apart(c.folder, some)
		}
		name := c.program + mark + c.shown
		if c.address {
			n.named[c.id] = name
			continue
		}
		sessions[name] = append(sessions[name], c)
	}
	for name, some := range sessions {
		slices.SortFunc(some, func(a, b coder) int { return cmp.Or(cmp.Compare(a.created, b.created), a.id.Compare(b.id)) })
		for i, c := range some {
			n.named[c.id] = name
			if i > 0 {
				n.named[c.id] = fmt.Sprintf("%s · %d", name, i+1)
			}
		}
	}
}

// apart returns the end of a folder's path that no other of several has.
func apart(folder string, all []string) string {
	parts := strings.Split(strings.Trim(folder, "/"), "/")
	for n := 2; n <= len(parts); n++ {
		end := strings.Join(parts[len(parts)-n:], "/")
		same := 0
		for _, o := range all {
			if o == "/"+end || strings.HasSuffix(o, "/"+end) {
				same++
			}
		}
		if same < 2 {
			return end
		}
	}
	return folder
}

func nameOf(name, title string) string {
	return cmp.Or(name, title, "an agent without a name")
}

// Known returns the name of an agent among those given; "" for any other.
func (n *Names) Known(id capabilities.ID) string { return n.named[id] }

// Of returns the name of an agent. Pet is the reader's own name for it, for one that is not among those given.
func (n *Names) Of(id capabilities.ID, pet string) string {
	if id == n.reader {
		return You
	}
	if name := n.named[id]; name != "" {
		return name
	}
	if pet == "" && id.Node != n.reader.Node {
		return "an agent of another computer"
	}
	return nameOf(pet, "")
}
