package api

import (
	"context"
	"strings"

	"parley/capabilities"
)

// Principal is the caller of an operation: an agent that acts by a token or a session of its own. On the node's own
// socket it is the node's host. A Backend makes principals, and takes only its own.
type Principal interface {
	// ID returns the ID of the agent.
	ID() capabilities.ID
	// IsHost reports whether the agent is the node's host.
	IsHost() bool
	// IsLocal reports whether the principal calls on the node's own socket, without a token.
	IsLocal() bool
	// May refuses with NOT_PERMITTED an operation that the principal's token is not good for.
	May(Operation) error
	// Account returns the account that counts the principal's calls, waits and other resources in use.
	Account() Account
	// SessionKey returns the key of the browser's session that the principal acts by, or "" for a token.
	SessionKey() string
}

// Account counts the resources that one agent uses, and bounds them. Its methods may be called at the same time.
type Account interface {
	// Pace counts a call. It refuses with RATE_LIMITED a caller that calls too often.
	Pace() error
	// Take takes n places. It refuses with QUOTA_EXCEEDED or RATE_LIMITED more than the account's limit.
	Take(k Kind, n int64) error
	// Force takes n places in any case, for work that is done already.
	Force(k Kind, n int64)
	// Give releases n places.
	Give(k Kind, n int64)
	// Build blocks until the account may build a listing. If it returns no error, the caller calls built afterwards.
	Build(context.Context) (built func(), err error)
	// BuildReady is Build for a wait that has ended, whose result is in memory already. It refuses with RATE_LIMITED when
	// too many of them wait.
	BuildReady(context.Context) (built func(), err error)
	// InTurn calls work when it is the turn of the account's agent. Work takes the processor for a part of a listing.
	InTurn(ctx context.Context, work func() error) error
}

// Charge is the memory that one call has taken of an account.
type Charge struct {
	account Account
	bytes   int64
}

// ChargeOf returns an empty charge of an account.
func ChargeOf(a Account) *Charge { return &Charge{account: a} }

// Account returns the account of the charge.
func (c *Charge) Account() Account { return c.account }

// Bytes returns the size of the charge.
func (c *Charge) Bytes() int64 { return c.bytes }

// Add charges n bytes more. It refuses with RATE_LIMITED or QUOTA_EXCEEDED.
func (c *Charge) Add(n int64) error {
	if err := c.account.Take(KindMemory, n); err != nil {
		return err
	}
	c.bytes += n
	return nil
}

// Force charges n bytes more in any case.
func (c *Charge) Force(n int64) {
	c.account.Force(KindMemory, n)
	c.bytes += n
}

// Release releases the whole charge.
func (c *Charge) Release() {
	if c.bytes > 0 {
		c.account.Give(KindMemory, c.bytes)
		c.bytes = 0
	}
}

// BearerOf returns the token in an Authorization header, or "".
func BearerOf(authorization string) string {
	bearer, ok := strings.CutPrefix(authorization, "Bearer ")
	if !ok {
		return ""
	}
	return strings.TrimSpace(bearer)
}
