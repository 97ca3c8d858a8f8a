// Package mux holds the frames of the binary protocol at /ws: calls, waits and follows of several agents over one
// connection. Server and client use it.
//
// A WebSocket message is one frame or several, one behind the other. A frame is a msgpack array. Its first element is the
// kind, its second the ID that the client gave to what it began:
//
//	client: [0, id, agent, operation, body]    call
//	        [1, id]                            cancel: nobody waits for id any more
//	        [2, id, {"token":…}]                signIn: the result is {"agent": n}
//	        [3, id, agent]                     signOut
//	        [4, id, agent, body]               ask: form, with its outcome
//	        [5, id, agent, body, credit]       follow: messages, with credit for so many items
//	        [6, id, credit]                    credit for more items
//	        [7, id, agent, body, credit]       follow: agents, with credit for so many items
//	        [8, id, agent, operation, body]    ask: form, request or approve, with its outcome
//	node:   [0, id, body]                      result: the last frame with the ID
//	        [1, id, {"code":…,"message":…}]    refusal: the last frame with the ID
//	        [2, id, body]                      asked: what was asked is on disk, its outcome follows as the result
//	        [3, id, body]                      item of a follow
//	        [4, 0, {"code":…,"message":…}]     going: the node begins nothing more on this connection
//
// An item of messages is {"cursor":…,"message":…}. An item of agents is {"kind":"upsert" or "remove","agent":…}, or
// {"kind":"told"} after the agents that there are at first.
//
// A body is a map with the members of its JSON at /rpc. It may also be an extension of type 1 with that JSON as text.
// The same extension may stand for any value within a map. The node answers a call in the form of its body.
//
// The package promises that a frame is read whole or refused: no length in it is believed before the bytes are there, and
// no body nests deeper than MaxDepth. One codec writes and reads the bodies of all operations, from their types. A body in
// another spelling than it writes is read, or refused, as its JSON: so both have one meaning.
package mux
