package gateway

import (
	"net"

	"parley"
)

// admit refuses a connection to the node's own socket that a program of the node's opened, or something that a program has
// started: on it one calls as the node's host. Who descends from whom is looked at once, when the connection comes.
func (s *Server) admit(conn net.Conn) error {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return parley.Refuse(parley.Internal, "a connection to the socket is a %T", conn)
	}
	pid, stays, err := callerOf(socket)
	if err == nil && pid == 0 {
		return nil
	}
	mine := false
	if err == nil {
		mine, err = s.node.RunsProcess(pid)
		if gone := stays(); err == nil {
			err = gone
		}
	}
	switch {
	case err != nil && s.node.HasRunPrograms():
		s.log.Warn("a connection to the socket is refused: it cannot be told who opened it", "process", pid, "error", err)
		return parley.Refuse(parley.NotPermitted, "it cannot be told which process calls, and so whether it is a program of the node's")
	case mine:
		s.log.Warn("a program of the node's called on the node's own socket, and is refused", "process", pid)
		return parley.Refuse(parley.NotPermitted, "a program of the node's does not call as the node's host").
			WithHint("what it asks goes through its input and output; or give it a token of its agent: parley token create --as NAME --scope ask,read")
	}
	return nil
}
