package ws

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"parley"
	"parley/gateway/api"
	"parley/gateway/mux"
	"parley/internal/pack"
	"parley/internal/websocket"
)

// binary is the spelling of package mux.
type binary struct{ *session }

func (binary) kind() websocket.Kind { return websocket.Binary }

func (s binary) receive(kind websocket.Kind, message []byte) error {
	if kind != websocket.Binary {
		return parley.Refuse(parley.InvalidArgument, "the messages of %s are binary", mux.Protocol)
	}
	return mux.ReadClient(message, s.dispatch)
}

// dispatch handles a frame. An error ends the session.
func (s binary) dispatch(f mux.Frame) error {
	switch f.Kind {
	case mux.Cancel:
		s.cancel(f.ID, nil)
		return nil
	case mux.Credit:
		s.allow(f.ID, f.Credit)
		return nil
	case mux.SignOut:
		s.signOut(f.Agent)
		return s.reply(s.agent(0), f.ID, nil, pack.AppendMap(nil, 0), nil)
	}
	a := s.agent(f.Agent)
	switch {
	case a == nil:
		err := parley.Refuse(parley.Unauthenticated, "no agent %d is signed in on this connection", f.Agent)
		return s.reply(s.agent(0), f.ID, nil, nil, err)
	case f.Kind == mux.SignIn:
		return s.begin(a, f.ID, nil, func() error { return s.signIn(a, f.ID, bytes.Clone(f.Body)) })
	}
	c := &call{session: s.session, agent: a, id: f.ID, plain: !mux.NewReader(f.Body).IsJSON(), started: time.Now()}
	return s.begin(a, f.ID, c, func() (err error) {
		if err := a.principal.Account().Pace(); err != nil {
			return err
		}
		switch f.Kind {
		case mux.Ask:
			f.Operation = "form"
		case mux.Follow:
			f.Operation = "follow_messages"
		case mux.FollowAgents:
			f.Operation = "fetch_agents"
		}
		var known bool
		if c.operation, known = s.server.backend.Operations()[f.Operation]; !known {
			return parley.Refuse(parley.InvalidArgument, "there is no operation %.80q", f.Operation)
		}
		if c.request, err = readFrame(f.Body); err != nil {
			return err
		}
		return c.try(f.Kind, f.Credit)
	})
}

// frameRequest is the request of a frame.
type frameRequest struct{ mux.Request }

func (r frameRequest) Clone() request { return frameRequest{r.Request.Clone()} }

func readFrame(body []byte) (request, error) {
	r, err := mux.ReadRequest(body)
	return frameRequest{r}, err
}

// signIn signs in the agent of a token.
func (s binary) signIn(a *agent, id uint64, body []byte) error {
	if err := a.principal.Account().Pace(); err != nil {
		return err
	}
	return s.run(a, id, true, func(ctx context.Context) {
		n, err := s.identify(ctx, body)
		_ = s.finish(id, a, pack.AppendUint(pack.AppendString(pack.AppendMap(nil, 1), "agent"), n), err) // the session ends if the client takes no more
	})
}

func (s binary) identify(ctx context.Context, body []byte) (number uint64, err error) {
	r, err := mux.ReadRequest(body)
	if err != nil {
		return 0, err
	}
	var in struct {
		Token string `json:"token"`
	}
	if err := r.Read(&in); err != nil {
		return 0, err
	}
	p, err := s.server.backend.Identify(ctx, in.Token)
	if err != nil {
		return 0, err
	}
	return s.admit(p)
}

// response appends a map if the request was one, and JSON otherwise.
func (binary) response(b []byte, c *call, resp any) ([]byte, error) {
	if c.plain {
		return mux.Append(b, resp)
	}
	text, err := mux.Marshal(resp)
	return mux.AppendJSON(b, text), err
}

func (binary) frame(b []byte, k mux.Kind, id uint64, _ *call, body []byte, err error) []byte {
	if err != nil {
		text, failed := json.Marshal(api.Shown(err))
		if failed != nil {
			text = []byte(`{"code":"INTERNAL","message":"internal error"}`)
		}
		body = mux.AppendJSON(nil, text)
	}
	return mux.AppendNode(b, mux.Frame{Kind: k, ID: id, Body: body})
}
