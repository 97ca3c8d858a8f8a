package mailbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"

	"parley"
	"parley/capabilities"
	"parley/events"
	"parley/mailbox/form"
	"parley/mailbox/passkey"
)

// Passkeys are the passkeys of an agent that decides, and where it wants one. Package passkey says how one signs.
type Passkeys struct {
	all   []Passkey
	needs []events.PasskeyRequired
}

// Passkey is a registered passkey, as its agent has it.
type Passkey struct {
	events.PasskeyAdded
	Used capabilities.Time // when it signed last; zero for never
}

// Bounds of passkeys.
const (
	maxPasskeys     = 16
	maxPasskeyNeeds = 256
	maxPasskeyName  = 80
)

// All returns the passkeys, oldest first. They belong to the state.
func (p *Passkeys) All() []Passkey { return p.all }

// Needs returns which decisions want a passkey, that for all agents first. They belong to the state.
func (p *Passkeys) Needs() []events.PasskeyRequired { return p.needs }

// Need returns which decisions on calls of an agent want a passkey.
func (p *Passkeys) Need(agent capabilities.ID) events.PasskeyNeed {
	need := events.PasskeyNever
	for _, n := range p.needs {
		switch n.Agent {
		case agent:
			return n.Need
		case capabilities.ID{}:
			need = n.Need
		}
	}
	return need
}

func (p *Passkeys) find(id capabilities.ID) int {
	return slices.IndexFunc(p.all, func(k Passkey) bool { return k.Passkey == id })
}

// of returns the passkey with a device's ID, as a browser sends it.
func (p *Passkeys) of(credential string) *Passkey {
	b, err := base64.RawURLEncoding.DecodeString(credential)
	if i := slices.IndexFunc(p.all, func(k Passkey) bool { return bytes.Equal(k.Credential, b) }); err == nil && i >= 0 {
		return &p.all[i]
	}
	return nil
}

// Signature returns what a passkey of the agent has signed, which has to be the statement but for the nonce. It refuses with
// PASSKEY_REFUSED.
func (p *Passkeys) Signature(sent *parley.PasskeySignature, wanted passkey.Statement) (*events.DecisionSigned, UsePasskey, error) {
	key := p.of(sent.Credential)
	if key == nil {
		return nil, UsePasskey{}, parley.Refuse(parley.PasskeyRefused, "the passkey is not registered").WithHint("parley passkey ls lists those that are")
	}
	said, err := passkey.Read(sent.Statement)
	if err != nil {
		return nil, UsePasskey{}, err
	}
	wanted.Nonce = said.Nonce
	if said != wanted || said.Nonce == "" {
		return nil, UsePasskey{}, parley.Refuse(parley.PasskeyRefused, "the passkey has signed something else than this").WithHint("it was asked for another decision, or the question has changed: decide once more")
	}
	signed, err := passkey.Parse(sent, key.Key, key.Origin)
	if err != nil {
		return nil, UsePasskey{}, err
	}
	count, err := signed.Check()
	if err != nil {
		return nil, UsePasskey{}, err
	}
	use := UsePasskey{Passkey: key.Passkey, Form: said.Form, Count: count}
	if err := use.check(key); err != nil {
		return nil, UsePasskey{}, err
	}
	return &events.DecisionSigned{
		Form: said.Form, Passkey: key.Passkey, Key: key.Key, Origin: key.Origin,
		Statement: signed.Statement, ClientData: signed.ClientData, Authenticator: signed.Authenticator, Signature: signed.Signature,
	}, use, nil
}

// statementOf returns what an answer to a form means, and whether it allows a call.
func statementOf(f *Form, r *Reply, values map[string]capabilities.Value) (s passkey.Statement, allows bool, err error) {
	s = passkey.Statement{Form: f.ID, Digest: f.QuestionDigest()}
	type given struct {
		Name string             `json:"name,omitempty"`
		Held capabilities.Value `json:"held"` // as its giver holds it
	}
	with := struct {
		Given   map[string]given              `json:"given,omitempty"`
		Mandate *parley.MandateTerms          `json:"mandate,omitempty"`
		Narrow  map[string]capabilities.Facet `json:"narrow,omitempty"`
		Until   string                        `json:"until,omitempty"`
	}{Mandate: r.Mandate, Narrow: r.Narrow}
	if f.Kind == events.Approval {
		s.Decision, _ = ReadDecision(capabilities.Record(values))
		allows = s.Decision == Once || s.Decision == Always
		values = maps.Clone(values) // as checkApproval leaves them
		if input, _ := values[inputField].AsString(); input == f.Description {
			delete(values, inputField)
		}
		with.Until, _ = values[untilField].AsString() // a time from then is stored as a moment
		delete(values, untilField)
	}
	secrets := map[string]bool{}
	for i := range f.Fields {
		secrets[f.Fields[i].Name] = form.ControlOf(&f.Fields[i]) == form.Secret
	}
	for name, v := range values {
		if v.Has(capabilities.Value.IsRef) && !secrets[name] {
			if with.Given == nil {
				with.Given = map[string]given{}
			}
			one := given{Held: v}
			for _, t := range r.Texts {
				if t.Name == name {
					one.Name = t.Text
				}
			}
			with.Given[name] = one
		}
	}
	if s.Answer, err = passkey.Answered(values, secrets); err != nil {
		return s, allows, err
	}
	if with.Mandate != nil || len(with.Narrow)+len(with.Given) > 0 || with.Until != "" {
		text, err := json.Marshal(with)
		if err != nil {
			return s, allows, err
		}
		s.With = sha256.Sum256(text)
	}
	return s, allows, nil
}

// sign adds to a settlement what a passkey has signed of it. It refuses with PASSKEY_REQUIRED an answer that wants one and has none.
func sign(s *State, c *SettleForm, f *Form, r *Reply, values map[string]capabilities.Value) error {
	said, allows, err := statementOf(f, r, values)
	if err != nil {
		return err
	}
	lasts := said.Decision == Always || r.Mandate != nil // calls run then that nobody decides on
	wants := allows && !s.isRemote(f.From) && s.Passkeys.wants(f, r.Risk, lasts) || f.AsksPasskey() && (allows || f.Kind != events.Approval)
	switch {
	case r.Unsigned:
		c.Statement, c.Wants = said, wants
		return nil
	case r.Passkey == nil && wants:
		return unsigned(f)
	case r.Passkey == nil:
		return nil
	case s.isRemote(f.From) && !wants:
		return parley.Refuse(parley.PasskeyRefused, "a passkey signs answers to agents of its own node").WithHint("answer without it")
	}
	c.Signed, c.Use, err = s.Passkeys.Signature(r.Passkey, said)
	if err == nil {
		c.Signed.By = s.ID
	}
	return err
}

// unsigned returns the error for an answer that wants a passkey and has none.
func unsigned(f *Form) error {
	if f.Kind == events.Approval {
		return parley.Refuse(parley.PasskeyRequired, "allowing this call has to be signed with a passkey").
			WithHint("allow it on the page (parley open): the browser asks for the passkey. Denying it needs none")
	}
	return parley.Refuse(parley.PasskeyRequired, "an answer to this form has to be signed with a passkey").
		WithHint("answer it on the page (parley open): the browser asks for the passkey. Declining it needs none")
}

// checkSigned refuses, at the form's home, an answer without the signature that the form asks for. It is checked there once more, so that
// no way by which answers come is without it.
func (c SettleForm) checkSigned(f *Form) error {
	if c.Signed != nil || !f.AsksPasskey() {
		return nil
	}
	if decision, _ := ReadDecision(capabilities.Record(c.Values)); f.Kind == events.Approval && decision == Deny {
		return nil
	}
	return unsigned(f)
}

// checkSignature checks what a passkey has signed of an answer on another node: that it is of this very answer. Whose the passkey is, that
// node alone knows.
func (c RemoteAnswer) checkSignature(f *Form, values map[string]capabilities.Value) error {
	if !f.AsksPasskey() || c.Signed.By != c.By || c.Signed.Form != c.Form || c.Signed.Passkey.Node != c.By.Node {
		return parley.Refuse(parley.PasskeyRefused, "the answer brings a signature that was not asked for")
	}
	signed := passkey.Of(c.Signed)
	if _, err := signed.Check(); err != nil {
		return err
	}
	said, err := passkey.Read(signed.Statement)
	if err != nil {
		return err
	}
	wanted, _, err := statementOf(f, &Reply{}, values)
	if err != nil {
		return err
	}
	wanted.Nonce, wanted.With = said.Nonce, said.With // the names and bounds given beside are told by the grants alone
	if said != wanted {
		return parley.Refuse(parley.PasskeyRefused, "the passkey has signed something else than this answer")
	}
	return nil
}

// Signed returns what a passkey has signed of the answer to a form; nil for none. Of an open form it is of an answer that is on its way.
// Only the form's home and the answerer have it: who knows it could guess the values.
func Signed(f *Form) *events.DecisionSigned { return f.passed.get().Signed }

// noteSigned notes what a passkey has signed of the answer or vote that follows.
func noteSigned(f *Form, e *events.DecisionSigned) {
	p := f.passed.edit()
	if p.Signed = e; e == nil && p.Forwarded == nil && p.Routed == nil && p.Reminded == nil && p.Claims.Last == nil && p.Claims.By == nil {
		f.passed.part = nil // as if there had been none
	}
}

// noteAnswer notes how a form was answered. A signature that came before it is of this answer, if it is by the answerer.
func noteAnswer(f *Form, e *events.FormAnswered) {
	if f.Answered = e; Signed(f) != nil && Signed(f).By != e.By {
		noteSigned(f, nil)
	}
}

// noteVote notes a vote. A signature that came before it is of this vote, and not of the answer that ends the form.
func noteVote(f *Form, e *events.VoteCast) {
	if f.votes.edit().Cast(*e); Signed(f) != nil && Signed(f).By == e.By {
		noteSigned(f, nil)
	}
}

// wants reports whether allowing a call has to be signed. What allows later calls too has to be wherever anything has.
func (p *Passkeys) wants(f *Form, risk func(*parley.Permission) Risk, lasts bool) bool {
	switch p.Need(f.From) {
	case events.PasskeyAll:
		return true
	case events.PasskeyHigh:
		return lasts || risk == nil || risk(f.Permission()).Level == HighRisk
	}
	return false
}

// DraftStatement returns what a passkey signs of a reply, but for the nonce, and whether the reply wants it.
func DraftStatement(s *State, r Reply, now capabilities.Time, ids IDs) (passkey.Statement, bool, error) {
	r.Unsigned, r.Passkey = true, nil
	c, _, err := s.DraftAnswer(r, now, ids)
	return c.Statement, c.Wants, err
}

// AddPasskey registers a passkey. Whoever decides that it may be has checked what the browser returned.
type AddPasskey struct{ events.PasskeyAdded }

func (c AddPasskey) decide(s *State, now capabilities.Time, ids IDs) ([]events.Event, error) {
	e := c.PasskeyAdded
	if err := checkText("a passkey's name", e.Name, maxPasskeyName); err != nil {
		return nil, err
	}
	switch _, err := passkey.ParseKey(e.Key); {
	case e.Name == "":
		return nil, parley.Refuse(parley.InvalidArgument, "a passkey needs a name")
	case err != nil:
		return nil, err
	case len(e.Credential) == 0 || len(e.Credential) > passkey.MaxCredential:
		return nil, parley.Refuse(parley.InvalidArgument, "a passkey's ID has 1 to %d bytes", passkey.MaxCredential)
	case len(s.Passkeys.all) >= maxPasskeys:
		return nil, parley.Refuse(parley.TooLarge, "there are %d passkeys already", maxPasskeys).WithHint("parley passkey rm removes one")
	}
	if _, err := passkey.HostOf(e.Origin); err != nil {
		return nil, err
	}
	for _, k := range s.Passkeys.all {
		switch {
		case bytes.Equal(k.Credential, e.Credential):
			return nil, parley.Refuse(parley.NameTaken, "this passkey is registered already, as %s", k.Name)
		case k.Name == e.Name:
			return nil, parley.Refuse(parley.NameTaken, "there is a passkey %s already", k.Name)
		}
	}
	e.Passkey, e.Date = ids(), now
	return []events.Event{&e}, nil
}

// RemovePasskey removes a passkey, by its name or ID. The last one stays while decisions want one.
type RemovePasskey struct{ Which string }

func (c RemovePasskey) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	key, err := s.Passkeys.Named(c.Which)
	if err != nil {
		return nil, err
	}
	needed := func(n events.PasskeyRequired) bool { return n.Need != events.PasskeyNever }
	if len(s.Passkeys.all) == 1 && slices.ContainsFunc(s.Passkeys.needs, needed) {
		return nil, parley.Refuse(parley.PasskeyRequired, "it is the only passkey, and decisions have to be signed with one").
			WithHint("register another one, or end that first: parley passkey require never")
	}
	return []events.Event{&events.PasskeyRemoved{Passkey: key.Passkey}}, nil
}

// Named returns a passkey by its name or ID. It refuses with UNKNOWN_NAME.
func (p *Passkeys) Named(which string) (*Passkey, error) {
	i := slices.IndexFunc(p.all, func(k Passkey) bool { return k.Name == which || k.Passkey.String() == which })
	if i < 0 {
		return nil, parley.Refuse(parley.UnknownName, "there is no passkey %s", parley.Quoted(which, 80)).WithHint("parley passkey ls lists them")
	}
	return &p.all[i], nil
}

// RequirePasskey says which decisions want a passkey: those on calls of Agent, or of all agents if that is zero. No Need ends what was
// said of Agent.
type RequirePasskey struct{ events.PasskeyRequired }

func (c RequirePasskey) decide(s *State, _ capabilities.Time, _ IDs) ([]events.Event, error) {
	i := slices.IndexFunc(s.Passkeys.needs, func(n events.PasskeyRequired) bool { return n.Agent == c.Agent })
	switch {
	case c.Need == "" && c.Agent.IsZero(), !slices.Contains([]events.PasskeyNeed{"", events.PasskeyNever, events.PasskeyHigh, events.PasskeyAll}, c.Need):
		return nil, parley.Refuse(parley.InvalidArgument, "a passkey is required %s, %s or %s, and not %s", events.PasskeyNever, events.PasskeyHigh, events.PasskeyAll, parley.Quoted(string(c.Need), 40))
	case len(s.Passkeys.all) == 0 && c.Need != events.PasskeyNever && c.Need != "":
		return nil, parley.Refuse(parley.PasskeyRequired, "there is no passkey yet, so nothing could be allowed").WithHint("register one on the page: Settings, Passkeys")
	case i < 0 && (c.Need == "" || c.Need == events.PasskeyNever && c.Agent.IsZero()), i >= 0 && s.Passkeys.needs[i].Need == c.Need:
		return nil, nil
	case i < 0 && len(s.Passkeys.needs) >= maxPasskeyNeeds:
		return nil, parley.Refuse(parley.TooLarge, "passkeys are required of %d agents at most", maxPasskeyNeeds)
	}
	return []events.Event{&c.PasskeyRequired}, nil
}

// Loosens reports whether the command ends or lessens what is required now.
func (c RequirePasskey) Loosens(p *Passkeys) bool {
	rank := map[events.PasskeyNeed]int{events.PasskeyNever: 0, events.PasskeyHigh: 1, events.PasskeyAll: 2}
	if c.Need == "" {
		c.Need = p.Need(capabilities.ID{})
	}
	return rank[c.Need] < rank[p.Need(c.Agent)]
}

// UsePasskey takes the count of a device that has signed.
type UsePasskey struct {
	Passkey capabilities.ID
	Form    capabilities.ID // zero for something else than an answer
	Count   uint32
}

// check refuses a count that does not grow: of two that have one device's key, one is a copy. A device that does not count says 0.
func (c UsePasskey) check(key *Passkey) error {
	if c.Count <= key.Count && (c.Count != 0 || key.Count != 0) {
		return parley.Refuse(parley.PasskeyRefused, "the passkey %s has signed %d times by its device, and has said %d before: it may have been copied", key.Name, c.Count, key.Count).
			WithHint("parley passkey rm removes it; register another one")
	}
	return nil
}

func (c UsePasskey) decide(s *State, now capabilities.Time, _ IDs) ([]events.Event, error) {
	i := s.Passkeys.find(c.Passkey)
	if i < 0 {
		return nil, parley.Refuse(parley.PasskeyRefused, "the passkey is not registered any more")
	}
	if err := c.check(&s.Passkeys.all[i]); err != nil {
		return nil, err
	}
	return []events.Event{&events.PasskeyUsed{Passkey: c.Passkey, Form: c.Form, Count: c.Count, Date: now}}, nil
}

func passkeyAdded(f fold, e *events.PasskeyAdded) error {
	p := &f.Passkeys
	if p.find(e.Passkey) >= 0 || len(p.all) >= maxPasskeys {
		return ErrNonsense
	}
	p.all = append(p.all, Passkey{PasskeyAdded: *e})
	return nil
}

func passkeyRemoved(f fold, e *events.PasskeyRemoved) error {
	i := f.Passkeys.find(e.Passkey)
	if i < 0 {
		return ErrNonsense
	}
	f.Passkeys.all = slices.Delete(f.Passkeys.all, i, i+1)
	return nil
}

func passkeyRequired(f fold, e *events.PasskeyRequired) error {
	p := &f.Passkeys
	p.needs = slices.DeleteFunc(p.needs, func(n events.PasskeyRequired) bool { return n.Agent == e.Agent })
	switch {
	case len(p.needs) >= maxPasskeyNeeds:
		return ErrNonsense
	case e.Need == "":
	case e.Agent.IsZero():
		p.needs = slices.Insert(p.needs, 0, *e)
	default:
		p.needs = append(p.needs, *e)
	}
	return nil
}

func passkeyUsed(f fold, e *events.PasskeyUsed) error {
	i := f.Passkeys.find(e.Passkey)
	if i < 0 {
		return ErrNonsense
	}
	f.Passkeys.all[i].Count, f.Passkeys.all[i].Used = e.Count, f.at
	return nil
}

// decisionSigned notes what a passkey has signed of the answer or vote that follows.
func decisionSigned(f fold, e *events.DecisionSigned) error {
	m, err := f.Mail.openForm(e.Form)
	if err != nil {
		return err
	}
	f.Mail.touch(m, f.Version)
	noteSigned(m.Form, e)
	f.Mail.Index.entries.Note(m.Number, f.Version)
	return nil
}
