package micro

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
	"parley/gateway/httpd"
	"parley/gateway/sanitize"
)

// endpoint is one operation of the service.
type endpoint struct {
	service   *Service
	operation api.Operation
	subject   string
	tally     tally
}

// handle performs the operation in a goroutine of its own.
func (e *endpoint) handle(r *nats.Msg) {
	v := e.service
	if !isReturnAddress(r.Reply) {
		return // no answer could be sent
	}
	if !v.enter() {
		e.tally.add(api.ErrStopping, 0)
		e.refuse(r, api.ErrStopping)
		return
	}
	leave, err := v.load.Admit(api.KindCalls, nil, len(r.Data)) // until its principal is known
	if err != nil {
		v.work.Done()
		v.o.Monitor.Count(e.operation.Name, err)
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
		v.o.Monitor.Ended(context.Background(), e.operation.Name, err, started)
	}()
}

// isReturnAddress reports whether a subject may be that of an answer. Subjects of the NATS system, of nodes and of their
// journals are refused: a client that may not publish there must not make this node do it.
func isReturnAddress(subject string) bool {
	first, _, _ := strings.Cut(subject, ".")
	return first != "" && first[0] != '$' && !strings.EqualFold(first, "parley")
}

// call performs the operation and sends its response. It calls known once the principal is known.
func (e *endpoint) call(r *nats.Msg, known func()) (err error) {
	o := e.service.o
	known = sync.OnceFunc(known)
	defer known()
	defer func() {
		if p := recover(); p != nil {
			err = o.Monitor.Panicked(e.operation.Name, p)
		}
	}()
	ctx, cancel := context.WithTimeout(o.Severed, serviceTime)
	defer cancel()
	if e.operation.Waits {
		ctx, cancel = api.UntilStopping(ctx, o.Draining)
		defer cancel()
	}
	p, err := o.Backend.Identify(ctx, api.BearerOf(r.Header.Get("Authorization")))
	known()
	if err != nil {
		o.Monitor.Failed(ctx, e.operation.Name, err)
		return err
	}
	held := api.ChargeOf(p.Account())
	defer held.Release()
	buf := o.Bodies.Get()
	defer o.Bodies.Put(buf)
	if err := e.perform(ctx, p, r.Data, held, buf); err != nil {
		o.Monitor.Failed(ctx, e.operation.Name, err)
		return err
	}
	return e.answer(r.Reply, buf)
}

// perform checks a request as the other edges do, and performs the operation.
func (e *endpoint) perform(ctx context.Context, p api.Principal, text []byte, held *api.Charge, into *bytes.Buffer) error {
	if err := p.May(e.operation); err != nil {
		return err
	}
	if len(text) > api.MaxBody {
		return api.TooLarge()
	}
	if err := p.Account().Pace(); err != nil {
		return err
	}
	if len(text) > api.BodyFree {
		if err := held.Add(int64(len(text))); err != nil {
			return err
		}
	}
	if err := api.CheckBody(text); err != nil {
		return err
	}
	return api.Serve(ctx, e.service.o.Backend, p, e.operation, api.JSON(text), held, httpd.EncodeInto(into))
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
	return nil // the operation was performed in any case
}

// refuse sends an error.
func (e *endpoint) refuse(r *nats.Msg, err error) {
	if err := e.service.conn.PublishMsg(refusal(r.Reply, err)); err != nil {
		e.service.unanswered(e.operation.Name, err)
	}
}

// refusal returns the message for an error: in the headers of micro services, with its status of HTTP, and in full as the
// body.
func refusal(to string, err error) *nats.Msg {
	f := api.Shown(err)
	body, err := json.Marshal(api.Failure{Error: f})
	if err != nil {
		body = nil // the headers say enough
	}
	return &nats.Msg{Subject: to, Data: body, Header: nats.Header{
		micro.ErrorHeader:     {string(f.Code) + ": " + sanitize.Line(f.Message)},
		micro.ErrorCodeHeader: {strconv.Itoa(api.HTTPStatus(f.Code))},
	}}
}
