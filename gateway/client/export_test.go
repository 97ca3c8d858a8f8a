package client

// ReadPagesOf sets the number of messages in a page of a mailbox.
func (c *Client) ReadPagesOf(messages int) { c.pageSize = messages }

// MaxUnclaimed is the number of outcomes on their way that nobody awaits.
const MaxUnclaimed = maxUnclaimed

// SignInAtMost sets the number of agents that are signed in on a connection at once.
func (c *Client) SignInAtMost(agents int) { c.transport.signs = agents }
