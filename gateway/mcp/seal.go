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

// round is the state between the call that shows a form and the one with the person's response.
type round struct {
	Form  string    `json:"form"`
	Round int       `json:"round"` // from 1
	Link  bool      `json:"link,omitempty"`
	Asked bool      `json:"asked,omitempty"` // the call has sent the form, and no other call knows it
	Until time.Time `json:"until"`
}

// seals seals rounds, which pass through a client. A seal opens for its agent, once, until it expires. Used seals are
// remembered until maxUsed later ones were used or the process ends. A replay after that is harmless: a used round has
// settled its form already.
type seals struct {
	aead cipher.AEAD

	mu    sync.Mutex
	used  map[string]struct{}
	order []string // of used, a ring
	next  int
}

// newSeals returns seals with a secret key of 32 bytes.
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

// open returns the round in a client's state. It refuses with NOT_PERMITTED a state that was not sealed here for the
// agent, was used, or has expired.
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
