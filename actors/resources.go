package actors

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/oklog/ulid/v2"

	"parley"
	"parley/actors/peers"
	"parley/actors/resource"
	"parley/actors/view"
	"parley/capabilities"
	"parley/events"
	"parley/internal/fair"
	"parley/mailbox"
	"parley/persistence"
)

// A use goes from its holder's mailbox, which says by which grant it holds the resource, to the resource's, which is on this node or on
// another. That mailbox charges it, and the use goes out when the charge is on disk:
//
//	parley use notes read a.md
//	holder's mailbox         notes is folder R@C by grant G
//	R's mailbox, on node C   UseBegun: G was neither revoked nor used up, and permits it
//	  the charge is on disk
//	C reads the file
//	R's mailbox              UseEnded
//
// A use that is asked for first waits in R's mailbox, which asks whoever gave the reference by an approval. What goes out is what the
// caller gave at the call at hand: after a new start the caller has to come again, and what it brings has to be the same.

const (
	secretsFolder = "secrets"

	longestUseWait     = 10 * time.Second // that another node is kept waiting for a use
	longestAbsence     = 2 * time.Minute  // of the caller of a use that is asked for: one without a key has gone then
	keptResults        = 64               // of uses that have ended, for callers that come again
	usesOfOneNode      = 16               // that are served for another node at once
	usesElsewhere      = 4                // of guests that another node is kept with at once: it takes 8 packets of a node, mail among them
	usesElsewhereOfOne = 3                // of one guest
	usesOfHosts        = 3                // of hosts, which wait for no guest: what would be a ninth packet is lost, and missed half a minute later
	longestHostWait    = 2 * time.Second  // as longestUseWait: a host's uses that wait for decisions leave room for others so soon
	listedUses         = 20               // of a resource, to a holder
)

// resources does the uses of the node's resources.
type resources struct {
	node    *Node
	kinds   map[capabilities.Kind]resource.Kind
	absence time.Duration // longestAbsence
	since   time.Time     // when the process began

	mu      sync.Mutex
	open    map[capabilities.ID]*openUse
	results map[capabilities.ID]view.Use
	order   []capabilities.ID // of results, the oldest first
	serving map[capabilities.NodeID]int
	turns   map[turnsOf]*fair.Queue[capabilities.ID] // of guests, and of hosts, with uses at another node
	going   map[capabilities.ID]bool                 // queued uses that go on in this process
}

// openUse is a use that has not ended and that this process knows: it waits for a decision, or is under way.
type openUse struct {
	resource capabilities.ID
	by       capabilities.ID // its holder
	call     resource.Call
	verb     string
	called   string // what the holder calls the resource
	facet    capabilities.Facet
	callers  callers
	done     chan struct{} // closed when it has ended, or the node has

	out   bool            // guarded by the lock of resources
	form  capabilities.ID // guarded by the lock of resources
	final view.Use        // set before done is closed
	err   error           // that it could not be recorded how it ended
}

func newResources(n *Node) *resources {
	return &resources{
		node: n, kinds: resource.Kinds(), absence: longestAbsence, since: time.Now(), open: map[capabilities.ID]*openUse{}, results: map[capabilities.ID]view.Use{}, serving: map[capabilities.NodeID]int{}, turns: map[turnsOf]*fair.Queue[capabilities.ID]{}, going: map[capabilities.ID]bool{},
	}
}

// callers are those who wait for a use.
type callers struct {
	mu     sync.Mutex
	n      int
	left   time.Time     // when the last one has left
	change chan struct{} // closed at the next that comes or leaves
}

func newCallers() callers { return callers{left: time.Now(), change: make(chan struct{})} }

func (c *callers) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n += n; c.n == 0 {
		c.left = time.Now()
	}
	close(c.change)
	c.change = make(chan struct{})
}

// isThere waits until a caller is there, and reports false if none has come for a time, or the context has ended.
func (c *callers) isThere(ctx context.Context, absence time.Duration) bool {
	for there := range c.follow(ctx, absence) {
		if there {
			return true
		}
	}
	return false
}

// hasGone waits until no caller has come for a time, and reports true then, and false if the context has ended.
func (c *callers) hasGone(ctx context.Context, absence time.Duration) bool {
	for range c.follow(ctx, absence) {
	}
	return ctx.Err() == nil
}

// follow yields whether a caller is there, at first and at each change, until none has come for a time.
func (c *callers) follow(ctx context.Context, absence time.Duration) func(yield func(bool) bool) {
	return func(yield func(bool) bool) {
		for {
			c.mu.Lock()
			there, left, change := c.n > 0, absence-time.Since(c.left), c.change
			c.mu.Unlock()
			if !there && left <= 0 || !yield(there) {
				return
			}
			away := time.NewTimer(left)
			if there {
				away.Stop()
			}
			select {
			case <-change:
			case <-away.C:
			case <-ctx.Done():
				away.Stop()
				return
			}
			away.Stop()
		}
	}
}

// knows reports whether this process does a use, or asks about it.
func (rs *resources) knows(u *mailbox.ResourceUse) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	o := rs.open[u.Begun.Use]
	return o != nil && o.out == u.IsOut()
}

// Resources are the resources that an agent makes and holds.
type Resources struct{ agent *Agent }

// ResourcesOf returns the resources that an agent makes and holds.
func ResourcesOf(a *Agent) Resources { return Resources{a} }

// NewResource describes a resource to be made. Secret is the value of a secret, which is kept sealed beside the log.
type NewResource struct {
	Name   string
	Made   events.ResourceMade
	Secret string
}

// prepare checks what is made, and fills in what the node knows itself.
func (r *NewResource) prepare(ctx context.Context, n *Node) error {
	m := &r.Made
	var err error
	switch m.Kind {
	case capabilities.KindFolder:
		if m.Folder, err = resource.CheckFolder(m.Folder, m.Facet.Mode != capabilities.ReadOnly); err != nil {
			return err
		}
		if real, err := filepath.EvalSymlinks(n.o.Folder); err == nil && (isInside(m.Folder, real) || isInside(real, m.Folder)) {
			return parley.Refuse(parley.NotPermitted, "the folder has the node's own state in it, or is in that")
		}
	case capabilities.KindFile:
		if m.File != nil {
			err = n.resources.checkOwn(*m.File)
		}
	case capabilities.KindSecret:
		err = errors.Join(resource.CheckSecret(r.Secret), resource.CheckAuthority(m.Authority))
	case capabilities.KindTool:
		if err = resource.CheckServer(m); err == nil {
			m.Tools, err = resource.ToolsOf(ctx, m)
		}
	}
	return err
}

// checkOwn refuses a file with the content of one of the node's own, such as its key.
func (rs *resources) checkOwn(f events.File) error {
	for _, folder := range []string{rs.node.o.Folder, filepath.Dir(rs.secretFile(capabilities.ID{}))} {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if info, err := e.Info(); err != nil || !info.Mode().IsRegular() || uint64(info.Size()) != uint64(f.Size) || f.Size == 0 {
				continue
			}
			in, err := os.Open(filepath.Join(folder, e.Name()))
			if err != nil {
				return err
			}
			sum := sha256.New()
			_, err = io.Copy(sum, in)
			if err = errors.Join(err, in.Close()); err != nil {
				return err
			}
			if hex.EncodeToString(sum.Sum(nil)) == f.Digest {
				return parley.Refuse(parley.NotPermitted, "that is a file of the node's own state: it is not given")
			}
		}
	}
	return nil
}

func isInside(name, folder string) bool {
	rel, err := filepath.Rel(folder, name)
	return err == nil && (rel == "." || filepath.IsLocal(rel))
}

// Make makes a resource, which the node's host holds under a name. Both are in one commit. With Again it changes one that there is: a
// secret gets another value, and a tool is granted as it is now.
func (rs Resources) Make(ctx context.Context, r NewResource, again bool) (view.MadeResource, error) {
	n := rs.agent.node
	if rs.agent.id != n.host {
		return view.MadeResource{}, parley.Refuse(parley.NotPermitted, "only the node's own host makes resources of it").WithHint("ask it for a reference: parley request")
	}
	if again {
		return rs.again(ctx, r)
	}
	if err := r.prepare(ctx, n); err != nil {
		return view.MadeResource{}, err
	}
	id := n.newID()
	if r.Made.Kind == capabilities.KindSecret {
		if err := n.resources.keepSecret(id, r.Secret); err != nil {
			return view.MadeResource{}, err
		}
	}
	_, err := call(ctx, rs.agent, createResource{mailbox.MakeResource{Resource: id, Name: r.Name, Made: r.Made}})
	if err != nil {
		if r.Made.Kind == capabilities.KindSecret && !parley.MayBeDone(err) { // else the log may have it, and it needs its value
			_ = n.resources.dropSecret(id)
		}
		return view.MadeResource{}, err
	}
	return madeResource(id, r.Name, &r.Made), nil
}

func madeResource(id capabilities.ID, name string, m *events.ResourceMade) view.MadeResource {
	made := view.MadeResource{Resource: id, Name: name, Kind: m.Kind, Words: m.Facet.Words(m.Kind, capabilities.Time.String)}
	for _, t := range m.Tools {
		made.Tools = append(made.Tools, t.Name)
	}
	return made
}

// again changes a resource that there is.
func (rs Resources) again(ctx context.Context, r NewResource) (view.MadeResource, error) {
	n := rs.agent.node
	ref, err := rs.own(ctx, r.Name)
	if err != nil {
		return view.MadeResource{}, err
	}
	if ref.Kind != r.Made.Kind {
		return view.MadeResource{}, parley.Refuse(parley.InvalidArgument, "%s is a %s", parley.Quoted(r.Name, 80), ref.Kind)
	}
	home := &Agent{node: n, id: ref.Target}
	made, err := madeOf(ctx, home)
	if err != nil {
		return view.MadeResource{}, err
	}
	switch ref.Kind {
	case capabilities.KindSecret:
		if err := resource.CheckSecret(r.Secret); err != nil {
			return view.MadeResource{}, err
		}
		err = n.resources.keepSecret(ref.Target, r.Secret)
	case capabilities.KindTool:
		if made.Tools, err = resource.ToolsOf(ctx, &made); err == nil {
			err = home.do(ctx, mailbox.RenewResource{By: rs.agent.id, Tools: made.Tools})
		}
	default:
		err = parley.Refuse(parley.InvalidArgument, "a %s is not made again: make another, under another name", ref.Kind)
	}
	return madeResource(ref.Target, r.Name, &made), err
}

func madeOf(ctx context.Context, home *Agent) (events.ResourceMade, error) {
	made, err := query(ctx, home, func(s *mailbox.State, _ capabilities.Time) (*events.ResourceMade, error) {
		return s.Resource.Made(), nil
	})
	if err == nil && made == nil {
		err = parley.Refuse(parley.NotPermitted, "this is no resource")
	}
	if err != nil {
		return events.ResourceMade{}, err
	}
	return *made, nil
}

// own returns the resource that the host has made under a name.
func (rs Resources) own(ctx context.Context, name string) (capabilities.Ref, error) {
	ref, err := rs.held(ctx, name)
	if err == nil && (ref.Target.Node != rs.agent.node.id || !ref.Grant.IsZero()) {
		err = parley.Refuse(parley.NotPermitted, "%s was given to you: it is for who has made it", parley.Quoted(name, 80))
	}
	return ref, err
}

// held returns the reference by which the agent holds a resource.
func (rs Resources) held(ctx context.Context, name string) (capabilities.Ref, error) {
	return query(ctx, rs.agent, func(s *mailbox.State, now capabilities.Time) (capabilities.Ref, error) {
		return s.Namespace().ResourceAt(name, now)
	})
}

// End ends a resource that the host has made, with all grants of it, and frees its name. Of a name under which the host holds less than the
// resource, it ends the grants that were given by that name, and no others.
func (rs Resources) End(ctx context.Context, name string) error {
	n := rs.agent.node
	ref, err := rs.own(ctx, name)
	if err != nil {
		return err
	}
	if !ref.Facet.IsFull() {
		return rs.endPart(ctx, name, ref)
	}
	home := &Agent{node: n, id: ref.Target}
	made, err := madeOf(ctx, home)
	if err != nil {
		return err
	}
	if err := home.do(ctx, mailbox.EndResource{By: rs.agent.id}); err != nil {
		return err
	}
	if err := errors.Join(n.resources.kinds[ref.Kind].Revoke(resource.Resource{ID: ref.Target, Made: &made}), n.resources.dropSecret(ref.Target)); err != nil {
		return err
	}
	return rs.agent.Names().Remove(ctx, name)
}

// endPart revokes the grants that were given by a name, and frees it.
func (rs Resources) endPart(ctx context.Context, name string, ref capabilities.Ref) error {
	grants, err := rs.agent.Names().Grants(ctx, view.GrantFilter{Target: ref.Target, Live: true})
	if err != nil {
		return err
	}
	for _, g := range grants {
		if g.Name == capabilities.Normal(name) {
			if err := rs.agent.Names().Revoke(ctx, g.ID); err != nil {
				return err
			}
		}
	}
	return rs.agent.Names().Remove(ctx, name)
}

// createResource makes a resource in the same commit as its name.
type createResource struct{ command mailbox.MakeResource }

func (m createResource) handle(b *mailboxActor) (none, error) {
	now := b.node.now()
	evs, err := b.propose(m.command, now)
	if err != nil {
		return none{}, err
	}
	child, genesis := mailbox.New(m.command.Resource), m.command.Genesis(b.state, now)
	section, err := firstSection(child, now, genesis...)
	if err != nil {
		return none{}, err
	}
	for _, e := range genesis {
		if err := child.Apply(events.Recorded{At: now, Event: e}); err != nil {
			return none{}, err
		}
	}
	status := statusOf(child)
	section.Summary, section.Note = child.Summary(), noteOf(status, b.node.host, false, child.Files.Any())
	if err := b.commit(now, evs, section); err != nil {
		return none{}, err
	}
	b.node.accounts.put(child)
	b.node.registry.register(child, b.last)
	return none{}, nil
}

func (rs *resources) secretFile(id capabilities.ID) string {
	return filepath.Join(rs.node.o.Folder, secretsFolder, id.ULID.String())
}

// keepSecret keeps a value sealed beside the log.
func (rs *resources) keepSecret(id capabilities.ID, value string) (err error) {
	sealed, err := rs.node.secrets.Seal(capabilities.String(value))
	if err != nil {
		return err
	}
	data, _ := sealed.AsSealed()
	name := rs.secretFile(id)
	folder := filepath.Dir(name)
	defer func() {
		if err != nil { // without the path of the folder
			reason := error(syscall.EIO)
			if why, ok := errors.AsType[syscall.Errno](err); ok {
				reason = why
			}
			err = parley.Refuse(parley.ReadOnly, "the secret cannot be kept: %v", reason)
		}
	}()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := persistence.SyncFolder(rs.node.o.Folder); err != nil {
		return err
	}
	f, err := os.CreateTemp(folder, "new-") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error is what went wrong before
		return err
	}
	return persistence.SyncFolder(folder) // else a resource that was acknowledged could lack its secret after a power cut
}

func (rs *resources) dropSecret(id capabilities.ID) error {
	if err := os.Remove(rs.secretFile(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return parley.Refuse(parley.ReadOnly, "the secret cannot be removed: %v", errors.Unwrap(err))
	}
	return nil
}

func (rs *resources) openSecret(id capabilities.ID) (string, error) {
	data, err := os.ReadFile(rs.secretFile(id))
	if err != nil {
		return "", parley.Refuse(parley.NoSuchFile, "the secret is not on this machine").WithHint("its host gives it again: parley make secret NAME --again")
	}
	v, err := rs.node.secrets.Open(capabilities.Sealed(data))
	if err != nil {
		return "", err
	}
	text, _ := v.AsString()
	return text, nil
}

// resource returns a resource as its kind sees it.
func (rs *resources) resource(id capabilities.ID, made *events.ResourceMade) resource.Resource {
	return resource.Resource{
		ID: id, Made: made, Secret: func() (string, error) { return rs.openSecret(id) },
		Content: func(ctx context.Context, offset int64) ([]byte, int64, error) {
			b, err := hex.DecodeString(made.File.Digest)
			if err != nil || len(b) != len(persistence.FileDigest{}) {
				return nil, 0, parley.Refuse(parley.NoSuchFile, "the file has no digest")
			}
			sum := persistence.FileDigest(b)
			return rs.node.journal.FileAt(ctx, sum, offset)
		},
	}
}

// Used is a request to use a resource. Without a Verb nothing is used: what the agent holds is described. With Use it goes on with
// a use that has begun, and begins none. With a Key of the agent's own, the same call again is the same use. Wait bounds the time
// until it returns; a use that has not ended by then goes on.
type Used struct {
	Name  string
	Verb  string
	Input map[string]capabilities.Value
	Key   string
	Use   capabilities.ID
	Wait  time.Duration
}

// use is a use as it comes to the resource's home.
type use struct {
	Used
	by       capabilities.ID
	resource capabilities.ID
	grant    capabilities.ID
	facet    capabilities.Facet
	again    bool // begins nothing
}

// Use uses a resource that the agent holds.
func (rs Resources) Use(ctx context.Context, r Used) (view.Use, error) {
	n := rs.agent.node
	found, err := rs.find(ctx, r)
	if queued := found.queued; r.Verb != "" && r.Use.IsZero() && (queued != nil || parley.CodeOf(err) == parley.UnknownName) {
		queued, refused := call(ctx, rs.agent, queueUse{mailbox.QueueUse{Use: n.newID(), Name: r.Name, Verb: r.Verb, Input: r.Input, Key: r.Key}})
		if refused == nil {
			return rs.useQueued(ctx, queued, r.Wait)
		}
		if parley.CodeOf(refused) != parley.UnknownName {
			return view.Use{}, refused
		}
		if again, unknown := rs.find(ctx, r); unknown == nil { // the answer came just then
			found, err = again, nil
		}
	}
	if parley.CodeOf(err) == parley.UnknownName && r.Verb == "" {
		if h := rs.describePromised(ctx, r.Name); h != nil {
			return view.Use{Holds: h}, nil
		}
	}
	if err != nil {
		return view.Use{}, err
	}
	if found.queued != nil {
		return rs.useQueued(ctx, *found.queued, r.Wait)
	}
	ref := found.ref
	u := use{Used: r, by: rs.agent.id, resource: ref.Target, grant: ref.Grant, facet: ref.Facet, again: !r.Use.IsZero()}
	if u.Use.IsZero() {
		u.Use = n.newID()
	}
	got, err := view.Use{}, error(nil)
	if ref.Target.Node != n.id {
		got, err = rs.useElsewhere(ctx, u)
	} else {
		got, err = n.resources.use(ctx, u)
	}
	if err != nil || got.Holds == nil || len(got.Holds.Uses) == 0 {
		return got, err
	}
	return query(ctx, rs.agent, func(s *mailbox.State, _ capabilities.Time) (view.Use, error) {
		for i := range got.Holds.Uses {
			by := &got.Holds.Uses[i]
			if by.ByName, err = s.Names.Of(by.By); err != nil {
				return got, err
			}
		}
		return got, nil
	})
}

// use does a use of a resource of this node, or returns how it is. An agent has what it was answered before the resource has the grant,
// which comes from who gave it: so a use waits for its grant, and for those that it derives from, up to longestUseWait.
func (rs *resources) use(ctx context.Context, u use) (view.Use, error) {
	got, err := rs.useNow(ctx, u)
	if parley.CodeOf(err) != parley.NotPermitted || u.grant.IsZero() {
		return got, err
	}
	after := time.NewTimer(longestUseWait)
	defer after.Stop()
	for {
		came := make(chan error, 1)
		waiting := &waiter[formKey, error]{ch: came}
		waits, failed := call(ctx, &Agent{node: rs.node, id: u.resource}, awaitGrant{u.grant, u.by, waiting})
		if failed != nil {
			return got, failed
		}
		if !waits {
			return rs.useNow(ctx, u)
		}
		select {
		case failed = <-came:
		case <-after.C:
			failed = err
		case <-ctx.Done():
			failed = errEnded(ctx, rs.node)
		case <-rs.node.life.Done():
			failed = errClosing()
		}
		rs.node.remoteAcks.drop(waiting)
		if failed != nil {
			return got, failed
		}
	}
}

// awaitGrant adds the waiter for the next grant that has to come for a holder to use the resource by one. It reports whether there is such.
type awaitGrant struct {
	grant, holder capabilities.ID
	waiting       *waiter[formKey, error]
}

func (m awaitGrant) handle(b *mailboxActor) (bool, error) {
	if b.state.Resource.Made() == nil || b.state.Profile.Archived {
		return false, nil
	}
	next := b.state.Grants.Awaited(m.grant, m.holder, b.state.Profile.By)
	if !next.IsZero() {
		b.node.remoteAcks.add(formKey{b.reg.id, next}, m.waiting)
	}
	return !next.IsZero(), nil
}

// useNow does a use of a resource of this node, or returns how it is.
func (rs *resources) useNow(ctx context.Context, u use) (view.Use, error) {
	home := &Agent{node: rs.node, id: u.resource}
	made, err := madeOf(ctx, home)
	if err != nil {
		return view.Use{}, err
	}
	kind := rs.kinds[made.Kind]
	if u.Verb == "" {
		return rs.describe(ctx, home, kind, &made, u)
	}
	c, err := kind.Read(rs.resource(u.resource, &made), u.Verb, u.Input)
	if err != nil {
		return view.Use{}, err
	}
	digest := sha256.New()
	_, _ = digest.Write([]byte(u.Verb + "\x00")) // a hash never fails
	_, _ = digest.Write(capabilities.Record(u.Input).AppendMsgpack(nil))
	now, err := call(ctx, home, beginUse{
		mailbox.BeginUse{Use: u.Use, By: u.by, Grant: u.grant, Facet: u.facet, Action: c.Action, Words: c.Words, Digest: digest.Sum(nil), Key: u.Key}, u.Verb, u.Name, c, u.again,
	})
	if err != nil {
		return view.Use{}, err
	}
	return rs.await(ctx, now, u.Wait)
}

// describe returns what a holder has of a resource.
func (rs *resources) describe(ctx context.Context, home *Agent, kind resource.Kind, made *events.ResourceMade, u use) (view.Use, error) {
	h, err := query(ctx, home, func(s *mailbox.State, now capabilities.Time) (*view.Holding, error) {
		all, _, ask, err := mailbox.BeginUse{By: u.by, Grant: u.grant, Facet: u.facet}.Limits(s)
		if err != nil {
			return nil, err
		}
		all.Ask = !ask.IsZero()
		h := &view.Holding{Resource: u.resource, Kind: made.Kind, Facet: all, Words: all.Words(made.Kind, capabilities.Time.String), Used: s.Resource.Used(u.grant), Verbs: []view.Verb{}, Uses: []view.UseBy{}}
		for _, one := range s.Resource.UsesBy(u.grant, &s.Grants, listedUses) {
			shown := rs.shown(one, capabilities.Null())
			by := view.UseBy{By: one.Begun.By, Words: shown.Words, State: shown.State, Begun: one.Begun.Date}
			if one.Ended != nil {
				by.Ended, by.Error = one.Ended.Date, shown.Error
			}
			h.Uses = append(h.Uses, by)
		}
		return h, nil
	})
	if err != nil {
		return view.Use{}, err
	}
	for _, v := range kind.Describe(rs.resource(u.resource, made), h.Facet) {
		h.Verbs = append(h.Verbs, verbOf(v))
	}
	return view.Use{Holds: h}, nil
}

func verbOf(v resource.Verb) view.Verb {
	verb := view.Verb{Name: v.Name, Words: v.Words, Takes: []view.Take{}, Needs: v.Needs}
	for _, t := range v.Takes {
		verb.Takes = append(verb.Takes, view.Take(t))
	}
	return verb
}

// beginUse charges a use, and has it go out when that is on disk. For a use that there is, it returns how that is.
type beginUse struct {
	command mailbox.BeginUse
	verb    string
	called  string
	call    resource.Call
	again   bool
}

// usedNow is a use as its home has it.
type usedNow struct {
	mailbox.ResourceUse
	open *openUse // nil for one that has ended
}

func (m beginUse) handle(b *mailboxActor) (usedNow, error) {
	rs := b.node.resources
	c := m.command
	how, _ := b.state.Resource.Forgot(c.Use, c.By, c.Key)
	if m.again && how == "" && b.state.Resource.FindUse(c.Use, c.By, c.Key) == nil {
		return usedNow{}, parley.Refuse(parley.UnknownName, "there is no use %s: it has not begun, or is forgotten", m.command.Use)
	}
	if _, err := b.decide(m.command); err != nil {
		return usedNow{}, err
	}
	u := b.state.Resource.FindUse(c.Use, c.By, c.Key)
	if u == nil { // it ended too long ago
		begun := &events.UseBegun{Use: c.Use, By: c.By, Words: c.Words, Key: c.Key}
		return usedNow{ResourceUse: mailbox.ResourceUse{Begun: begun, Ended: &events.UseEnded{Use: c.Use, How: how, Code: string(parley.Internal), Text: "the use has ended before: what came of it is not kept any more"}}}, nil
	}
	if u.Ended != nil {
		return usedNow{ResourceUse: *u}, nil
	}
	limits, _, _, err := m.command.Limits(b.state)
	if err != nil {
		return usedNow{}, err
	}
	o, first := rs.enter(u.Begun.Use, &openUse{resource: b.reg.id, by: u.Begun.By, call: m.call, verb: m.verb, called: m.called, facet: limits, callers: newCallers(), done: make(chan struct{}), out: u.IsOut()})
	if first { // else it is under way, or asked, in this process
		begun := *u
		b.release(func(lost error) {
			if lost != nil {
				rs.end(begun.Begun.Use, o, view.Use{}, lost)
				return
			}
			if !rs.node.run(func() { rs.begin(begun, o) }) {
				rs.end(begun.Begun.Use, o, view.Use{}, errClosing())
			}
		})
	}
	return usedNow{*u, o}, nil
}

// enter adds an open use, if there is none with this ID.
func (rs *resources) enter(id capabilities.ID, o *openUse) (_ *openUse, first bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if known := rs.open[id]; known != nil {
		return known, false
	}
	rs.open[id] = o
	return o, true
}

// end ends an open use for this process.
func (rs *resources) end(id capabilities.ID, o *openUse, final view.Use, err error) {
	rs.mu.Lock()
	delete(rs.open, id)
	if err == nil {
		rs.results[id] = final
		if rs.order = append(rs.order, id); len(rs.order) > keptResults {
			delete(rs.results, rs.order[0])
			rs.order = rs.order[1:]
		}
	}
	rs.mu.Unlock()
	o.final, o.err = final, err
	close(o.done)
}

// begin has a use go out, or first asks whoever decides on it.
func (rs *resources) begin(u mailbox.ResourceUse, o *openUse) {
	if u.IsOut() {
		rs.goOut(u.Begun.Use, o)
		return
	}
	home := &Agent{node: rs.node, id: o.resource}
	form, allowed, err := rs.askFor(u, o, home)
	if allowed && u.Begun.Key == "" && !o.callers.isThere(rs.node.life, rs.absence) {
		allowed, err = false, nobodyWaits()
	}
	if rs.node.life.Err() != nil {
		rs.end(u.Begun.Use, o, view.Use{}, errClosing())
		return
	}
	if err != nil || !allowed {
		rs.record(u.Begun.Use, o, mailbox.EndUse{Use: u.Begun.Use, How: events.UseDenied, Err: denial(err)})
		return
	}
	out, err := call(rs.node.life, home, allowUse{mailbox.AllowUse{Use: u.Begun.Use, Form: form}})
	switch {
	case err != nil:
		rs.end(u.Begun.Use, o, view.Use{}, err)
	case out.Ended != nil: // the reference was revoked meanwhile
		rs.end(u.Begun.Use, o, rs.shown(out, capabilities.Null()), nil)
	default:
		rs.goOut(u.Begun.Use, o)
	}
}

// nobodyWaits returns the error of a use whose caller has gone: what it would have had done may be wrong by now, and nobody would know.
func nobodyWaits() error {
	return parley.Refuse(parley.Cancelled, "nobody waits for the use any more, and it has no key").WithHint("use again with a key, and come again with that")
}

// denial returns the error of a use that was denied.
func denial(err error) *parley.Error {
	if err == nil {
		return parley.Refuse(parley.Declined, "who gave the reference has denied this use")
	}
	return parley.AsError(err)
}

// askFor asks whoever gave the reference about a use, in an approval with all of it. A use that is asked about again, after a new start, is
// in the same one. One without a key ends when its caller has gone.
func (rs *resources) askFor(u mailbox.ResourceUse, o *openUse, home *Agent) (form capabilities.ID, allowed bool, err error) {
	ctx, cancel := context.WithCancelCause(rs.node.life)
	defer cancel(nil)
	input, err := json.Marshal(map[string]capabilities.Value{"verb": capabilities.String(o.verb), "input": capabilities.Record(o.call.Input)})
	if err != nil {
		return form, false, err
	}
	use, err := rs.named(ctx, u, o, home)
	if err != nil {
		return form, false, err
	}
	asked, err := home.Approve(ctx, mailbox.RequestApproval{
		Permission: parley.Permission{Tool: "use " + use.Name, Input: string(input), Use: &use},
		To:         u.Begun.Ask.String(), Key: mailbox.AskKey(u.Begun.Use), Deadline: o.facet.Until, Each: true,
	})
	if err != nil {
		return form, false, err
	}
	rs.mu.Lock()
	o.form = asked.Form
	rs.mu.Unlock()
	if u.Begun.Key == "" {
		rs.node.run(func() {
			if o.callers.hasGone(ctx, rs.absence) {
				cancel(nobodyWaits())
			}
		})
	}
	allowed, outcome, err := home.AwaitApproval(ctx, capabilities.FormID(asked.Form))
	if gone := context.Cause(ctx); gone != nil && rs.node.life.Err() == nil {
		return asked.Form, false, gone
	}
	if err != nil || allowed {
		return asked.Form, allowed, err
	}
	_, reason := mailbox.ReadDecision(outcome.Values)
	switch said := parley.Shown(cmp.Or(reason, outcome.Note), 1000); {
	case outcome.Status == view.StatusExpired:
		err = parley.Refuse(parley.Expired, "nobody decided on this use while the reference was good")
	case said != "":
		err = parley.Refuse(parley.Declined, "who gave the reference has denied this use: %s", said)
	}
	return asked.Form, false, err
}

// named returns a use as whoever gave the reference knows it.
func (rs *resources) named(ctx context.Context, u mailbox.ResourceUse, o *openUse, home *Agent) (use parley.AskedUse, err error) {
	given, err := query(ctx, home, func(s *mailbox.State, _ capabilities.Time) (g capabilities.Grant, err error) {
		_, chain, _, err := mailbox.BeginUse{By: u.Begun.By, Grant: u.Begun.Grant}.Limits(s)
		for _, one := range chain {
			if one.By == u.Begun.Ask {
				g = one
			}
		}
		g.Kind = s.Resource.Made().Kind
		return g, err
	})
	if err != nil {
		return use, err
	}
	return query(ctx, &Agent{node: rs.node, id: u.Begun.Ask}, func(s *mailbox.State, _ capabilities.Time) (parley.AskedUse, error) {
		name, err := s.Names.Of(o.resource)
		use := parley.AskedUse{By: u.Begun.By, Kind: given.Kind, Name: parley.Shown(cmp.Or(s.Grants.Grant(given.ID).Name, name, o.called), 150), Called: parley.Shown(o.called, 150)}
		if err == nil {
			use.Holder, err = s.Names.Of(u.Begun.By)
		}
		if err == nil && given.To != u.Begun.By && !given.To.IsZero() {
			use.Through, err = s.Names.Of(given.To)
		}
		return use, err
	})
}

// allowUse has a use go out that was asked about.
type allowUse struct{ command mailbox.AllowUse }

func (m allowUse) handle(b *mailboxActor) (mailbox.ResourceUse, error) {
	if _, err := b.decide(m.command); err != nil {
		return mailbox.ResourceUse{}, err
	}
	for _, u := range b.state.Resource.Uses() {
		if u.Begun.Use == m.command.Use {
			if u.IsOut() {
				b.node.resources.out(m.command.Use)
			}
			return u, nil
		}
	}
	return mailbox.ResourceUse{}, parley.Refuse(parley.UnknownName, "there is no use %s", m.command.Use)
}

func (rs *resources) out(use capabilities.ID) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if o := rs.open[use]; o != nil {
		o.out = true
	}
}

// goOut does a use, and records how it ended.
func (rs *resources) goOut(id capabilities.ID, o *openUse) {
	made, err := madeOf(rs.node.life, &Agent{node: rs.node, id: o.resource})
	var result capabilities.Value
	if err == nil {
		result, err = rs.invoke(o, &made)
	}
	if rs.node.life.Err() != nil { // it is unknown how far it went
		rs.end(id, o, view.Use{}, errClosing())
		return
	}
	end := mailbox.EndUse{Use: id, How: events.UseDone, Result: result}
	if err != nil {
		if parley.CodeOf(err) == parley.Internal {
			rs.node.log.Error("a use failed", "resource", o.resource.String(), "use", id.String(), "error", err)
		}
		end = mailbox.EndUse{Use: id, How: events.UseFailed, Err: parley.AsError(err)}
	}
	rs.record(id, o, end)
}

// invoke does a use. What goes wrong in it is a failure of the use, and not of the node.
func (rs *resources) invoke(o *openUse, made *events.ResourceMade) (_ capabilities.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("use of a %s: %v", made.Kind, p)
		}
	}()
	if err := rs.heldToLeases(o, made); err != nil {
		return capabilities.Value{}, err
	}
	return rs.kinds[made.Kind].Invoke(rs.node.life, rs.resource(o.resource, made), o.call, o.facet)
}

// heldToLeases refuses with LEASED to write a file of a folder that another agent has leased. It is looked at as the use goes out, since one
// that is asked for may wait for long. Leases bind agents of one host, and so no holder on another node.
func (rs *resources) heldToLeases(o *openUse, made *events.ResourceMade) error {
	if made.Kind != capabilities.KindFolder || !o.call.Action.Writes || o.by.Node != rs.node.id {
		return nil
	}
	file := path.Join(filepath.ToSlash(made.Folder), o.call.Action.Path) // no links lead there: see resource.CheckFolder
	one, _, err := LeasesOf(&Agent{node: rs.node, id: o.by}).Blocking(rs.node.life, []string{file}, nil)
	if err != nil || one.Lease == 0 {
		return err
	}
	return LeasedTo(one, file, rs.node.clock())
}

// record records how a use ended, and ends it.
func (rs *resources) record(id capabilities.ID, o *openUse, c mailbox.EndUse) {
	u, err := call(rs.node.life, &Agent{node: rs.node, id: o.resource}, endUse{c})
	if err != nil {
		rs.end(id, o, view.Use{}, err)
		return
	}
	final := rs.shown(u, c.Result)
	if c.Err != nil && u.Ended.Code == string(c.Err.Code) { // with its hint; else it had ended before, as by a revocation
		final.Error = c.Err
	}
	rs.end(id, o, final, nil)
}

type endUse struct{ command mailbox.EndUse }

func (m endUse) handle(b *mailboxActor) (mailbox.ResourceUse, error) {
	if _, err := b.decide(m.command); err != nil {
		return mailbox.ResourceUse{}, err
	}
	for _, u := range b.state.Resource.Uses() {
		if u.Begun.Use == m.command.Use {
			return u, nil
		}
	}
	return mailbox.ResourceUse{}, parley.Refuse(parley.UnknownName, "there is no use %s", m.command.Use)
}

// await returns a use when it has ended, or as it is after a time.
func (rs *resources) await(ctx context.Context, now usedNow, wait time.Duration) (view.Use, error) {
	id := now.Begun.Use
	if now.open == nil {
		rs.mu.Lock()
		final, known := rs.results[id]
		rs.mu.Unlock()
		if known {
			return final, nil
		}
		return rs.shown(now.ResourceUse, now.Ended.Result), nil
	}
	now.open.callers.add(1)
	defer now.open.callers.add(-1)
	after := time.NewTimer(wait)
	defer after.Stop()
	select {
	case <-now.open.done:
		if now.open.err != nil {
			return view.Use{}, now.open.err
		}
		return now.open.final, nil
	case <-after.C:
	case <-ctx.Done():
		return view.Use{}, errEnded(ctx, rs.node)
	}
	shown := rs.shown(now.ResourceUse, capabilities.Null())
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if shown.Form = now.open.form; now.open.out {
		shown.State = view.UseBegun
	}
	return shown, nil
}

// shown returns a use as its holder sees it.
func (rs *resources) shown(u mailbox.ResourceUse, result capabilities.Value) view.Use {
	shown := view.Use{Use: u.Begun.Use, Words: u.Begun.Words, State: view.UseBegun, Result: result}
	e := u.Ended
	if e == nil {
		if u.IsAsked() {
			shown.State = view.UseAsked
		}
		return shown
	}
	shown.State = string(e.How)
	switch {
	case e.How == events.UseUnknown:
		shown.Error = parley.Refuse(parley.Internal, "the node ended while the use was under way: it may have had its effect or not").
			WithHint("it is charged and not repeated; look at what it was about, and use again if that is needed")
	case e.How != events.UseDone:
		shown.Error = parley.Refuse(parley.Code(e.Code), "%s", e.Text)
	}
	return shown
}

// loseUses ends as unknown the uses that went out, and that are not under way in this process: it has begun since then, or could not
// record how they ended.
func loseUses(b *mailboxActor) {
	if b.state.Resource.Made() == nil || b.node.journal.Err() != nil {
		return
	}
	if _, err := b.decide(mailbox.LoseUses{IsKnown: b.node.resources.knows, Gone: time.Since(b.node.resources.since) > b.node.resources.absence}); err != nil {
		b.node.log.Warn("uses are not ended", "mailbox", b.reg.id.String(), "error", err)
	}
}

// useElsewhere uses a resource of another node. What is sent there again begins nothing.
func (rs Resources) useElsewhere(ctx context.Context, u use) (view.Use, error) {
	n := rs.agent.node
	until, longest := time.Now().Add(u.Wait), longestUseWait
	if rs.agent.IsHost() {
		longest = longestHostWait
	}
	p := peers.UsePacket{
		Use: u.Use.ULID, By: u.by.ULID, Resource: u.resource.ULID, Grant: u.grant, Facet: u.facet, Verb: u.Verb, Input: capabilities.Record(u.Input), Name: u.Name, Key: u.Key, Again: u.again,
	}
	for sent := false; ; sent = true {
		left := time.Until(until)
		p.WaitMs = uint32(max(0, min(left, longest)).Milliseconds())
		body, err := rs.sendUse(ctx, u.resource.Node, p)
		switch code := parley.CodeOf(err); {
		case ctx.Err() != nil:
			return view.Use{}, errEnded(ctx, n)
		case err == nil:
			var got view.Use
			if err := json.Unmarshal(body, &got); err != nil || got.Result.Has(capabilities.Value.IsRef) {
				return view.Use{}, parley.Refuse(parley.NodeUnreachable, "node %s answers what is no use", u.resource.Node.Short())
			}
			if got.HasEnded() || got.Holds != nil || left <= longest {
				return got, nil
			}
			p.Again, p.Use = true, got.Use.ULID // of a key that was used before, it is another
		case code == parley.NodeUnreachable && left > fetchAgain && u.Verb != "":
			p.Again = true
			select {
			case <-time.After(fetchAgain):
			case <-ctx.Done():
				return view.Use{}, errEnded(ctx, n)
			}
		case code == parley.UnknownName && p.Again && !u.again && sent:
			return view.Use{}, parley.Refuse(parley.NodeUnreachable, "node %s could not be reached, and the use has not begun", u.resource.Node.Short())
		default:
			return view.Use{}, err
		}
	}
}

// sendUse sends a use to the home of its resource, which may keep it waiting. Guests take turns with that, and hosts among themselves: else
// uses would be more than all that a node receives of this one at once, which loses some of them, and holds up its mail.
func (rs Resources) sendUse(ctx context.Context, to capabilities.NodeID, p peers.UsePacket) ([]byte, error) {
	n := rs.agent.node
	if n.peers.Knows(to) {
		place, err := n.resources.turnsAt(to, rs.agent.IsHost()).Enter(ctx, n.accounts.headOf(rs.agent.id))
		if err != nil {
			return nil, err
		}
		defer place.Leave()
	}
	return n.peers.Use(ctx, to, p)
}

// turnsOf says whose turns they are, at which node.
type turnsOf struct {
	node  capabilities.NodeID
	hosts bool
}

func (rs *resources) turnsAt(node capabilities.NodeID, hosts bool) *fair.Queue[capabilities.ID] {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	of := turnsOf{node, hosts}
	turns := rs.turns[of]
	if turns == nil {
		if turns = fair.New[capabilities.ID](usesElsewhere, usesElsewhereOfOne); hosts {
			turns = fair.New[capabilities.ID](usesOfHosts, usesOfHosts)
		}
		rs.turns[of] = turns
	}
	return turns
}

// ServeUse implements peers.Node.
func (n peerNode) ServeUse(ctx context.Context, node capabilities.NodeID, p peers.UsePacket) ([]byte, error) {
	rs := n.resources
	if !rs.serve(node, 1) {
		return nil, parley.Refuse(parley.RateLimited, "%d uses are being served for the node", usesOfOneNode)
	}
	defer rs.serve(node, -1)
	id := func(u ulid.ULID, of capabilities.NodeID) capabilities.ID { return capabilities.ID{ULID: u, Node: of} }
	input, ok := p.Input.AsRecord()
	if !ok || p.Grant.IsZero() {
		return nil, parley.Refuse(parley.InvalidArgument, "the use is malformed")
	}
	if _, there := n.journal.Mailbox(id(p.Resource, n.id)); !there {
		return nil, parley.Refuse(parley.NotPermitted, "there is no such resource")
	}
	got, err := rs.use(ctx, use{
		Used: Used{Name: p.Name, Verb: p.Verb, Input: input, Key: p.Key, Use: id(p.Use, node), Wait: min(time.Duration(p.WaitMs)*time.Millisecond, longestUseWait)},
		by:   id(p.By, node), resource: id(p.Resource, n.id), grant: p.Grant, facet: p.Facet, again: p.Again,
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(got)
}

// serve counts the uses that are served for a node. It reports whether there may be more.
func (rs *resources) serve(node capabilities.NodeID, more int) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if more > 0 && rs.serving[node] >= usesOfOneNode {
		return false
	}
	if rs.serving[node] += more; rs.serving[node] == 0 {
		delete(rs.serving, node)
	}
	return true
}

// longestRevoke is how long a revocation waits for the home of a resource on another node.
const longestRevoke = 10 * time.Second

// revokeAtHome returns when the home of a resource knows that a grant of it was revoked: no use follows then.
func revokeAtHome(ctx context.Context, a *Agent, grant capabilities.ID) error {
	n := a.node
	g, err := query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (capabilities.Grant, error) {
		return s.Grants.Grant(grant), nil
	})
	if err != nil || !g.Kind.IsResource() {
		return err
	}
	if g.Target.Node == n.id {
		return (&Agent{node: n, id: g.Target}).do(ctx, mailbox.RecordRevocation{Grant: grant, By: a.id, Date: g.Revoked})
	}
	ctx, cancel := context.WithTimeout(ctx, longestRevoke)
	defer cancel()
	acked := make(chan error, 1)
	defer n.remoteAcks.drop(n.remoteAcks.wait(formKey{a.id, grant}, acked))
	waits, err := query(ctx, a, func(s *mailbox.State, _ capabilities.Time) (bool, error) {
		for _, p := range s.Outbox.Items() {
			if p.Kind == events.OutboxRevocation && p.Subject == grant && p.To == g.Target {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil || !waits {
		return err
	}
	select {
	case err := <-acked:
		return err
	case <-ctx.Done():
		return parley.Refuse(parley.NodeUnreachable, "the grant is revoked here, but node %s does not know it yet: until then it may be used", g.Target.Node.Short()).
			WithHint("the revocation goes there as soon as the node can be reached; the same command again waits for it")
	}
}
