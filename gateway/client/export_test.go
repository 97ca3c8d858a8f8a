package client

// ReadPagesOf has the client read mailboxes in pages of so many messages.
func (c *Client) ReadPagesOf(messages int) { c.pageSize = messages }
