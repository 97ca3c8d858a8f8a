package client

// ReadPagesOf sets the number of messages in a page of a mailbox.
func (c *Client) ReadPagesOf(messages int) { c.pageSize = messages }
