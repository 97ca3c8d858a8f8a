package backend

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"parley"
	"parley/actors"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/gateway/api"
	"parley/gateway/people"
)

// Below returns the principal of a process below a coding agent, on the node's own socket: what the guest, that the coding agent
// acts for, and the session that it belongs to at each call need, and nothing as the node's host. Without a session it is nil. It
// cancels and amends no form that mayChange refuses.
func (b *Backend) Below(guest capabilities.ID, session func() *actors.Agent, mayChange func(view.Message) error) api.Principal {
	agent := actors.AgentOf(b.node, guest)
	return &principal{agent: agent, account: b.ledger.of(agent), local: true, below: true, session: session, mayChange: mayChange}
}

// outside is what to do to act as the node's host, from below a coding agent.
const outside = "as the node's host, run it in a terminal that no coding agent has started"

// NotHost returns the refusal of what a process below a coding agent does as another than its guest.
func NotHost() *parley.Error {
	return parley.Refuse(parley.NotPermitted, "a coding agent has started this process, which acts for the agent's own guest alone").WithHint(outside)
}

// Unheard returns the refusal of what a process does below a coding agent whose hook has not called, where such agents have hooks.
func Unheard() *parley.Error {
	return parley.Refuse(parley.NotPermitted, "a coding agent has started this process, and its hook has not called, or is not entered: it acts for nobody").
		WithHint(outside + "; parley setup enters the hooks")
}

// fromBelow returns an error as a process below a coding agent reads it. What is not there may be there for the host.
func (p *principal) fromBelow(err error) error {
	if !p.below {
		return err
	}
	switch code := parley.CodeOf(err); code {
	case parley.NoSuchMessage, parley.UnknownName, parley.UnknownRecipient, parley.AgentNotFound, parley.NotPermitted:
		if hint := parley.AsError(err).Hint; code == parley.NotPermitted && hint != "" && hint != outside {
			return err
		}
		return parley.AsError(err).WithHint("a coding agent has started this process, which acts for the agent's own guest; " + outside)
	}
	return err
}

// FolderGuest returns the guest of a coding agent's folder, which it makes if there is none. It stays the same whatever its
// name and title become. Apart is not "" for a coding agent that itself works in that other folder: it has another guest.
func (b *Backend) FolderGuest(ctx context.Context, r api.Register, apart string) (*actors.Agent, error) {
	if err := cmp.Or(CheckCoder(r), checkFolder(r)); err != nil {
		return nil, err
	}
	folder := filepath.Clean(r.Folder)
	if whole, err := filepath.EvalSymlinks(folder); err == nil {
		folder = whole
	}
	made := guestOf(r, folder, apart)
	for range 2 { // another process may make it at the same time
		found, err := b.findGuest(ctx, made)
		if err != nil || found != nil {
			return found, err
		}
		found, err = b.node.Host().Make(ctx, made)
		if parley.CodeOf(err) != parley.NameTaken {
			return found, err
		}
	}
	return nil, parley.Refuse(parley.NameTaken, "%.200q is the name of something else than the guest of this folder", made.Name).
		WithHint("parley name rename %s OTHER", made.Name)
}

// CheckCoder refuses what no coding agent is called.
func CheckCoder(r api.Register) error {
	known := r.Program != "" && len(r.Program) <= 40 && strings.Trim(r.Program, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
	switch {
	case !known:
		return parley.Refuse(parley.InvalidArgument, "%.80q is no name of a coding agent", r.Program)
	case len(r.Title) > 80 || strings.ContainsFunc(r.Title, parley.IsInvisible):
		return parley.Refuse(parley.InvalidArgument, "the title of a coding agent is one line of 80 bytes at most")
	}
	return nil
}

func checkFolder(r api.Register) error {
	if !filepath.IsAbs(r.Folder) || len(r.Folder) > maxFolder {
		return parley.Refuse(parley.InvalidArgument, "the folder of a coding agent is an absolute path of %d bytes at most", maxFolder)
	}
	return nil
}

const (
	maxFolder      = 4096
	maxShownFolder = 60  // bytes up to which the name of a folder stands in a title as it is
	maxLabelFolder = 240 // bytes up to which a folder is a label
)

// guestOf describes the guest of a folder. Its name tells folders of the same name apart: a standing rule for one project
// is none for another.
func guestOf(r api.Register, folder, apart string) actors.NewAgent {
	base := []rune(strings.Map(nameRune, filepath.Base(folder)))
	shown, key, mark := filepath.Base(folder), folder, digestOf(folder)
	if len(shown) > maxShownFolder || strings.ContainsFunc(shown, parley.IsInvisible) {
		shown = string(base[:min(len(base), maxShownFolder)])
	}
	if apart != "" {
		shown += ", started in another folder"
		mark = digestOf(folder, apart)
	}
	if apart != "" || len(key) > maxLabelFolder || strings.ContainsFunc(key, parley.IsInvisible) {
		key = mark
	}
	return actors.NewAgent{
		Kind:   events.Guest,
		Name:   fmt.Sprintf("%s-%s-%.6s", r.Program, string(base[:min(len(base), 40)]), mark),
		Title:  r.Title + " · " + shown,
		Labels: map[string]string{people.LabelKind: people.CodingAgent, people.LabelProgram: r.Program, people.LabelFolder: key},
	}
}

// nameRune returns a character of a name that can be typed: r, or a dash in its place.
func nameRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
		return r
	}
	return '-'
}

func digestOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// findGuest returns the guest that a description fits: the one under its name or, since names change, the oldest of the
// host's guests with its labels. It returns nil if there is none.
func (b *Backend) findGuest(ctx context.Context, wanted actors.NewAgent) (*actors.Agent, error) {
	named, err := b.node.ActAs(ctx, wanted.Name)
	if err == nil {
		now, err := named.Status(ctx)
		if err != nil || isGuest(now, wanted, b.node.Host().ID()) {
			return named, err
		}
	} else if code := parley.CodeOf(err); code != parley.UnknownName && code != parley.NotPermitted {
		return nil, err
	}
	list, err := b.node.Host().Agents().List(ctx, view.AgentFilter{Labels: wanted.Labels})
	if err != nil {
		return nil, err
	}
	for _, one := range list {
		if isGuest(one, wanted, b.node.Host().ID()) && one.Name != "" {
			return b.node.Host().Agents().Find(ctx, one.ID.String())
		}
	}
	return nil, nil
}

// isGuest reports whether an agent is the guest of a folder: the host has made it, and its labels are those.
func isGuest(a view.AgentStatus, wanted actors.NewAgent, host capabilities.ID) bool {
	for label, value := range wanted.Labels {
		if a.Labels[label] != value {
			return false
		}
	}
	return a.Kind == string(events.Guest) && a.Host == host && a.Maker == host
}

// NamedGuest returns the guest that the host holds under a name.
func (b *Backend) NamedGuest(ctx context.Context, name string) (*actors.Agent, error) {
	agent, err := b.node.ActAs(ctx, name)
	if err != nil {
		return nil, err
	}
	now, err := agent.Status(ctx)
	if err == nil && now.Kind != string(events.Guest) {
		err = parley.Refuse(parley.NotPermitted, "a coding agent acts for a guest, and %.200q is a host", name).WithHint("parley mkguest NAME makes a guest")
	}
	return agent, err
}

// statusForHost returns the status of an agent as the node's host sees it.
func (b *Backend) statusForHost(ctx context.Context, agent *actors.Agent) (view.AgentStatus, error) {
	now, err := agent.Status(ctx)
	if err != nil {
		return now, err
	}
	return b.node.Host().Agents().Seen(ctx, now)
}

// NameOf returns the name under which the node's host holds the guest of a coding agent.
func (b *Backend) NameOf(ctx context.Context, guest capabilities.ID) (string, error) {
	seen, err := b.statusForHost(ctx, actors.AgentOf(b.node, guest))
	if err == nil && seen.Name == "" {
		err = parley.Refuse(parley.UnknownName, "the node's host no longer holds the guest of this coding agent").
			WithHint("parley name store NAME %s has it hold it again", capabilities.Locator{ID: guest, Kind: capabilities.KindAgent})
	}
	return seen.Name, err
}
