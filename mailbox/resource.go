package mailbox

import (
	"bytes"
	"crypto/sha256"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/capabilities"
	"parley/events"
)

// Resource is what the mailbox of a resource has beside what all mailboxes have: what the host has made, and the uses of it. The
// mailbox is the home of all grants of the resource, also of those within its node. So it alone decides on each use:
//
//	host gives notes to fae           CapabilityGranted at the host, CapabilityMinted here
//	fae gives a part of it to bob     CapabilityGranted at fae, CapabilityMinted here, derived from fae's
//	bob uses it                       UseBegun here: charged to bob's grant and to fae's
//	                                  then it goes out
//	                                  UseEnded here
//	the host revokes fae's            CapabilityRevoked here, before that is acknowledged: fae's and bob's have ended
//
// A use with an asker between waits for a decision after UseBegun, and goes out with UseAllowed.
type Resource struct {
	made *events.ResourceMade // nil for an agent
	uses []ResourceUse        // in the order in which they began: those that have not ended, and the last ones that have
	used map[capabilities.ID]*grantUse

	forgotten map[capabilities.ID][]forgottenUse // by their holders, the oldest first: what is known of uses with a key that are not kept any more

	day   int64                      // of the counts
	today map[capabilities.ID]uint32 // uses of each holder on that day
}

// ResourceUse is a use of a resource.
type ResourceUse struct {
	Begun   *events.UseBegun
	Allowed *events.UseAllowed // of one that is asked for first
	Ended   *events.UseEnded
}

// IsOut reports whether the use has gone out, and has not ended.
func (u *ResourceUse) IsOut() bool {
	return u.Ended == nil && (u.Begun.Ask.IsZero() || u.Allowed != nil)
}

// IsAsked reports whether the use waits for a decision.
func (u *ResourceUse) IsAsked() bool {
	return u.Ended == nil && !u.Begun.Ask.IsZero() && u.Allowed == nil
}

// forgottenUse is what is left of a use that has ended: enough to begin it no second time, and to say how it ended. Whoever was away
// meanwhile, as a sender whose node was down, comes again with its ID or key.
type forgottenUse struct {
	Use    capabilities.ID
	Key    events.Hash // of the key
	Digest []byte
	How    events.UseEnd
}

// grantUse counts the uses by a grant and by all that is derived from it. The zero ID has those by all grants, and by the host.
type grantUse struct {
	Used   uint32
	Recent []capabilities.Time // of the last uses, if the grant has a rate
}

// Bounds of resources and their uses.
const (
	maxResourceTools = 256
	maxAuthority     = 64 << 10 // bytes
	maxHeader        = 256      // bytes
	maxCommandWords  = 64
	maxOpenUses      = 256    // of a resource: of all its holders, and of the host that has made it
	maxHolderUses    = 32     // of one holder
	maxEndedUses     = 512    // that are kept
	maxForgottenUses = 256    // of one holder of which anything is left, as many as it may have queued
	maxAllForgotten  = 4096   // of all holders
	maxDailyUses     = 20_000 // of one holder of a resource, since midnight UTC
	maxUseWords      = 4 << 10
	MaxUseResult     = 32 << 10 // bytes of the result of a use with a key that is kept
)

// Made returns what the host has made; nil for the mailbox of an agent. It belongs to the state.
func (r *Resource) Made() *events.ResourceMade { return r.made }

// FindUse returns a use by its ID, or else the newest of a holder by its key. It is nil if there is none any more.
func (r *Resource) FindUse(use, by capabilities.ID, key string) *ResourceUse {
	key = capabilities.Normal(key)
	for i := range slices.Backward(r.uses) {
		b := r.uses[i].Begun
		if b.By == by && (b.Use == use || key != "" && capabilities.Normal(b.Key) == key) {
			return &r.uses[i]
		}
	}
	return nil
}

// Forgot returns how a use has ended that is not kept any more, as FindUse finds one, with the digest of what it was. It is "" for one
// that never was, or was too long ago.
func (r *Resource) Forgot(use, by capabilities.ID, key string) (how events.UseEnd, digest []byte) {
	sum := hashOfKey(key)
	for _, f := range slices.Backward(r.forgotten[by]) {
		if f.Use == use || key != "" && f.Key == sum {
			return f.How, f.Digest
		}
	}
	return "", nil
}

func hashOfKey(key string) events.Hash { return sha256.Sum256([]byte(capabilities.Normal(key))) }

// Uses returns the uses that have not ended and the last ones that have, in the order in which they began. The slice belongs to the
// state.
func (r *Resource) Uses() []ResourceUse { return r.uses }

// UsesBy returns the last uses by a grant and all that derive from it, the newest first, and at most so many. Those by the zero grant are all.
func (r *Resource) UsesBy(grant capabilities.ID, l *Grants, most int) (all []ResourceUse) {
	for i := range slices.Backward(r.uses) {
		if u := &r.uses[i]; len(all) < most && (grant.IsZero() || u.isBy(grant, l)) {
			all = append(all, *u)
		}
	}
	return all
}

func (r *Resource) use(id capabilities.ID) *ResourceUse {
	i := slices.IndexFunc(r.uses, func(u ResourceUse) bool { return u.Begun.Use == id })
	if i < 0 {
		return nil
	}
	return &r.uses[i]
}

// Used returns how often a grant, with all that is derived from it, was used.
func (r *Resource) Used(grant capabilities.ID) uint32 {
	if u := r.used[grant]; u != nil {
		return u.Used
	}
	return 0
}

// ResourceAt returns the reference to a resource at a path, or with an ID or locator that the agent holds. It refuses with UNKNOWN_NAME
// a path that leads to no resource, and with NOT_PERMITTED one that was revoked or has expired.
func (n Namespace) ResourceAt(path string, now capabilities.Time) (capabilities.Ref, error) {
	h := n.s.holder(capabilities.UseRead, now)
	if id, ok := targetOf(path); ok {
		err := error(nil)
		for _, kind := range []capabilities.Kind{capabilities.KindFolder, capabilities.KindFile, capabilities.KindSecret, capabilities.KindTool} {
			var ref capabilities.Ref
			if ref, err = h.claim(capabilities.Ref{Target: id, Kind: kind}); err == nil {
				return ref, n.s.permit(ref, capabilities.UseRead, now)
			}
		}
		return capabilities.Ref{}, err
	}
	v, err := h.at(path)
	if parley.CodeOf(err) == parley.UnknownName {
		return capabilities.Ref{}, parley.AsError(err).WithHint("parley use lists what is held")
	}
	if err != nil {
		return capabilities.Ref{}, err
	}
	ref, err := resourceIn(path, v)
	if err != nil {
		return ref, err
	}
	if at, gone := n.s.Grants.revoked[ref.Grant]; gone && !ref.Grant.IsZero() { // by this name: others may be for more or less of the same
		return ref, refuseRevoked(parley.Quoted(path, 200), at)
	}
	return ref, n.s.permit(ref, capabilities.UseRead, now)
}

// resourceIn returns the reference to a resource that a value is, which is at a path.
func resourceIn(path string, v capabilities.Value) (capabilities.Ref, error) {
	ref, ok := v.AsRef()
	if !ok || !ref.Kind.IsResource() {
		return ref, parley.Refuse(parley.UnknownName, "%s is not something that can be used so", parley.Quoted(path, 200)).
			WithHint("folders, files, secrets and tools can; agents get mail: parley send")
	}
	return ref, nil
}

// MakeResource binds a name of the node's host to a new resource. Genesis returns the first events of its mailbox.
type MakeResource struct {
	Resource capabilities.ID
	Name     string
	Made     events.ResourceMade
}

func (c MakeResource) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if !s.Profile.isNodeHost() {
		return nil, parley.Refuse(parley.NotPermitted, "only the node's own host makes resources of it").WithHint("ask the host for a reference: parley request @host")
	}
	if err := s.checkFree(c.Name); err != nil {
		return nil, err
	}
	if err := checkAgentName(c.Name); err != nil {
		return nil, err
	}
	if err := CheckResource(&c.Made); err != nil {
		return nil, err
	}
	if c.Made.File != nil {
		if err := checkHeld(s, *c.Made.File); err != nil {
			return nil, err
		}
	}
	ref := capabilities.Ref{Target: c.Resource, Kind: c.Made.Kind}
	return []events.Event{&events.NameBound{Name: c.Name, Value: capabilities.Reference(ref)}}, nil
}

// Genesis returns the first events of the resource's mailbox.
func (c MakeResource) Genesis(by *State, now capabilities.Time) []events.Event {
	evs := []events.Event{
		&events.AgentCreated{Agent: c.Resource, Kind: events.ResourceKind, Host: by.ID, By: by.ID, Name: capabilities.Normal(c.Name)},
		&c.Made,
	}
	if f := c.Made.File; f != nil {
		evs = append(evs, &events.FileStored{Digest: f.Digest, Size: f.Size, Date: now})
	}
	return evs
}

// CheckResource refuses with INVALID_ARGUMENT a resource that cannot be.
func CheckResource(m *events.ResourceMade) error {
	wrong := func(format string, args ...any) error {
		return parley.Refuse(parley.InvalidArgument, format, args...)
	}
	if !m.Kind.IsResource() {
		return parley.Refuse(parley.InvalidArgument, "%s is no kind of resource", parley.Quoted(string(m.Kind), 40)).WithHint("the kinds are folder, file, secret and tool")
	}
	if err := m.Facet.CheckFor(m.Kind); err != nil {
		return err
	}
	if err := checkText("a folder", m.Folder, 4<<10); err != nil {
		return err
	}
	switch m.Kind {
	case capabilities.KindFolder:
		if m.Folder == "" {
			return wrong("a folder needs the path of one on the node")
		}
	case capabilities.KindFile:
		if m.File == nil {
			return parley.Refuse(parley.InvalidArgument, "a file needs the digest of its content").WithHint("store it first, with store_file")
		}
		return CheckFile(*m.File)
	case capabilities.KindSecret:
		return checkSecret(m, wrong)
	case capabilities.KindTool:
		return checkServer(m, wrong)
	}
	return nil
}

func checkSecret(m *events.ResourceMade, wrong func(string, ...any) error) error {
	name, value, ok := strings.Cut(m.Header, ":")
	switch {
	case m.Facet.Only == "":
		return wrong("a secret needs the hosts that it may be sent to")
	case m.Facet.Methods == "":
		return wrong("a secret needs the methods that it may be used with")
	case !ok || len(m.Header) > maxHeader || strings.Count(value, "{}") != 1 || strings.ContainsFunc(m.Header, func(r rune) bool { return r < ' ' || r > '~' }):
		return wrong("the header of a secret is NAME: VALUE, with {} once in the value, where the secret goes")
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isHeaderLetter(r) }):
		return wrong("%s is no name of a header", parley.Quoted(name, 80))
	case len(m.Authority) > maxAuthority:
		return parley.Refuse(parley.TooLarge, "the certificates have %d KiB at most", maxAuthority>>10)
	}
	if slices.Contains(ownHeaders, strings.ToLower(name)) {
		return wrong("the header %s is not for a secret: the request itself has it", name)
	}
	for _, h := range strings.Fields(m.Facet.Only) {
		if !isHost(h) {
			return wrong("%s is no host: it is a name in lower case and ASCII, as api.example, and its port if that is not 443", parley.Quoted(h, 80))
		}
	}
	for _, method := range strings.Fields(m.Facet.Methods) {
		if !slices.Contains(Methods, method) {
			return wrong("%s is no method: they are %s", parley.Quoted(method, 40), strings.Join(Methods, ", "))
		}
	}
	return nil
}

// ownHeaders are the headers that a request has for itself, or that the holder of a secret may choose. The rest of the node would replace a
// secret in them, or send it where it is not read.
var ownHeaders = []string{
	"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect", "user-agent", "accept-encoding", "accept", "accept-language",
	"content-type", "content-encoding", "range", "idempotency-key", "if-match", "if-modified-since", "if-none-match", "if-unmodified-since", "prefer",
}

// isHost reports whether a text is the host of an address as requests have it: a name, or an address of the Internet Protocol, and a port other
// than 443.
func isHost(h string) bool {
	u, err := url.Parse("https://" + h)
	if err != nil || u.Host != h || h == "" || strings.HasSuffix(h, ":") || len(h) > 260 {
		return false
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || n == 443 || strconv.FormatUint(n, 10) != port {
			return false
		}
	}
	name := u.Hostname()
	if strings.HasPrefix(h, "[") {
		a, err := netip.ParseAddr(name)
		return err == nil && a.Is6() && a.Zone() == "" && a.String() == name
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' || strings.ContainsFunc(label, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-') }) {
			return false
		}
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" { // an address, or nothing that anybody can reach
		_, err := netip.ParseAddr(name)
		return err == nil
	}
	return true
}

// Methods are the methods of requests that a secret may be used with.
var Methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}

func isHeaderLetter(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-'
}

func checkServer(m *events.ResourceMade, wrong func(string, ...any) error) error {
	size := 0
	for _, w := range m.Command {
		size += len(w)
		if err := checkText("a word of a command", w, 4<<10); err != nil {
			return err
		}
	}
	switch {
	case (len(m.Command) == 0) == (m.Address == ""):
		return wrong("a tool needs the command of its server, or its address, and one of them")
	case len(m.Command) > maxCommandWords || size > 16<<10 || len(m.Address) > 2<<10:
		return parley.Refuse(parley.TooLarge, "the command or the address of the server is too long")
	case len(m.Command) > 0 && m.Command[0] == "":
		return wrong("the command of the server is empty")
	}
	return checkTools(m.Tools)
}

func checkTools(tools []events.ResourceTool) error {
	if len(tools) > maxResourceTools {
		return parley.Refuse(parley.TooLarge, "a server has %d tools at most", maxResourceTools)
	}
	for _, t := range tools {
		if t.Name == capabilities.Nothing || t.Name == "" || len(t.Name) > 128 || strings.ContainsFunc(t.Name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return parley.Refuse(parley.InvalidArgument, "%s is no name of a tool", parley.Quoted(t.Name, 80))
		}
	}
	return nil
}

// RenewResource has the tools of a resource be as they are now. By is the host that has made it.
type RenewResource struct {
	By    capabilities.ID
	Tools []events.ResourceTool
}

func (c RenewResource) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	if err := checkMaker(s, c.By); err != nil {
		return nil, err
	}
	if s.Resource.made.Kind != capabilities.KindTool {
		return nil, parley.Refuse(parley.InvalidArgument, "only tools are granted again")
	}
	if err := checkTools(c.Tools); err != nil {
		return nil, err
	}
	if slices.Equal(c.Tools, s.Resource.made.Tools) {
		return nil, nil
	}
	return []events.Event{&events.ResourceRenewed{Tools: c.Tools}}, nil
}

func checkMaker(s *State, by capabilities.ID) error {
	switch {
	case s.Resource.made == nil:
		return parley.Refuse(parley.InvalidArgument, "this is no resource")
	case by != s.Profile.By:
		return parley.Refuse(parley.NotPermitted, "that is for the host that has made the resource")
	}
	return s.Profile.checkActive()
}

// EndResource ends a resource, with all grants of it. By is the host that has made it.
type EndResource struct{ By capabilities.ID }

func (c EndResource) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	if s.Resource.made != nil && s.Profile.Archived {
		return nil, nil
	}
	if err := checkMaker(s, c.By); err != nil {
		return nil, err
	}
	evs, err := endAsked(s, func(*ResourceUse) bool { return true }, parley.Refuse(parley.NotPermitted, "the resource has ended"), now)
	return append(evs, &events.AgentArchived{By: c.By}), err
}

// mintResource checks a grant of a resource, which its home records before anybody can use it.
func mintResource(c MintCapability, s *State, now capabilities.Time) error {
	g := c.Grant
	if g.Kind != s.Resource.made.Kind {
		return parley.Refuse(parley.NotPermitted, "the resource is a %s", s.Resource.made.Kind)
	}
	if err := s.Profile.checkActive(); err != nil {
		return err
	}
	if err := g.Facet.CheckFor(g.Kind); err != nil {
		return err
	}
	held := capabilities.Facet{}
	if c.Via.IsZero() {
		if g.By != s.Profile.By {
			return parley.Refuse(parley.NotPermitted, "%s holds no grant of the resource", g.By)
		}
	} else {
		chain, missing, err := s.Grants.chainOf(c.Via, g.By, s.Profile.By)
		if !missing.IsZero() {
			err = s.Grants.checkEarly(g, missing)
		}
		if err != nil {
			return err
		}
		if len(chain) == 0 { // what its giver holds is not known yet: each use is held to it
			return nil
		}
		if held = chain[0].Facet; held.Until != 0 && now >= held.Until {
			return parley.Refuse(parley.NotPermitted, "the reference was good until %s", held.Until)
		}
	}
	if !held.Covers(g.Facet) {
		return parley.Refuse(parley.NotPermitted, "the grant gives more than its giver holds")
	}
	if g.Facet.Ask && !held.Ask && s.isRemote(g.By) {
		return parley.Refuse(parley.NotPermitted, "only a giver on the resource's own node can be asked at each use")
	}
	return nil
}

// liveChain returns a grant of a holder and all that it is derived from, up to one that the maker gave. It refuses with
// NOT_PERMITTED if one of them is not known or was revoked.
func (l *Grants) liveChain(grant, holder, maker capabilities.ID) ([]capabilities.Grant, error) {
	chain, _, err := l.chainOf(grant, holder, maker)
	return chain, err
}

// chainOf is liveChain, and also returns the grant that is not known, with those before it. The error may pass then.
func (l *Grants) chainOf(grant, holder, maker capabilities.ID) (chain []capabilities.Grant, missing capabilities.ID, err error) {
	for range maxDerived {
		g, ok := l.minted.Get(grant)
		switch {
		case !ok || g.To != holder:
			if !ok {
				missing = grant
			}
			return chain, missing, parley.Refuse(parley.NotPermitted, "%s does not hold the resource by this grant", holder).
				WithHint("parley names lists what is held")
		case g.Revoked != 0:
			return nil, missing, parley.Refuse(parley.NotPermitted, "the reference was revoked at %s", g.Revoked)
		}
		chain = append(chain, g)
		if g.Parent.IsZero() {
			if g.By != maker {
				break
			}
			return chain, missing, nil
		}
		grant, holder = g.Parent, g.By
	}
	return nil, missing, parley.Refuse(parley.NotPermitted, "the reference does not derive from one that the host gave")
}

// Awaited returns the grant that has yet to come for one to be used: itself, or one that it derives from. It is zero if none has.
func (l *Grants) Awaited(grant, holder, maker capabilities.ID) capabilities.ID {
	_, missing, _ := l.chainOf(grant, holder, maker)
	return missing
}

// A holder has what it was answered before the resource knows of it, and may give it on: so a grant can come before the one from which it
// derives. It is recorded all the same, and nothing can be done by it until that has come, if it ever does: what waited in its sender's
// outbox would hold up all that follows. These bound how many of the last grants such ones may be, since nobody vouches for them.
const (
	maxEarly       = 64    // of one giver
	maxEarlyOfNode = 1_024 // of all of a node's
	lastMinted     = 4_096 // that are looked at
)

// checkEarly refuses a grant that derives from one that is missing, if there are too many, or if that would derive from it.
func (l *Grants) checkEarly(g capabilities.Grant, missing capabilities.ID) error {
	if missing == g.ID {
		return parley.Refuse(parley.NotPermitted, "the grant derives from itself")
	}
	all, giver, node := l.minted.Grants(), 0, 0
	for _, one := range all[max(0, len(all)-lastMinted):] {
		if one.By.Node != g.By.Node || one.Revoked != 0 || !l.isEarly(one) {
			continue
		}
		if node++; one.By == g.By {
			giver++
		}
	}
	if giver >= maxEarly || node >= maxEarlyOfNode {
		return parley.Refuse(parley.NotPermitted, "%s gives what it is not known to hold, and has done so %d times", g.By, giver).
			WithHint("give it once more when what it derives from is known to its home")
	}
	return nil
}

// isEarly reports whether a grant derives from one that is not known.
func (l *Grants) isEarly(g capabilities.Grant) bool {
	for range maxDerived {
		if g.Parent.IsZero() {
			return false
		}
		parent, ok := l.minted.Get(g.Parent)
		if !ok {
			return true
		}
		g = parent
	}
	return false
}

// maxDerived bounds how often a resource is given on.
const maxDerived = 64

// gave reports whether an agent of this node gave a grant of the resource.
func (l *Grants) gave(agent capabilities.ID) bool {
	return l.minted.Any(func(g capabilities.Grant) bool { return g.By == agent })
}

// BeginUse charges a use of the resource. The same use again, by its ID or by the key of the same holder, has no effect.
type BeginUse struct {
	Use    capabilities.ID
	By     capabilities.ID
	Grant  capabilities.ID    // zero for the host that has made the resource
	Facet  capabilities.Facet // of the name by which it is used, which may be narrower than the grant
	Action capabilities.Action
	Words  string
	Digest []byte
	Key    string
}

// Limits returns the facet of a use: the resource's, with all grants from the host's to the holder's. The last one of these that
// has each use asked for says who decides; zero if none does. It refuses with NOT_PERMITTED.
func (c BeginUse) Limits(s *State) (all capabilities.Facet, chain []capabilities.Grant, ask capabilities.ID, err error) {
	r := &s.Resource
	if r.made == nil {
		return all, nil, ask, parley.Refuse(parley.NotPermitted, "this is no resource")
	}
	if err := s.Profile.checkActive(); err != nil {
		return all, nil, ask, parley.Refuse(parley.NotPermitted, "the resource has ended")
	}
	if c.Grant.IsZero() {
		if c.By != s.Profile.By {
			return all, nil, ask, parley.Refuse(parley.NotPermitted, "%s holds no grant of the resource", c.By)
		}
	} else if chain, err = s.Grants.liveChain(c.Grant, c.By, s.Profile.By); err != nil {
		return all, nil, ask, err
	}
	all = r.made.Facet.Narrow(c.Facet)
	if r.made.Facet.Ask {
		ask = s.Profile.By
	}
	for _, g := range slices.Backward(chain) {
		all = all.Narrow(g.Facet)
		if g.Facet.Ask && ask.IsZero() {
			ask = g.By
		}
	}
	if s.isRemote(ask) { // of a grant that came before the one from which it derives
		return all, nil, ask, parley.Refuse(parley.NotPermitted, "only a giver on the resource's own node can be asked at each use")
	}
	if all.Ask && ask.IsZero() {
		return all, nil, ask, parley.Refuse(parley.NotPermitted, "a name that has each use asked for is for giving on").WithHint("use the name that it was copied from")
	}
	return all, chain, ask, nil
}

func (c BeginUse) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	r := &s.Resource
	if known := r.FindUse(c.Use, c.By, c.Key); known != nil {
		if !bytes.Equal(known.Begun.Digest, c.Digest) {
			return nil, parley.Refuse(parley.InvalidArgument, "the key was used for another use: %s", parley.Quoted(known.Begun.Words, 80)).WithHint("give each use a key of its own")
		}
		return nil, nil
	}
	if how, digest := r.Forgot(c.Use, c.By, c.Key); how != "" {
		if !bytes.Equal(digest, c.Digest) {
			return nil, parley.Refuse(parley.InvalidArgument, "the key was used for another use").WithHint("give each use a key of its own")
		}
		return nil, nil
	}
	all, chain, ask, err := c.Limits(s)
	if err != nil {
		return nil, err
	}
	if err := all.Allows(c.Action, now); err != nil {
		return nil, err
	}
	if err := checkText("a key", c.Key, maxKey); err != nil {
		return nil, err
	}
	if err := checkText("a use", c.Words, maxUseWords); err != nil {
		return nil, err
	}
	if err := r.checkCounts(chain, now); err != nil {
		return nil, err
	}
	if err := r.checkRoom(c.By, s.Profile.By, now); err != nil {
		return nil, err
	}
	return []events.Event{&events.UseBegun{Use: c.Use, By: c.By, Grant: c.Grant, Words: c.Words, Digest: c.Digest, Key: c.Key, Ask: ask, Date: now}}, nil
}

// checkCounts refuses a use too many: of a grant, or of one that it is derived from.
func (r *Resource) checkCounts(chain []capabilities.Grant, now capabilities.Time) error {
	all := append([]capabilities.Grant{{Facet: r.made.Facet}}, chain...)
	for _, g := range all {
		u := r.used[g.ID]
		if u == nil {
			continue
		}
		if most := g.Facet.Uses; most != 0 && u.Used >= most {
			return parley.Refuse(parley.NotPermitted, "the reference was good for %s", g.Facet.UsesWords()).WithHint("ask whoever gave it for more")
		}
		if rate := g.Facet.Rate; rate.Uses != 0 && len(u.Recent) >= int(rate.Uses) {
			first := u.Recent[len(u.Recent)-int(rate.Uses)]
			if free := first + capabilities.Time(rate.Seconds)*1000; now < free {
				return parley.Refuse(parley.RateLimited, "the reference is good for %s", rate).WithHint("it may be used again at %s", free)
			}
		}
	}
	return nil
}

// checkRoom refuses a use while there are too many. The host's own and those of holders are counted apart.
func (r *Resource) checkRoom(by, host capabilities.ID, now capabilities.Time) error {
	own, all := 0, 0
	for i := range r.uses {
		b := r.uses[i].Begun
		if r.uses[i].Ended != nil || (b.By == host) != (by == host) {
			continue
		}
		if all++; b.By == by {
			own++
		}
	}
	switch {
	case by != host && own >= maxHolderUses:
		return parley.Refuse(parley.RateLimited, "%d uses of yours are under way, or wait for a decision", own).WithHint("wait for one to end first")
	case all >= maxOpenUses:
		return parley.Refuse(parley.RateLimited, "%d uses of the resource are under way", all).WithHint("try again when one has ended")
	case r.day == dayOf(now) && r.today[by] >= maxDailyUses:
		return parley.Refuse(parley.QuotaExceeded, "%d uses of the resource today: a holder has no more", maxDailyUses).WithHint("from midnight UTC on it has again")
	}
	return nil
}

// AllowUse has a use that was asked for go out: it was allowed in a form, by whom the use had to be asked of.
type AllowUse struct{ Use, Form capabilities.ID }

func (c AllowUse) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	u := s.Resource.use(c.Use)
	if u == nil || !u.IsAsked() {
		return nil, nil
	}
	if why := u.stillHeld(s, now); why != nil {
		return endAsked(s, func(o *ResourceUse) bool { return o == u }, why, now)
	}
	return []events.Event{&events.UseAllowed{Use: c.Use, Form: c.Form}}, nil
}

// stillHeld refuses a use that waits for a decision if its reference has ended since it began.
func (u *ResourceUse) stillHeld(s *State, now capabilities.Time) error {
	all, _, _, err := BeginUse{By: u.Begun.By, Grant: u.Begun.Grant}.Limits(s)
	if err == nil && all.Until != 0 && now >= all.Until {
		err = parley.Refuse(parley.NotPermitted, "the reference was good until %s", all.Until)
	}
	return err
}

// AskKey is the key of the approval that asks about a use.
func AskKey(use capabilities.ID) string { return "use " + use.ULID.String() }

// endAsked ends uses that wait for a decision, with the approvals that ask about them: nobody is to decide on what can have no effect.
func endAsked(s *State, which func(u *ResourceUse) bool, why error, now capabilities.Time) (evs []events.Event, err error) {
	e := parley.AsError(why)
	for i := range s.Resource.uses {
		u := &s.Resource.uses[i]
		if !u.IsAsked() || !which(u) {
			continue
		}
		evs = append(evs, &events.UseEnded{Use: u.Begun.Use, How: events.UseDenied, Code: string(e.Code), Text: e.Message, Date: now})
		m, err := s.Mail.underKey(&s.Mail.Keys.asked, AskKey(u.Begun.Use))
		if err != nil {
			return nil, err
		}
		if m != nil && m.Form.IsOpen() {
			evs = append(evs, &events.FormCancelled{Form: m.Form.ID, Reason: events.Cancelled, By: s.ID, Note: e.Message, Date: now})
		}
	}
	return evs, nil
}

// isBy reports whether a use is by a grant, or by one that derives from it.
func (u *ResourceUse) isBy(grant capabilities.ID, l *Grants) bool {
	for id := u.Begun.Grant; !id.IsZero(); {
		if id == grant {
			return true
		}
		g, _ := l.minted.Get(id)
		id = g.Parent
	}
	return false
}

// EndUse records how a use has ended. One that has ended stays as it is.
type EndUse struct {
	Use    capabilities.ID
	How    events.UseEnd
	Err    *parley.Error      // of one that has failed, or was denied
	Result capabilities.Value // kept if the use has a key, and it is small
}

func (c EndUse) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	u := s.Resource.use(c.Use)
	if u == nil || u.Ended != nil || c.How == events.UseDenied && !u.IsAsked() {
		return nil, nil
	}
	if c.How == events.UseDenied && c.Err != nil {
		return endAsked(s, func(o *ResourceUse) bool { return o == u }, parley.Refuse(c.Err.Code, "%s", parley.Shown(c.Err.Message, maxReason)), now)
	}
	e := &events.UseEnded{Use: c.Use, How: c.How, Date: now}
	if c.Err != nil {
		e.Code, e.Text = string(c.Err.Code), parley.Shown(c.Err.Message, maxReason)
	}
	if u.Begun.Key != "" && c.Result.Extent().Bytes <= MaxUseResult {
		e.Result = c.Result
	}
	return []events.Event{e}, nil
}

// LoseUses ends as unknown the uses that have gone out and that the process does not know: the node ended in between. It ends as denied
// those that wait for a decision if the process does not know them either, and their reference has ended or, with Gone, they have no key:
// no caller has come again for them.
type LoseUses struct {
	IsKnown func(u *ResourceUse) bool
	Gone    bool
}

func (c LoseUses) decide(s *State, now capabilities.Time, _ IDs) (evs []events.Event, err error) {
	for i := range s.Resource.uses {
		u := &s.Resource.uses[i]
		if u.Ended != nil || c.IsKnown(u) {
			continue
		}
		if u.IsOut() {
			evs = append(evs, &events.UseEnded{Use: u.Begun.Use, How: events.UseUnknown, Date: now})
			continue
		}
		why := u.stillHeld(s, now)
		if why == nil && c.Gone && u.Begun.Key == "" {
			why = parley.Refuse(parley.Cancelled, "nobody waits for the use any more, and it has no key")
		}
		if why != nil {
			ended, err := endAsked(s, func(o *ResourceUse) bool { return o == u }, why, now)
			if err != nil {
				return nil, err
			}
			evs = append(evs, ended...)
		}
	}
	return evs, nil
}

func resourceMade(f fold, e *events.ResourceMade) error {
	if f.Version != 2 || f.Profile.Kind != events.ResourceKind {
		return ErrNonsense
	}
	f.Resource.made = e
	return nil
}

func resourceRenewed(f fold, e *events.ResourceRenewed) error {
	if f.Resource.made == nil {
		return ErrNonsense
	}
	made := *f.Resource.made
	made.Tools = e.Tools
	f.Resource.made = &made
	return nil
}

// charge adds to, or takes from, what counts for a use: all, its grant, and those that this is derived from.
func (f fold) charge(b *events.UseBegun, back bool) {
	r := &f.Resource
	if r.used == nil {
		r.used = map[capabilities.ID]*grantUse{}
	}
	one := func(id capabilities.ID, rate capabilities.Rate) {
		u := r.used[id]
		if u == nil {
			u = &grantUse{}
			r.used[id] = u
		}
		if back {
			u.Used--
			return
		}
		u.Used++
		if n := int(rate.Uses); n > 0 {
			u.Recent = append(u.Recent[max(0, len(u.Recent)-n+1):len(u.Recent):len(u.Recent)], b.Date)
		}
	}
	one(capabilities.ID{}, r.made.Facet.Rate)
	for id := b.Grant; !id.IsZero(); {
		g, ok := f.Grants.minted.Get(id)
		if !ok {
			return
		}
		one(id, g.Facet.Rate)
		id = g.Parent
	}
}

func useBegun(f fold, e *events.UseBegun) error {
	r := &f.Resource
	if r.made == nil || r.use(e.Use) != nil {
		return ErrNonsense
	}
	f.charge(e, false)
	if today := dayOf(e.Date); r.day != today || r.today == nil {
		r.day, r.today = today, map[capabilities.ID]uint32{}
	}
	r.today[e.By]++
	r.uses = append(r.uses, ResourceUse{Begun: e})
	return nil
}

func useAllowed(f fold, e *events.UseAllowed) error {
	u := f.Resource.use(e.Use)
	if u == nil || !u.IsAsked() {
		return ErrNonsense
	}
	u.Allowed = e
	return nil
}

func useEnded(f fold, e *events.UseEnded) error {
	r := &f.Resource
	u := r.use(e.Use)
	if u == nil || u.Ended != nil {
		return ErrNonsense
	}
	if e.How == events.UseDenied {
		f.charge(u.Begun, true)
	}
	u.Ended = e
	ended := 0
	for i := range r.uses {
		if r.uses[i].Ended != nil {
			ended++
		}
	}
	for i := 0; ended > maxEndedUses; i++ {
		if r.uses[i].Ended != nil {
			r.forget(&r.uses[i])
			r.uses = slices.Delete(slices.Clone(r.uses), i, i+1)
			return nil
		}
	}
	return nil
}

// forget keeps what is left of a use that has ended. Nobody comes again for one without a key.
func (r *Resource) forget(u *ResourceUse) {
	b := u.Begun
	if b.Key == "" {
		return
	}
	if r.forgotten == nil {
		r.forgotten = map[capabilities.ID][]forgottenUse{}
	}
	all := append(r.forgotten[b.By], forgottenUse{Use: b.Use, Key: hashOfKey(b.Key), Digest: b.Digest, How: u.Ended.How})
	r.forgotten[b.By] = all[max(0, len(all)-maxForgottenUses):]
	n, most := 0, b.By
	for by, of := range r.forgotten {
		n += len(of)
		if m := len(r.forgotten[most]); len(of) > m || len(of) == m && by.Compare(most) < 0 {
			most = by
		}
	}
	if n > maxAllForgotten { // who has the most loses one
		r.forgotten[most] = r.forgotten[most][1:]
	}
}

type resourceSnapshot struct {
	Made  *events.ResourceMade
	Uses  []ResourceUse
	Used  []usedResource
	Day   int64
	Today []usedSnapshot

	Forgotten []forgottenSnapshot
}

type forgottenSnapshot struct {
	By   capabilities.ID
	Uses []forgottenUse
}

type usedResource struct {
	Grant capabilities.ID
	grantUse
}

// snapshot returns nil for an agent.
func (r *Resource) snapshot() *resourceSnapshot {
	if r.made == nil {
		return nil
	}
	img := &resourceSnapshot{Made: r.made, Uses: r.uses, Day: r.day}
	for _, id := range sortedIDs(r.used) {
		img.Used = append(img.Used, usedResource{id, *r.used[id]})
	}
	for _, id := range sortedIDs(r.today) {
		img.Today = append(img.Today, usedSnapshot{Grant: id, Uses: r.today[id]})
	}
	for _, id := range sortedIDs(r.forgotten) {
		img.Forgotten = append(img.Forgotten, forgottenSnapshot{By: id, Uses: r.forgotten[id]})
	}
	return img
}

func (img *resourceSnapshot) restore(r *Resource) error {
	if img == nil {
		return nil
	}
	if img.Made == nil {
		return ErrNonsense
	}
	*r = Resource{made: img.Made, uses: img.Uses, day: img.Day, used: map[capabilities.ID]*grantUse{}, today: map[capabilities.ID]uint32{}}
	for _, u := range img.Uses {
		if u.Begun == nil {
			return ErrNonsense
		}
	}
	for _, u := range img.Used {
		r.used[u.Grant] = &u.grantUse
	}
	for _, u := range img.Today {
		r.today[u.Grant] = u.Uses
	}
	for _, f := range img.Forgotten {
		if r.forgotten == nil {
			r.forgotten = map[capabilities.ID][]forgottenUse{}
		}
		r.forgotten[f.By] = f.Uses
	}
	return nil
}
