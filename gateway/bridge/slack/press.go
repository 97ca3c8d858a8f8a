package slack

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	slackapi "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"parley"
	"parley/gateway/api"
	"parley/gateway/bridge"
)

const (
	patience   = 2500 * time.Millisecond // Slack takes an answer to a dialog for three seconds
	maxPresses = 16                      // at a time
	again      = time.Minute             // between two tries with tokens that Slack refuses
)

// Listen implements bridge.Listener.
func (s *Slack) Listen(ctx context.Context, host bridge.Host) {
	for ctx.Err() == nil {
		if err := s.listen(ctx, host); err != nil && ctx.Err() == nil {
			s.Log.Warn("Slack lets nobody press buttons", "error", err)
		}
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// listen takes presses until ctx ends, or Slack refuses the tokens. A connection that is lost is made again.
func (s *Slack) listen(ctx context.Context, host bridge.Host) (err error) {
	ctx, stop := context.WithCancel(ctx)
	client := socketmode.New(s.api, socketmode.OptionReadLimit(maxBody), socketmode.OptionDialer(&websocket.Dialer{
		NetDialContext: s.Dial, HandshakeTimeout: 10 * time.Second, WriteBufferSize: 32 << 10, // an answer is one frame
	}))
	var running sync.WaitGroup
	running.Go(func() {
		defer stop()
		err = parley.Survive(func() error { return client.RunContext(ctx) })
	})
	slots := make(chan struct{}, maxPresses)
	for ctx.Err() == nil {
		select {
		case e := <-client.Events:
			slots <- struct{}{}
			running.Go(func() {
				defer func() { <-slots }()
				if err := parley.Survive(func() error { s.take(ctx, client, host, e); return nil }); err != nil {
					s.Log.Error("a press at Slack cannot be handled", "error", err)
				}
			})
		case <-ctx.Done():
		}
	}
	stop()
	running.Wait()
	return err
}

// take takes what Slack sends.
func (s *Slack) take(ctx context.Context, client *socketmode.Client, host bridge.Host, e socketmode.Event) {
	switch e.Type {
	case socketmode.EventTypeConnectionError:
		s.Log.Warn("Slack's socket cannot be opened, and is tried again")
		return
	case socketmode.EventTypeErrorBadMessage:
		s.Log.Warn("Slack has sent what cannot be read")
		return
	}
	if e.Request == nil || e.Request.EnvelopeID == "" {
		return
	}
	c, isPress := e.Data.(slackapi.InteractionCallback)
	var answer any
	if isPress && c.Type == slackapi.InteractionTypeViewSubmission {
		if refused := s.submit(ctx, host, c); refused != nil {
			answer = refused
		}
	}
	if err := client.AckCtx(ctx, e.Request.EnvelopeID, answer); err != nil && ctx.Err() == nil {
		s.Log.Warn("Slack cannot be told that a press has arrived", "error", err)
	}
	if isPress && c.Type == slackapi.InteractionTypeBlockActions {
		if why := s.press(ctx, host, c); why != "" {
			s.say(ctx, c.User.ID, why)
		}
	}
}

// may reports whether a user may answer.
func (s *Slack) may(user string) bool { return len(s.Users) == 0 || slices.Contains(s.Users, user) }

// press does what a button is for. It returns what the user is told, if it was not done.
func (s *Slack) press(ctx context.Context, host bridge.Host, c slackapi.InteractionCallback) (why string) {
	if c.Channel.ID != s.channel || len(c.ActionCallback.BlockActions) != 1 {
		return ""
	}
	button := c.ActionCallback.BlockActions[0]
	outcome, ok := strings.CutPrefix(button.ActionID, action)
	if !ok {
		return ""
	}
	if !s.may(c.User.ID) {
		return "Not answered: you may not answer here."
	}
	form, secret, err := s.open(button.Value)
	if err == nil && outcome == "answer" {
		why, err = s.ask(ctx, host, c.TriggerID, form, button.Value)
	} else if err == nil {
		err = host.Answer(ctx, api.AnswerWithRequest{Secret: secret, Outcome: outcome, Reason: reasonOf(c)})
	}
	if err != nil {
		return "Not answered: " + parley.AsError(err).Message
	}
	return why
}

// reasonOf says who pressed, for the record of the answer.
func reasonOf(c slackapi.InteractionCallback) string {
	if !user().MatchString(c.User.ID) {
		return ""
	}
	return "by " + c.User.ID + " in Slack"
}

// ask opens the dialog of a form.
func (s *Slack) ask(ctx context.Context, host bridge.Host, trigger, form, pass string) (why string, err error) {
	n, err := host.Form(ctx, form)
	switch {
	case err != nil:
		return "", err
	case n.Status != "open":
		_, text := n.Done()
		return text, nil
	case !s.Fits(n): // it was amended
		return "The form has changed. Its new message has what to do.", nil
	}
	if _, err := s.api.OpenViewContext(ctx, trigger, dialogOf(n, pass)); err != nil && ctx.Err() == nil {
		s.Log.Warn("Slack opens no dialog", "error", err)
		return "Slack opened no dialog. Press again.", nil
	}
	return "", nil
}

// submit answers a form with what is in its dialog. It returns what the dialog shows then; nil if it closes.
func (s *Slack) submit(ctx context.Context, host bridge.Host, c slackapi.InteractionCallback) *slackapi.ViewSubmissionResponse {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if !s.may(c.User.ID) {
		return notAnswered("You may not answer here.")
	}
	form, secret, err := s.open(c.View.PrivateMetadata)
	var n bridge.Notice
	if err == nil {
		n, err = host.Form(ctx, form)
	}
	if err == nil {
		err = host.Answer(ctx, api.AnswerWithRequest{Secret: secret, Outcome: "answer", Texts: textsOf(n.Fields, c.View.State)})
	}
	if err == nil {
		return nil
	}
	refusal := parley.AsError(err)
	wrong := map[string]string{}
	for i, f := range n.Fields {
		if why := refusal.Fields[f.Name]; why != "" {
			wrong[blockOf(i)] = why
		}
	}
	if len(wrong) > 0 {
		return slackapi.NewErrorsViewSubmissionResponse(wrong)
	}
	return notAnswered(refusal.Message)
}
