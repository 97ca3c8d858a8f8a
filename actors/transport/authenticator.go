package transport

import (
	"encoding/base64"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"parley/capabilities"
)

// maxToken bounds the length of a token that a node presents.
const maxToken = 512

// prove signs a listener's challenge. The signature is valid for that listener's node only. So it is useless to a node
// that passes on another node's challenge.
func (i *Identity) prove(listener capabilities.NodeID, nonce []byte) []byte {
	return i.sign(forConnection, i.node.Bytes(), listener.Bytes(), nonce)
}

// authenticator decides which nodes may connect to the listener, and their permissions.
type authenticator struct {
	node     capabilities.NodeID // the listener's own
	admit    func(node capabilities.NodeID, token string) bool
	listener *listener
}

// connectionsOfNode bounds the connections of one node. It has several only while it replaces a lost one.
const connectionsOfNode = 4

// Check admits a client that proves a node's key, if that node may connect. It implements natsserver.Authentication.
func (d *authenticator) Check(c natsserver.ClientAuthentication) bool {
	o := c.GetOpts()
	if c.Kind() != natsserver.CLIENT || o.JWT != "" || o.Username != "" || o.Password != "" || len(o.Token) > maxToken {
		return false
	}
	node, ok := d.proved(o, c.GetNonce())
	if !ok {
		return false
	}
	if node == d.node {
		c.RegisterUser(&natsserver.User{Permissions: ownPermissions()})
		return true
	}
	if d.admit == nil || !d.admit(node, o.Token) {
		return false
	}
	d.listener.makeRoom(node, connectionsOfNode)
	d.listener.front.proved(string(c.GetNonce()), node)
	c.RegisterUser(&natsserver.User{Permissions: guestPermissions(d.node, node)})
	return true
}

// proved returns the node whose key the client has proved.
func (d *authenticator) proved(o *natsserver.ClientOpts, nonce []byte) (capabilities.NodeID, bool) {
	node, err := capabilities.ParseNodeID(o.Nkey)
	if err != nil || len(nonce) == 0 {
		return node, false
	}
	if _, err := curveKey(node); err != nil {
		return node, false
	}
	signature, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil {
		return node, false
	}
	return node, signed(node, signature, forConnection, node.Bytes(), d.node.Bytes(), nonce)
}

func ownPermissions() *natsserver.Permissions {
	all := &natsserver.SubjectPermission{Allow: []string{everySubject}}
	return &natsserver.Permissions{Publish: all, Subscribe: all}
}

// guestPermissions allow a guest to write to the host, and to read its own subjects.
func guestPermissions(host, guest capabilities.NodeID) *natsserver.Permissions {
	return &natsserver.Permissions{
		Publish:   &natsserver.SubjectPermission{Allow: []string{mailSubject(host), replySubjects(host)}},
		Subscribe: &natsserver.SubjectPermission{Allow: []string{mailSubject(guest), replySubjects(guest)}},
	}
}
