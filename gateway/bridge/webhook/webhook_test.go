package webhook

import (
	"crypto/ed25519"
	"strings"
	"testing"
)

// TestSignsAsTheStandard signs the example of Standard Webhooks.
func TestSignsAsTheStandard(t *testing.T) {
	shared, err := ParseShared("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	h := &Webhook{Key: key, Shared: shared}
	got, other, _ := strings.Cut(h.sign(`msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{"test": 2432232314}`), " ")
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("the signature is %s, want %s", got, want)
	}
	if !strings.HasPrefix(other, "v1a,") {
		t.Errorf("the other signature is %s", other)
	}
}

func TestSecretsHaveBounds(t *testing.T) {
	if _, err := ParseShared(NewShared()); err != nil {
		t.Error(err)
	}
	for _, text := range []string{
		"", "whsec_", "whsec_c2hvcnQ=", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS",
		"whsec_" + strings.Repeat("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 3),
	} {
		if _, err := ParseShared(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
