package strike

import (
	"regexp"
	"strings"
	"sync"
)

// Struck stands where a secret was.
const Struck = "[secret]"

// patterns are what secrets look like. The group "s" is the secret; without one it is all. They are compiled when they are first used.
var patterns = sync.OnceValue(func() []*regexp.Regexp {
	words := []string{
		`-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?`,
		`\bpl[ys]_[0-9A-Za-z_-]{40,}`,
		`\bsk-[0-9A-Za-z_-]{16,}`,
		`\b(?:gh[pousr]_[0-9A-Za-z]{20,}|github_pat_[0-9A-Za-z_]{20,}|glpat-[0-9A-Za-z_-]{16,})`,
		`\bxox[abeprs]-[0-9A-Za-z-]{10,}`,
		`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`,
		`\bAIza[0-9A-Za-z_-]{30,}`,
		`\b(?:npm_|hf_|pypi-|dop_v1_|rk_live_|sk_live_)[0-9A-Za-z_-]{16,}`,
		`\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*`,
		`(?i)\bauthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token)\s+(?P<s>[^\s"']{6,})`,
		`(?i)\bbearer\s+(?P<s>[0-9a-z._~+/=-]{16,})`,
		`\b[a-z][a-z0-9+.-]*://[^\s/:@"']*:(?P<s>[^\s/@"']+)@`,
		`(?i)[a-z0-9_.-]*(?:passw(?:or)?d|passphrase|secret|api[_-]?key|access[_-]?key|auth[_-]?token|access[_-]?token|private[_-]?key|credentials?)[a-z0-9_.-]*["']?\s*[:=]\s*(?:"(?P<s>[^"\n]{4,})"|'(?P<s>[^'\n]{4,})'|(?P<s>[^\s"',;]{4,}))`,
		`\b[A-Z0-9_]*TOKEN["']?\s*[:=]\s*["']?(?P<s>[^\s"',;]{8,})`,
	}
	all := make([]*regexp.Regexp, len(words))
	for i, w := range words {
		all[i] = regexp.MustCompile(w)
	}
	return all
})

// Secrets returns a text without what looks like a secret.
func Secrets(text string) string {
	for _, p := range patterns() {
		text = strike(p, text)
	}
	return text
}

// strike replaces the secrets that one pattern finds.
func strike(p *regexp.Regexp, text string) string {
	found := p.FindAllStringSubmatchIndex(text, -1)
	if found == nil {
		return text
	}
	var b strings.Builder
	last := 0
	for _, at := range found {
		from, to := at[0], at[1]
		for i, name := range p.SubexpNames() {
			if name == "s" {
				from, to = -1, -1
			}
			if name == "s" && at[2*i] >= 0 {
				from, to = at[2*i], at[2*i+1]
				break
			}
		}
		if from < 0 || strings.Contains(text[from:to], Struck) {
			continue // it was struck out before
		}
		b.WriteString(text[last:from])
		b.WriteString(Struck)
		last = to
	}
	b.WriteString(text[last:])
	return b.String()
}
