package micro

import (
	"log/slog"
	"strings"
	"testing"

	"parley"
	"parley/gateway/api"
)

func TestAddressIsShownWithoutSecrets(t *testing.T) {
	for address, want := range map[string]string{
		"nats://a:4222":                      "nats://a:4222",
		"nats://ann:secret@a:4222":           "nats://a:4222",
		"nats://secret@a,tls://ann:secret@b": "nats://a,tls://b",
		"ann:secret@a:4222":                  "a:4222",
		"secret@a":                           "a",
		"nats://ann:sec%ret@a":               "?",
	} {
		if got := withoutSecrets(address); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
	for _, address := range []string{"nats://ann:sec%ret@a", "nats://ann:secret@a:b:c", "://secret"} {
		if _, err := Connect(Options{Address: address, Monitor: api.Monitor{Log: slog.New(slog.DiscardHandler)}}); parley.CodeOf(err) != parley.InvalidArgument || strings.Contains(err.Error(), "sec") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
