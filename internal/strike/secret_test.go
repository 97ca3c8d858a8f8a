package strike_test

import (
	"strings"
	"testing"

	"parley/internal/strike"
)

func TestSecretsAreStruckOut(t *testing.T) {
	long := strings.Repeat("a1B2", 12)
	for _, c := range []struct{ text, want string }{
		{"export PASSWORD=hunter2!", "export PASSWORD=[secret]"},
		{`{"apiKey": "abc def", "port": 80}`, `{"apiKey": "[secret]", "port": 80}`},
		{"db_password: 'a b c' # as is", "db_password: '[secret]' # as is"},
		{"GITHUB_TOKEN=abcdefgh12", "GITHUB_TOKEN=[secret]"},
		{"fetch https://me:pa55@example.com/x", "fetch https://me:[secret]@example.com/x"},
		{"Authorization: Bearer abcdef.123", "Authorization: Bearer [secret]"},
		{`-H 'authorization: Basic bWU6cGE1NQ=='`, `-H 'authorization: Basic [secret]'`},
		{"key sk-ant-" + long + " was refused", "key [secret] was refused"},
		{"ghp_" + long + ", github_pat_" + long, "[secret], [secret]"},
		{"AKIAIOSFODNN7EXAMPLE", "[secret]"},
		{"ply_" + long, "[secret]"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "[secret]"},
		{"-----BEGIN RSA PRIVATE KEY-----\nMIIB\nabc=\n-----END RSA PRIVATE KEY-----\nrest", "[secret]\nrest"},
		{"-----BEGIN PRIVATE KEY-----\nMIIB", "[secret]"},
	} {
		if got := strike.Secrets(c.text); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
		}
		if got := strike.Secrets(c.want); got != c.want {
			t.Errorf("%q is struck again: %q", c.want, got)
		}
	}
}

func TestOtherWordsStay(t *testing.T) {
	for _, text := range []string{
		"", "the password is asked for", "exit status 1", "https://example.com:8080/a@b", "tokens: 1234", "a key=80", "sk-short", "git log --oneline", "the bearer of news",
		"panic: runtime error: index out of range [3]\ngoroutine 1 [running]:", "01M8F37RFH3FGYW4Q5WJSFNVSM", "\x00\xff[secret]",
	} {
		if got := strike.Secrets(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

func FuzzSecrets(f *testing.F) {
	f.Add("PASSWORD=hunter2 https://a:b@c sk-" + strings.Repeat("a", 20))
	f.Fuzz(func(t *testing.T, text string) {
		once := strike.Secrets(text)
		if twice := strike.Secrets(once); twice != once {
			t.Errorf("%q becomes %q, and that %q", text, once, twice)
		}
	})
}
