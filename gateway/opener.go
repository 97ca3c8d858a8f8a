package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/actors"
	"parley/actors/runtime"
	"parley/actors/view"
	"parley/capabilities"
	"parley/gateway/api"
	"parley/gateway/backend"
	"parley/gateway/bridge"
	"parley/gateway/httpd"
	"parley/internal/regular"
)

// opener is the process that has opened a connection to the node's own socket.
type opener struct {
	conn    net.Conn
	process runtime.Process // zero for one that cannot be seen from here

	mu    sync.Mutex
	notes uint64 // how many processes were noted when its owner was looked up
	owned runtime.Owner
	err   error
}

// coders are the coding agents whose processes and sessions are known. What is below them acts for their guests. They are in a file,
// so that a node that restarts knows them.
type coders struct {
	server *Server
	file   string // "" for none

	registering sync.Mutex

	mu   sync.Mutex
	long map[*opener]bool // connections of WebSockets whose sessions are the host's
}

// notedCoders is the file.
type notedCoders struct {
	Processes []notedProcess    `json:"processes"`
	Sessions  []runtime.Session `json:"sessions"` // also of agents that have ended
	Programs  []string          `json:"programs,omitempty"`
}

type notedProcess struct {
	runtime.Process
	Agent capabilities.ID `json:"agent"`
}

const (
	maxNoted   = 4096 // processes in the file
	maxSession = 128  // bytes of a session's ID
)

// CheckCoders refuses a file with the processes of coding agents that cannot be read, with NOT_PERMITTED: what is below a
// coding agent would call as the host. A node asks before it opens its log.
func CheckCoders(file string) error {
	_, err := readCoders(file)
	if err == nil {
		_, err = readUnheard(file)
	}
	return err
}

// readCoders reads a file with the processes of coding agents. There are none without the file.
func readCoders(file string) (all notedCoders, err error) {
	text, err := regular.Read(file)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		err = unknownCoders(file, err)
	}
	return all, err
}

// load reads the file, and takes up the registrations that found no node.
func (c *coders) load() error {
	if c.file == "" {
		return nil
	}
	if err := loadCoders(c.file, c.server.node.Programs().Launcher()); err != nil {
		return err
	}
	known, err := readCoders(c.file)
	if err != nil {
		return err
	}
	for _, one := range known.Processes {
		c.server.coding.Open(one.Agent)
	}
	for _, one := range known.Sessions {
		c.server.coding.Open(one.Agent)
	}
	all, err := readUnheard(c.file)
	if err != nil || len(all) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), registerTime)
	defer cancel()
	for _, wanted := range all {
		guest, err := c.guest(ctx, wanted, "")
		if err != nil && wanted.As != "" { // who is not there any more
			wanted.As = ""
			guest, err = c.guest(ctx, wanted, "")
		}
		if err == nil {
			err = c.note(runtime.Process{}, wanted.Session, guest, "")
		}
		if err != nil {
			return fmt.Errorf("register the coding agents of %s: %w", unheardFolder(c.file), err)
		}
	}
	return os.RemoveAll(unheardFolder(c.file))
}

// unheardFolder returns the path of the registrations that found no node, beside the file with the processes of coding agents.
func unheardFolder(coders string) string {
	return filepath.Join(filepath.Dir(coders), api.UnheardFolder)
}

// readUnheard returns the registrations that found no node. One that cannot be read is refused as readCoders does.
func readUnheard(coders string) (all []api.Register, err error) {
	files, err := os.ReadDir(unheardFolder(coders))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, unknownCoders(unheardFolder(coders), err)
	}
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".json" {
			continue
		}
		file := filepath.Join(unheardFolder(coders), f.Name())
		var wanted api.Register
		text, err := regular.Read(file)
		if err == nil {
			err = json.Unmarshal(text, &wanted)
		}
		if err == nil && (wanted.Session == "" || len(wanted.Session) > maxSession) {
			err = errors.New("it names no session")
		}
		if err != nil {
			return nil, unknownCoders(file, err)
		}
		all = append(all, wanted)
	}
	return all, nil
}

func unknownCoders(file string, err error) error {
	return parley.Refuse(parley.NotPermitted, "it is not known which processes belong to coding agents, and those would act as the host: %s cannot be read: %v", file, err).
		WithHint("end all coding agents, move %s away, and start the node and them again", file)
}

// loadCoders notes the processes and sessions in the file.
func loadCoders(file string, l *runtime.Launcher) error {
	all, err := readCoders(file)
	if err != nil {
		return err
	}
	for _, one := range all.Processes {
		l.Note(one.Process, one.Agent)
	}
	for _, one := range all.Sessions {
		l.NoteSession(one)
	}
	for _, path := range all.Programs {
		l.NoteProgram(path)
	}
	l.Noted() // forgets those that have ended
	return nil
}

// CheckOutside refuses with NOT_PERMITTED if this process is below a coding agent of a node's file. It is for where no node
// runs that could say so.
func CheckOutside(coders string) error {
	l := runtime.NewLauncher(runtime.Defaults{})
	if err := loadCoders(coders, l); err != nil {
		return err
	}
	left, err := readUnheard(coders)
	if err != nil {
		return err
	}
	for _, wanted := range left {
		l.NoteSession(runtime.Session{ID: wanted.Session, Agent: capabilities.ID{ULID: ulid.ULID{15: 1}}}) // of whoever it will be
	}
	owner, err := l.Own()
	switch {
	case err != nil:
		return errUnknownProcess()
	case !owner.Agent.IsZero():
		return backend.NotHost()
	case owner.Unheard:
		return backend.Unheard()
	}
	return nil
}

// note has a process and a session act for an agent, and returns when that is on disk. The zero process is none, and so are
// the session "" and the program "", which is the file that the process runs.
func (c *coders) note(p runtime.Process, session string, agent capabilities.ID, program string) error {
	l := c.server.node.Programs().Launcher()
	all := notedCoders{Sessions: l.Sessions(), Programs: l.Programs()}
	living := l.Noted()
	_, known := living[p]
	isNew := p.PID != 0 && !known
	isNewSession := session != "" && !slices.ContainsFunc(all.Sessions, func(s runtime.Session) bool { return s.ID == session })
	isNewProgram := program != "" && !slices.Contains(all.Programs, program)
	switch {
	case !isNew && !isNewSession && !isNewProgram:
		return nil
	case isNew && len(living) >= maxNoted:
		return parley.Refuse(parley.TooLarge, "%d coding agents run already", len(living))
	case isNew:
		living[p] = agent
	}
	for p, agent := range living {
		all.Processes = append(all.Processes, notedProcess{p, agent})
	}
	if isNewSession {
		all.Sessions = append(all.Sessions, runtime.Session{ID: session, Agent: agent})
	}
	if isNewProgram {
		all.Programs = append(all.Programs, program)
	}
	if c.file != "" {
		text, err := json.Marshal(all)
		if err == nil {
			err = bridge.WriteFile(c.file, text)
		}
		if err != nil {
			return fmt.Errorf("write the processes of coding agents: %w", err)
		}
	}
	if isNew {
		l.Note(p, agent)
	}
	if isNewSession {
		l.NoteSession(runtime.Session{ID: session, Agent: agent})
	}
	if isNewProgram {
		l.NoteProgram(program)
	}
	c.sever(c.held()...)
	return nil
}

// admit returns the process that has opened a connection to the node's own socket. It refuses a program of the node's, and
// what descends from one: its calls would be the host's.
func (c *coders) admit(conn net.Conn) (any, error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, parley.Refuse(parley.Internal, "a connection to the socket is a %T", conn)
	}
	o := &opener{conn: conn}
	l := c.server.node.Programs().Launcher()
	o.notes = l.Notes()
	pid, runs, err := httpd.Opener(socket)
	if err == nil && pid == 0 {
		return o, nil
	}
	var owner runtime.Owner
	if err == nil {
		if o.process, err = runtime.ProcessOf(pid); err == nil {
			owner, err = l.Owner(pid)
		}
		if gone := runs(); err == nil {
			err = gone
		}
	}
	switch {
	case err != nil && l.Looks():
		c.server.log.Warn("a connection to the socket is refused: it cannot be told who opened it", "process", pid, "error", err)
		return nil, errUnknownProcess()
	case owner.Program:
		c.server.log.Warn("a program of the node's called on the node's own socket, and is refused", "process", pid)
		return nil, parley.Refuse(parley.NotPermitted, "a program of the node's does not call as the node's host").
			WithHint("what it asks goes through its input and output; or give it a token of its agent: parley token create --as NAME --scope ask,read")
	}
	o.owned = owner
	if err != nil {
		o.process = runtime.Process{PID: pid} // which is no process that runs
	}
	return o, nil
}

func errUnknownProcess() error {
	return parley.Refuse(parley.NotPermitted, "it cannot be told which process calls, and so whether a coding agent or a program of the node's has started it")
}

// owner returns whom a process acts for: no agent if it is the node's host. It looks again when a coding agent was noted since:
// the process may be below that. What acts for an agent goes on to act for that.
func (o *opener) owner(l *runtime.Launcher) (runtime.Owner, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	notes := l.Notes()
	if o.notes == notes || o.process.PID == 0 {
		return o.owned, o.err
	}
	now, err := runtime.ProcessOf(o.process.PID)
	if err == nil && now != o.process {
		err = errors.New("the process has ended")
	}
	var owner runtime.Owner
	if err == nil {
		owner, err = l.Owner(o.process.PID)
	}
	o.notes = notes
	switch {
	case o.owned.Agent.IsZero() && err != nil:
		o.err = errUnknownProcess()
	case o.owned.Agent.IsZero() || err == nil && owner.Agent == o.owned.Agent:
		o.owned = owner
	}
	return o.owned, o.err
}

// identify returns the request with its principal, if a process below a coding agent has opened its connection. One below an agent whose
// hook has not called may only register the agent, and see that the node runs: a repository has programs run before that.
func (c *coders) identify(r *http.Request) (*http.Request, error) {
	o, ok := httpd.By(r.Context()).(*opener)
	if !ok {
		return r, nil
	}
	owner, err := o.owner(c.server.node.Programs().Launcher())
	if err == nil && owner.Unheard && !slices.Contains([]string{api.RegisterPath, api.HealthPath, api.CallPath + string(api.Status)}, r.URL.Path) {
		return r, backend.Unheard()
	}
	if err != nil || owner.Agent.IsZero() {
		return r, err
	}
	session := func() *actors.Agent { return c.server.coding.Agent(owner) }
	mayChange := func(m view.Message) error { return c.server.holds.mayChange(owner, m) }
	return r.WithContext(as(r.Context(), c.server.backend.Below(owner.Agent, session, mayChange))), nil
}

// hold keeps the connection of a WebSocket until the caller calls release. A session of the host's ends when its process
// turns out to be below a coding agent.
func (c *coders) hold(r *http.Request) (release func()) {
	o, ok := httpd.By(r.Context()).(*opener)
	if !ok || !c.server.caller(r.Context()).IsHost() {
		return func() {}
	}
	c.mu.Lock()
	c.long[o] = true
	c.mu.Unlock()
	c.sever(o) // one may have been noted since the request was taken
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.long, o)
	}
}

// caller returns whom the process acts for that makes a request.
func (c *coders) caller(ctx context.Context) runtime.Owner {
	o, ok := httpd.By(ctx).(*opener)
	if !ok {
		return runtime.Owner{}
	}
	owner, _ := o.owner(c.server.node.Programs().Launcher()) // identify has refused it if that cannot be known
	return owner
}

// mayEnd reports whether a process may end what one below a coding agent waits for. A process below another agent may not, as long as
// that one runs.
func mayEnd(by runtime.Owner, coder runtime.Process) bool {
	return by.Agent.IsZero() || coder.PID == 0 || coder == by.Coder() || !coder.IsRunning()
}

// guests returns the agents that coding agents act for, each once.
func (c *coders) guests() (ids []capabilities.ID) {
	l := c.server.node.Programs().Launcher()
	for _, s := range l.Sessions() {
		ids = append(ids, s.Agent)
	}
	ids = slices.AppendSeq(ids, maps.Values(l.Noted()))
	slices.SortFunc(ids, capabilities.ID.Compare)
	return slices.Compact(ids)
}

// held returns the connections of the host's WebSockets.
func (c *coders) held() []*opener {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.long))
}

// sever closes connections of the host's WebSockets that are not the host's.
func (c *coders) sever(some ...*opener) {
	for _, o := range some {
		if owner, err := o.owner(c.server.node.Programs().Launcher()); err != nil || owner.Unheard || !owner.Agent.IsZero() {
			_ = o.conn.Close() // which ends the session
		}
	}
}

// open takes up the sessions of an agent that coding agents act for.
func (c *coders) open(address capabilities.ID) {
	c.registering.Lock() // one that begins meanwhile is newer than what the log was read for
	defer c.registering.Unlock()
	c.server.coding.Open(address)
}

// registerTime bounds a registration.
const registerTime = 10 * time.Second

// serve registers the coding agent that has started the caller.
func (c *coders) serve(w http.ResponseWriter, r *http.Request) {
	defer httpd.Survive(w, c.server.monitor, "register")
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "coding agents are registered with POST"), http.StatusMethodNotAllowed)
		return
	}
	p := c.server.caller(r.Context())
	if err := p.Account().Take(api.KindCalls, 1); err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	defer p.Account().Give(api.KindCalls, 1)
	var wanted api.Register
	err := readBody(c.server, w, r, &wanted)
	var done api.Registered
	if err == nil {
		ctx, cancel := context.WithTimeout(r.Context(), registerTime)
		defer cancel()
		done, err = c.register(ctx, p, wanted)
	}
	if err != nil {
		c.server.fail(w, r, "register", err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(done) // the client may have gone
}

// wakeTime bounds a wait for the moment at which a session is to be woken.
const wakeTime = 50 * time.Second

// serveWake tells a process that serves a session of a coding agent when that is to be woken.
func (c *coders) serveWake(w http.ResponseWriter, r *http.Request) {
	defer httpd.Survive(w, c.server.monitor, "wake")
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "a session that is to be woken is waited for with GET"), http.StatusMethodNotAllowed)
		return
	}
	o, byProcess := httpd.By(r.Context()).(*opener)
	if !byProcess {
		httpd.Refuse(w, parley.Refuse(parley.NotPermitted, "a session is woken by a process of its coding agent"), 0)
		return
	}
	p := c.server.caller(r.Context())
	if err := p.Account().Take(api.KindCalls, 1); err != nil {
		httpd.Refuse(w, err, 0)
		return
	}
	defer p.Account().Give(api.KindCalls, 1)
	if n, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, 16)); err != nil { // what is left unread hides that the client goes
		httpd.Refuse(w, parley.Refuse(parley.InvalidArgument, "a wait for a session that is to be woken has no body, and this one has more than %d bytes", n), 0)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), wakeTime)
	defer cancel()
	ctx, settled := api.UntilStopping(ctx, c.server.draining)
	defer settled()
	session := c.server.coding.AwaitWake(ctx, func() *actors.Agent {
		owner, err := o.owner(c.server.node.Programs().Launcher())
		if err != nil || owner.Agent.IsZero() {
			return nil
		}
		return c.server.coding.Agent(owner)
	})
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(api.Waken{Session: session}) // the client may have gone
}

// register notes the coding agent above a process and its session, and returns its guest. A process that is below one already
// keeps the guest of that, and has a session of its own below it.
func (c *coders) register(ctx context.Context, p api.Principal, wanted api.Register) (api.Registered, error) {
	if len(wanted.Session) > maxSession {
		return api.Registered{}, parley.Refuse(parley.InvalidArgument, "a session of %d bytes: at most %d", len(wanted.Session), maxSession)
	}
	if err := backend.CheckCoder(wanted); err != nil {
		return api.Registered{}, err
	}
	if wanted.Probe {
		return api.Registered{}, c.probed(ctx, wanted)
	}
	done, session, err := c.enter(ctx, p, wanted)
	if err == nil && wanted.Writes != nil {
		who := session
		if who.IsZero() {
			who = done.Agent
		}
		done.Leased, err = backend.Leased(ctx, actors.AgentOf(c.server.node, who), wanted.Writes)
	}
	if err != nil || wanted.Mail == nil || session.IsZero() {
		return done, err
	}
	done.Mail, err = c.server.coding.Carry(ctx, session, *wanted.Mail, wanted.Proof)
	if wanted.Leases && err == nil {
		done.News, err = c.server.coding.LeaseNews(ctx, session, wanted.Folder, *wanted.Mail)
	}
	if wanted.Mail.Moment == api.MomentEnd && wanted.Mail.Source != "clear" && err == nil && !(done.Mail != nil && done.Mail.Again) {
		err = c.server.coding.End(ctx, session)
	}
	return done, err
}

// probed notes the file that a coding agent runs which is tried.
func (c *coders) probed(ctx context.Context, wanted api.Register) error {
	c.registering.Lock()
	defer c.registering.Unlock()
	o, byProcess := httpd.By(ctx).(*opener)
	if !byProcess || o.process.PID == 0 {
		return nil
	}
	if owner := c.caller(ctx); !owner.Agent.IsZero() || owner.Unheard { // it would say so of the terminal above it, and lock its host out
		return nil
	}
	coder, _, found := runtime.Coder(o.process.PID, wanted.Process, wanted.Program)
	if !found {
		return nil
	}
	return c.note(runtime.Process{}, "", capabilities.ID{}, runtime.ProgramOf(coder, wanted.Program))
}

// enter is register, but for the mail. It returns the agent of the session, zero for none.
func (c *coders) enter(ctx context.Context, p api.Principal, wanted api.Register) (done api.Registered, session capabilities.ID, err error) {
	c.registering.Lock()
	defer c.registering.Unlock()
	b := c.server.backend
	var coder runtime.Process
	folder, found := "", false
	o, byProcess := httpd.By(ctx).(*opener)
	if byProcess && o.process.PID != 0 {
		named := wanted.Process
		if !p.IsHost() {
			named = 0 // whatever the caller says
		}
		coder, folder, found = runtime.Coder(o.process.PID, named, wanted.Program)
	}
	owner := c.caller(ctx)
	confined := !owner.Agent.IsZero() || owner.Unheard // it is below a coding agent that is known
	if found && confined && !c.server.node.Programs().Launcher().IsBelow(coder.PID) {
		coder, folder, found = runtime.Process{}, "", false // a terminal above that: its host would act for a guest
	}
	guest, before := capabilities.ID{}, !p.IsHost()
	if before {
		guest = p.ID()
		if byProcess {
			guest = cmp.Or(owner.Agent, guest)
			if !found {
				coder = owner.Coder() // whatever is between the two
			}
		}
		if wanted.As != "" {
			if _, err := b.Agent(ctx, p, wanted.As); err != nil {
				return done, session, err
			}
		}
	} else {
		if whole, err := filepath.EvalSymlinks(wanted.Folder); !found || err == nil && whole == folder {
			folder = "" // it works in the folder that it names
		}
		if guest, err = c.guest(ctx, wanted, folder); err != nil {
			return done, session, err
		}
	}
	if !before || byProcess {
		program := ""
		if found && !confined { // else it could name a program that its host has too, or so many that its own is forgotten
			program = runtime.ProgramOf(coder, wanted.Program)
		}
		if err := c.note(coder, wanted.Session, guest, program); err != nil {
			return done, session, err
		}
	}
	if found && !before {
		c.server.log.Info("a coding agent is registered", "program", wanted.Program, "process", coder.PID, "agent", guest)
	}
	done = api.Registered{Agent: guest, Bound: before || found}
	if done.Name, err = b.NameOf(ctx, guest); err != nil || before && !byProcess { // a token is for one agent
		return done, session, err
	}
	if before && coder.PID == 0 && wanted.Session != owner.Session { // its coding agent has ended, and that session is another's
		return done, session, err
	}
	session, done.Session, err = c.server.coding.Enter(ctx, guest, done.Name, wanted, coder)
	if parley.CodeOf(err) == parley.QuotaExceeded { // it works as before there were sessions
		c.server.log.Warn("a session of a coding agent has no agent of its own", "agent", done.Name, "error", err)
		err = nil
	}
	return done, session, err
}

// guest returns the guest of a folder, or the one that is named.
func (c *coders) guest(ctx context.Context, wanted api.Register, apart string) (capabilities.ID, error) {
	b := c.server.backend
	if wanted.As != "" {
		agent, err := b.NamedGuest(ctx, wanted.As)
		if err != nil {
			return capabilities.ID{}, err
		}
		return agent.ID(), nil
	}
	agent, err := b.FolderGuest(ctx, wanted, apart)
	if err != nil {
		return capabilities.ID{}, err
	}
	return agent.ID(), nil
}
