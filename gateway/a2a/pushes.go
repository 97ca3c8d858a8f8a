package a2a

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"parley"
	"parley/events"
	"parley/gateway/bridge"
	"parley/internal/regular"
)

// Bounds of the push configurations.
const (
	maxPushes      = 64   // of one agent
	maxNodesPushes = 4096 // of the node
)

// push is a push configuration, with what its receiver was told. Each is one file.
type push struct {
	By     events.TokenRef `json:"by"` // the agent and the token by which it was made
	Config a2a.PushConfig  `json:"config"`
	Told   string          `json:"told"`           // mark of the state that was told last, or that was the first
	Mark   string          `json:"mark,omitempty"` // of the state that is to be told
	Idle   bool            `json:"idle,omitempty"` // the task had ended before: it is kept to be read until it is in the way
	bridge.Schedule

	path string
	stop context.CancelFunc // nil if it does not run
	done chan struct{}      // is closed once it runs no more
}

// pushes are the push configurations of a node.
type pushes struct {
	Options
	client *http.Client

	changing sync.Mutex // held while one is added or removed

	mu      sync.Mutex
	all     map[string]*push // by path
	ctx     context.Context  // of those that run; nil if none do
	running sync.WaitGroup
}

// readPushes reads the configurations of a folder, which is made if it is missing.
func readPushes(o Options) (*pushes, error) {
	ps := &pushes{Options: o, client: bridge.Client(o.Network), all: map[string]*push{}}
	if err := os.MkdirAll(o.Pushes, 0o700); err != nil {
		return nil, err
	}
	files, err := os.ReadDir(o.Pushes)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(o.Pushes, f.Name())
		if filepath.Ext(path) != ".json" { // a write that a crash has cut short
			err = errors.Join(err, os.Remove(path))
			continue
		}
		b, failed := regular.Read(path)
		u := &push{path: path}
		if failed == nil {
			failed = json.Unmarshal(b, u)
		}
		if failed != nil {
			o.Log.Error("a push configuration cannot be read", "file", path, "error", failed)
			continue
		}
		ps.all[path] = u
	}
	return ps, err
}

// pathOf returns the path of a configuration.
func (ps *pushes) pathOf(agent string, task a2a.TaskID, id string) string {
	sum := sha256.Sum256([]byte(agent + "\n" + string(task) + "\n" + id))
	return filepath.Join(ps.Pushes, hex.EncodeToString(sum[:16])+".json")
}

// run tells all receivers until ctx ends.
func (ps *pushes) run(ctx context.Context) {
	ps.mu.Lock()
	ps.ctx = ctx
	for _, u := range ps.all {
		ps.start(u)
	}
	ps.mu.Unlock()
	<-ctx.Done()
	ps.mu.Lock()
	ps.ctx = nil // what is added later does not run
	ps.mu.Unlock()
	ps.running.Wait()
}

// start runs a configuration, if they run. The caller holds mu.
func (ps *pushes) start(u *push) {
	if ps.ctx == nil || u.Idle {
		return
	}
	ctx, stop := context.WithCancel(ps.ctx)
	u.stop, u.done = stop, make(chan struct{})
	ps.running.Go(func() {
		defer close(u.done)
		defer stop()
		if ended := ps.tell(ctx, u); ended {
			ps.forget(u)
		}
	})
}

// forget removes a configuration that has ended by itself, unless somebody else removes it now.
func (ps *pushes) forget(u *push) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.all[u.path] != u {
		return
	}
	delete(ps.all, u.path)
	if err := os.Remove(u.path); err != nil {
		ps.Log.Error("a push configuration that has ended cannot be removed", "file", u.path, "error", err)
	}
}

// list returns the configurations of a task of an agent, without secrets.
func (ps *pushes) list(agent string, task a2a.TaskID) []*a2a.PushConfig {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	list := []*a2a.PushConfig{}
	for _, u := range ps.all {
		if u.By.Agent.String() == agent && u.Config.TaskID == task {
			list = append(list, shown(&u.Config))
		}
	}
	slices.SortFunc(list, func(a, b *a2a.PushConfig) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// put adds a configuration, or replaces the one with its ID. It is on disk then. It refuses with QUOTA_EXCEEDED.
func (ps *pushes) put(u *push) error {
	ps.changing.Lock()
	defer ps.changing.Unlock()
	u.path = ps.pathOf(u.By.Agent.String(), u.Config.TaskID, u.Config.ID)
	ps.mu.Lock()
	before := ps.all[u.path]
	if before != nil && before.By == u.By && reflect.DeepEqual(before.Config, u.Config) { // a repeated request
		ps.mu.Unlock()
		return nil
	}
	err := ps.room(u)
	if err == nil {
		delete(ps.all, u.path)
	}
	ps.mu.Unlock()
	if err != nil {
		return err
	}
	before.halt()
	if err = u.keep(); err != nil && before != nil {
		u = before
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if err == nil || u == before {
		ps.all[u.path] = u
		ps.start(u)
	}
	return err
}

// room refuses with QUOTA_EXCEEDED one configuration too many, unless an idle one makes room. The caller holds mu.
func (ps *pushes) room(u *push) error {
	if ps.all[u.path] != nil {
		return nil
	}
	own, idle := 0, (*push)(nil)
	for _, o := range ps.all {
		if o.By.Agent == u.By.Agent {
			own++
			if o.Idle {
				idle = o
			}
		}
	}
	if own >= maxPushes && idle != nil {
		delete(ps.all, idle.path)
		return os.Remove(idle.path)
	}
	if own >= maxPushes {
		return parley.Refuse(parley.QuotaExceeded, "an agent has %d push configurations at most", maxPushes).WithHint("delete one that nobody needs")
	}
	if len(ps.all) >= maxNodesPushes {
		return parley.Refuse(parley.QuotaExceeded, "a node has %d push configurations at most", maxNodesPushes)
	}
	return nil
}

// remove removes a configuration, if it is there. Its receiver is told nothing afterwards.
func (ps *pushes) remove(agent string, task a2a.TaskID, id string) error {
	ps.changing.Lock()
	defer ps.changing.Unlock()
	path := ps.pathOf(agent, task, id)
	ps.mu.Lock()
	u := ps.all[path]
	delete(ps.all, path)
	ps.mu.Unlock()
	if u == nil {
		return nil
	}
	u.halt()
	return os.Remove(path)
}

// halt ends the work on a configuration that was taken from the others, and returns once it has ended.
func (u *push) halt() {
	if u != nil && u.stop != nil {
		u.stop()
		<-u.done
	}
}

// keep writes a configuration to its file, and returns when that is on disk.
func (u *push) keep() error {
	b, err := json.Marshal(u)
	if err != nil {
		return err
	}
	return bridge.WriteFile(u.path, b)
}
