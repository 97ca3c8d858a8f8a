package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/writing"
)

// registerTime bounds a registration. A node that does not answer holds no call up for longer.
const registerTime = 5 * time.Second

// Register has the node take what the agent's process has started, this process too, for the agent's session, or for the guest
// of the folder it works in, or the one that the options name. It is for what serves a session.
func (a Agent) Register(ctx context.Context, o Options) (api.Registered, error) {
	call := toolCall{}
	if a.session != "" {
		call.session, _ = o.Env(a.session)
	}
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	wanted := a.registration(call, o)
	wanted.Server = true
	return a.registered(ctx, wanted, o)
}

func (a Agent) register(ctx context.Context, call toolCall, o Options) (done api.Registered, err error) {
	ctx, cancel := context.WithTimeout(ctx, registerTime)
	defer cancel()
	wanted := a.registration(call, o)
	if call.event == PreToolUse && isReadTool(call.tool) && call.part == "" {
		wanted.Mail = &api.MailMoment{Moment: api.MomentProof}
	}
	if call.event == PreToolUse || call.event == PermissionRequest {
		wanted.Writes = a.writes(call, o)
	}
	return a.registered(ctx, wanted, o)
}

// writes returns the files that a call would write, under all names by which another agent may have a lease on them; nil for a call that
// writes none, as far as its input says.
func (a Agent) writes(call toolCall, o Options) *api.Writes {
	folder := call.folder
	if !filepath.IsAbs(folder) {
		folder = a.workFolder(call, o.Env)
	}
	home, _ := o.Env("HOME")
	return writing.Of(call.tool, call.input, folder, home)
}

// registered registers the agent. Where no node answers, the next one is left word.
func (a Agent) registered(ctx context.Context, wanted api.Register, o Options) (done api.Registered, _ error) {
	text, err := o.exchange(ctx, http.MethodPost, api.RegisterPath, wanted)
	if code := parley.CodeOf(err); code == parley.NotRunning || code == parley.Timeout { // it may never have heard of this
		wanted.Mail, wanted.Writes = nil, nil
		err = cmp.Or(o.leave(wanted), err)
	}
	if err != nil {
		return done, err
	}
	if json.Unmarshal(text, &done) != nil || done.Name == "" {
		return done, parley.Refuse(parley.Internal, "the node's answer cannot be read")
	}
	return done, nil
}

// registration returns what the node has to know of the agent.
func (a Agent) registration(call toolCall, o Options) api.Register {
	wanted := api.Register{
		Acting: api.Acting{As: o.As}, Program: a.Name, Title: a.Title, Folder: a.workFolder(call, o.Env), Session: call.session, Single: a.single,
	}
	wanted.Process, _ = a.Process(o.Env)
	return wanted
}

// maxUnheard bounds the registrations that found no node. The oldest gives way, as of the sessions that a node keeps.
const maxUnheard = 4096

// leave has the next node of the state folder take a registration up. Without a session nothing finds what the agent starts. An
// error is a failure of the gate.
func (o Options) leave(wanted api.Register) error {
	if o.Unheard == "" || wanted.Session == "" {
		return nil
	}
	path := filepath.Join(o.Unheard, digest(wanted.Session)+".json")
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	text, err := json.Marshal(wanted)
	if err == nil {
		err = os.MkdirAll(o.Unheard, 0o700)
	}
	if err == nil {
		err = makeRoom(o.Unheard)
	}
	if err == nil {
		err = writeNew(path, text)
	}
	if err != nil {
		return parley.Refuse(parley.Internal, "no node answers, and the session cannot be noted for the next one: %v", err)
	}
	return nil
}

// makeRoom removes the oldest file of a folder that is full.
func makeRoom(folder string) error {
	all, err := os.ReadDir(folder)
	if err != nil || len(all) < maxUnheard {
		return err
	}
	var oldest fs.FileInfo
	for _, f := range all {
		if info, err := f.Info(); err == nil && (oldest == nil || info.ModTime().Before(oldest.ModTime())) { // else another has removed it
			oldest = info
		}
	}
	if oldest == nil {
		return nil
	}
	if err := os.Remove(filepath.Join(folder, oldest.Name())); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeNew writes a file that is there whole or not at all.
func writeNew(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "new-*") // its mode is 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
