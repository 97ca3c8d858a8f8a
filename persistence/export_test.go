package persistence

import "testing"

// StartExternal starts a NATS server in a process of its own, and returns its URL.
func StartExternal(t *testing.T) string { return startExternal(t).options(t).URL }

// StartServers starts three NATS servers of one cluster, and returns their URLs.
func StartServers(t *testing.T) string { return startServers(t) }
