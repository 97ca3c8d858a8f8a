package slack

import (
	"context"
	"crypto/cipher"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	slackapi "github.com/slack-go/slack"

	"parley"
	"parley/gateway/bridge"
)

// maxBody bounds what Slack answers to a call, and a message on its socket.
const maxBody = 1 << 20

// Options configure a Slack.
type Options struct {
	URL    string   // of the channel
	Tokens string   // the token of the app and that of its bot
	Key    string   // seals the rights in buttons
	Users  []string // who may answer; none for everybody in the channel
	Client *http.Client
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
	Log    *slog.Logger
}

// Slack is a receiver. It implements bridge.Listener.
type Slack struct {
	Options
	channel string
	seal    cipher.AEAD
	api     *slackapi.Client
}

// user is the ID of a user.
var user = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[UW][A-Z0-9]{1,30}$`) })

// New returns a receiver. It refuses with INVALID_ARGUMENT settings that it cannot have.
func New(o Options) (*Slack, error) {
	api, channel, err := parseChannel(o.URL)
	if err != nil {
		return nil, err
	}
	app, bot, err := parseTokens(o.Tokens)
	if err != nil {
		return nil, err
	}
	seal, err := newSeal(o.Key)
	if err != nil {
		return nil, err
	}
	for _, u := range o.Users {
		if !user().MatchString(u) {
			return nil, parley.Refuse(parley.InvalidArgument, "%s is no user of Slack", parley.Quoted(u, 40)).WithHint("a member's profile has \"Copy member ID\", as U0123ABCDEF")
		}
	}
	bounded := *o.Client
	bounded.Transport = boundedBody{bounded.Transport}
	return &Slack{Options: o, channel: channel, seal: seal, api: slackapi.New(bot,
		slackapi.OptionAppLevelToken(app), slackapi.OptionAPIURL(api), slackapi.OptionHTTPClient(&bounded))}, nil
}

// channels are the paths of channels.
var channels = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/archives/([CDG][A-Z0-9]{1,30})/?$`) })

// parseChannel returns the address of Slack's web calls and the channel of a link such as
// https://team.slack.com/archives/C0123ABCDEF.
func parseChannel(link string) (api, channel string, err error) {
	u, err := url.Parse(link)
	var found []string
	if err == nil {
		found = channels().FindStringSubmatch(u.Path)
	}
	if found == nil || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return "", "", parley.Refuse(parley.InvalidArgument, "%s is no channel of Slack", parley.Quoted(link, 80)).
			WithHint("\"Copy link\" of a channel has it, as https://team.slack.com/archives/C0123ABCDEF")
	}
	host := u.Host
	for _, domain := range []string{"slack.com", "slack-gov.com"} {
		if strings.HasSuffix(host, "."+domain) {
			host = domain
		}
	}
	return u.Scheme + "://" + host + "/api/", found[1], nil
}

// parseTokens returns the token of an app and that of its bot, which a text has in any order.
func parseTokens(text string) (app, bot string, err error) {
	tokens := strings.Fields(text)
	slices.Sort(tokens)
	if len(tokens) != 2 || !strings.HasPrefix(tokens[0], "xapp-") || !strings.HasPrefix(tokens[1], "xoxb-") {
		return "", "", parley.Refuse(parley.InvalidArgument, "Slack needs two tokens: one begins with xapp-, the other with xoxb-").WithHint("give both with --token-file, each on a line")
	}
	return tokens[0], tokens[1], nil
}

// boundedBody bounds the bodies of responses.
type boundedBody struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundedBody) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxBody), resp.Body}
	}
	return resp, err
}

// Tell implements bridge.Receiver. The mark is the time of the message, which names it.
func (s *Slack) Tell(ctx context.Context, n bridge.Notice) (mark string, err error) {
	fallback, blocks := s.opened(n)
	if n.Mark != "" {
		return n.Mark, s.update(ctx, n.Mark, fallback, blocks)
	}
	_, mark, err = s.api.PostMessageContext(ctx, s.channel, options(fallback, blocks)...)
	if err == nil && mark == "" {
		err = errors.New("Slack has not said which message it has made") //nolint:staticcheck // it begins with a name
	}
	return mark, err
}

// Withdraw implements bridge.Receiver.
func (s *Slack) Withdraw(ctx context.Context, n bridge.Notice) error { return s.end(ctx, n) }

// Settle implements bridge.Receiver.
func (s *Slack) Settle(ctx context.Context, n bridge.Notice) error { return s.end(ctx, n) }

// end replaces what was told of a form, without buttons.
func (s *Slack) end(ctx context.Context, n bridge.Notice) error {
	if n.Mark == "" {
		return nil
	}
	fallback, blocks := ended(n)
	return s.update(ctx, n.Mark, fallback, blocks)
}

// update replaces a message. One that somebody has deleted needs none.
func (s *Slack) update(ctx context.Context, mark, fallback string, blocks []slackapi.Block) error {
	_, _, _, err := s.api.UpdateMessageContext(ctx, s.channel, mark, options(fallback, blocks)...)
	if err != nil && err.Error() == "message_not_found" {
		return nil
	}
	return err
}

// say shows a text to one user alone.
func (s *Slack) say(ctx context.Context, user, text string) {
	if _, err := s.api.PostEphemeralContext(ctx, s.channel, user, options(escape(text), nil)...); err != nil && ctx.Err() == nil {
		s.Log.Warn("a user of Slack cannot be told how a press went", "error", err)
	}
}
