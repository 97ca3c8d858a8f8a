package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"parley"
	"parley/gateway/api"
	"parley/gateway/sanitize"
)

// endpoint is one operation as the service offers it.
type endpoint struct {
	service   *service
	operation operation
	tally     tally
}

// Handle takes a request. It returns at once: the operation is performed aside, and answers when it has ended.
func (e *endpoint) Handle(r micro.Request) {
	v := e.service
	if !isReturnAddress(r.Reply()) {
		return // nothing that was done could be told
	}
	if !v.enter() {
		e.refuse(r, errStopping)
		return
	}
	leave, err := v.load.admit(kindCalls, nil, len(r.Data())) // until it is known whose request it is
	if err != nil {
		v.work.Done()
		v.server.metrics.called(e.operation.Name, err)
		e.tally.add(err, 0)
		e.refuse(r, err)
		return
	}
	go func() {
		defer v.work.Done()
		started := time.Now()
		err := e.call(r, leave)
		if err != nil {
			e.refuse(r, err)
		}
		e.tally.add(err, time.Since(started))
		v.server.access(context.Background(), e.operation.Name, err, started)
	}()
}

// isReturnAddress reports whether a subject may be one on which somebody waits for an answer. The subjects of the NATS
// system itself, and those of nodes and their journals, are none: whoever may not send there may not have this node do it.
func isReturnAddress(subject string) bool {
	first, _, _ := strings.Cut(subject, ".")
	return first != "" && first[0] != '$' && !strings.EqualFold(first, "parley")
}

// call performs the operation and sends what it gives. It calls known when it is known whose request it is.
func (e *endpoint) call(r micro.Request, known func()) (err error) {
	s := e.service.server
	known = sync.OnceFunc(known)
	defer known()
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(e.operation.Name, p)
		}
	}()
	ctx, cancel := context.WithTimeout(s.severed, serviceTime)
	defer cancel()
	if e.operation.Waits {
		ctx, cancel = s.untilDraining(ctx)
		defer cancel()
	}
	p, err := s.identify(ctx, bearerOf(r.Headers().Get("Authorization")))
	known()
	if err != nil {
		s.note(ctx, e.operation.Name, err)
		return err
	}
	held := &charge{account: p.account}
	defer held.release()
	buf := s.bodies.get()
	defer s.bodies.put(buf)
	if err := e.perform(p.as(ctx), p, r.Data(), held, buf); err != nil {
		s.note(ctx, e.operation.Name, err)
		return err
	}
	return e.answer(r.Reply(), buf)
}

// perform checks what a principal calls with, as the other edges do, and performs the operation.
func (e *endpoint) perform(ctx context.Context, p *principal, text []byte, held *charge, into *bytes.Buffer) error {
	if err := p.may(e.operation.Operation); err != nil {
		return err
	}
	if len(text) > MaxBody {
		return tooLarge()
	}
	if err := p.account.pace(); err != nil {
		return err
	}
	if len(text) > bodyFree {
		if err := held.add(int64(len(text))); err != nil {
			return err
		}
	}
	if err := checkBody(text); err != nil {
		return err
	}
	return e.service.server.produce(ctx, held, e.operation, body(text), encodeInto(into))
}

// answer sends a response, or refuses with TOO_LARGE one that the NATS system does not take.
func (e *endpoint) answer(to string, body *bytes.Buffer) error {
	err := e.service.conn.PublishMsg(&nats.Msg{Subject: to, Data: body.Bytes()})
	if errors.Is(err, nats.ErrMaxPayload) {
		return parley.Refuse(parley.TooLarge, "the answer has %d bytes: the NATS system takes %d", body.Len(), e.service.conn.MaxPayload()).
			WithHint("ask for fewer at once, or over HTTP")
	}
	if err != nil {
		e.service.unanswered(e.operation.Name, err)
	}
	return nil // it was done, whether or not anybody is told
}

// refuse sends an error: in the headers that clients of micro services look at, with the status that it has over HTTP,
// and in full as the body.
func (e *endpoint) refuse(r micro.Request, err error) {
	f := shown(err)
	body, err := json.Marshal(api.Failure{Error: f})
	if err != nil {
		body = nil // the headers say enough
	}
	err = e.service.conn.PublishMsg(&nats.Msg{Subject: r.Reply(), Data: body, Header: nats.Header{
		micro.ErrorHeader:     {string(f.Code) + ": " + sanitize.Line(f.Message)},
		micro.ErrorCodeHeader: {strconv.Itoa(api.HTTPStatus(f.Code))},
	}})
	if err != nil {
		e.service.unanswered(e.operation.Name, err)
	}
}
