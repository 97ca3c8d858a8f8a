package transport

import (
	"strings"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
)

const everySubject = "parley.node.>"

func nodeSubject(node capabilities.NodeID) string { return "parley.node." + node.String() }

// mailSubject is where a node takes its packets.
func mailSubject(node capabilities.NodeID) string { return nodeSubject(node) + ".mail" }

// replySubject is where a node takes the response to one of its packets.
func replySubject(node capabilities.NodeID, packet ulid.ULID) string {
	return nodeSubject(node) + ".reply." + packet.String()
}

// replySubjects matches every replySubject of a node.
func replySubjects(node capabilities.NodeID) string { return nodeSubject(node) + ".reply.>" }

// packetID gives the ID of the packet whose replySubject it is.
func packetID(subject string) (ulid.ULID, bool) {
	id, err := ulid.ParseStrict(subject[strings.LastIndexByte(subject, '.')+1:])
	return id, err == nil
}
