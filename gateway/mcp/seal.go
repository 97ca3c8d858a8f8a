package mcp

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"parley"
)

const (
	stateTime = 24 * time.Hour
	maxState  = 1 << 10 // characters
	maxUsed   = 8192
)

// round is what ties the call that shows a form to the one that brings what the person did.
type round struct {
	Form  string    `json:"form"`
	Round int       `json:"round"` // from 1
	Link  bool      `json:"link,omitempty"`
	Until time.Time `json:"until"`
}

// seals seals rounds for their way through a client. A seal opens for its own agent, once, until its time is over.
// Those used are remembered until maxUsed others were, or the process ends; that is no gap: a round that did anything
// has settled its form, which no other does again.
type seals struct {
	aead cipher.AEAD

	mu    sync.Mutex
	used  map[string]struct{}
	order []string // of used, a ring
	next  int
}

// newSeals needs a key of 32 bytes that nobody else has.
func newSeals(key []byte) (*seals, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("seals: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("seals: %w", err)
	}
	return &seals{aead: aead, used: map[string]struct{}{}}, nil
}

func (s *seals) seal(agent string, r round) (string, error) {
	plain, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("seal: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, []byte(agent))), nil
}

// open gives the round in a state that a client sent. It refuses with NOT_PERMITTED what was not sealed here for the
// agent, was used, or is too old.
func (s *seals) open(agent, state string, now time.Time) (round, error) {
	var r round
	if len(state) > maxState {
		return r, wrongState("is none of this node's")
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil {
		return r, wrongState("is none of this node's")
	}
	plain, err := s.aead.Open(nil, nil, sealed, []byte(agent))
	if err != nil || json.Unmarshal(plain, &r) != nil {
		return r, wrongState("is none of this node's for this agent")
	}
	if now.After(r.Until) {
		return r, wrongState("has ended")
	}
	if !s.use(string(sealed)) {
		return r, wrongState("was used")
	}
	return r, nil
}

func wrongState(why string) error {
	return parley.Refuse(parley.NotPermitted, "the requestState %s", why).WithHint("await_answer with the form's handle goes on")
}

// use reports whether a seal is used for the first time.
func (s *seals) use(sealed string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.used[sealed]; again {
		return false
	}
	if len(s.order) < maxUsed {
		s.order = append(s.order, sealed)
	} else {
		delete(s.used, s.order[s.next])
		s.order[s.next] = sealed
		s.next = (s.next + 1) % maxUsed
	}
	s.used[sealed] = struct{}{}
	return true
}
