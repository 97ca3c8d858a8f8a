package transport

import (
	"strings"

	"github.com/oklog/ulid/v2"

	"parley/capabilities"
)

const everySubject = "parley.node.>"

func nodeSubject(node capabilities.NodeID) string { return "parley.node." + node.String() }

// mailSubject is where a node takes its letters.
func mailSubject(node capabilities.NodeID) string { return nodeSubject(node) + ".mail" }

// replySubject is where a node takes the response to one of its letters.
func replySubject(node capabilities.NodeID, letter ulid.ULID) string {
	return nodeSubject(node) + ".reply." + letter.String()
}

// replySubjects matches every replySubject of a node.
func replySubjects(node capabilities.NodeID) string { return nodeSubject(node) + ".reply.>" }

// letterOf gives the ID of the letter whose replySubject it is.
func letterOf(subject string) (ulid.ULID, bool) {
	id, err := ulid.ParseStrict(subject[strings.LastIndexByte(subject, '.')+1:])
	return id, err == nil
}
