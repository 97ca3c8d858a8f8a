package backend

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"

	"parley"
)

// secretWords are parts of names of secrets, without signs between their words.
const secretWords = `pass(?:word|wd|phrase|code)|secret|token|api[-_]?key|access[-_]?key|private[-_]?key|credential|auth[-_]?key|encryption[-_]?key|client[-_]?key`

// secretShapes are texts that say that a secret follows, or have the shape of one. What follows from a variable is none.
var secretShapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`,
		`(?i)(?:` + secretWords + `)[a-z0-9_-]*["']?\s*(?:=|:=?|\s)\s*["']?[^\s"'$<>&|;,(){}\[\]=:-]`, // a name and a value
		`(?i)\b(?:bearer|basic)\s+["']?[a-z0-9._~+/=-]{6,}`,
		`(?i)\bauthorization["']?\s*[:=]\s*["']?[^\s"'$]`,
		`(?i)\b(?:x-api-key|cookie|set-cookie)["']?\s*:\s*["']?[^\s"'$]`,
		`[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s:@'"]*:[^/\s@'"$][^/\s@'"]*@`, // in an address
		`(?:^|\s)(?:-u|--user|--proxy-user)[\s=]*["']?[^\s:$"']+:[^\s$"']`,
		`\bsshpass\s+-p`, `\bmysql(?:dump|admin)?\b.*\s-p[^\s$]`, `\bsmbclient\b.*%`, `\bopenssl\b.*\bpass:`,
		`\bsk[-_][A-Za-z0-9_-]{12,}`, `\b[rp]k_(?:live|test)_`, `\bgh[pousr]_[A-Za-z0-9]{16,}`, `\bgithub_pat_`, `\bglpat-`, `\bxox[abeprs]-`, `\bxapp-`,
		`\b(?:AKIA|ASIA)[0-9A-Z]{12,}`, `\bAIza[A-Za-z0-9_-]{20,}`, `\beyJ[A-Za-z0-9_-]{8,}\.`, `\bnpm_[A-Za-z0-9]{20,}`, `\bpypi-[A-Za-z0-9_-]{16,}`, `\bhf_[A-Za-z0-9]{16,}`,
		`\bdop_v1_`, `\bSG\.[A-Za-z0-9_-]{16,}`, `\bAGE-SECRET-KEY-`, `\bwhsec_`,
	}, "|"))
})

// secretName is a name of a member whose value is a secret.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + secretWords + `|^auth(?:orization)?$|^cookie$|^pin$`)
})

// leastKey is the number of characters from which a word of letters and digits in no order is taken for a key.
const leastKey = 24

// hasSecret reports whether the input of a call, or what its agent says of it, seems to have a secret in it: by the name before it, by its
// shape, or because a long word is in no order. It knows no secret itself, so it takes texts for secrets that are none, and an agent that
// means to hide one can. The name of the folder is none, wherever it stands: else one that looks like a key, as folders of tests and of
// builds do, would keep all calls in it from a reviewer.
func hasSecret(p *parley.Permission) bool {
	var input any
	if json.Unmarshal([]byte(p.Input), &input) != nil {
		input = p.Input
	}
	f := inFolder(p.Folder)
	return f.isSecret(input) || slices.ContainsFunc([]string{p.Tool, p.Reason, p.Part}, f.isSecretText)
}

// inFolder is the folder that a call is made in; "" where that is not known.
type inFolder string

func (f inFolder) isSecret(v any) bool {
	switch v := v.(type) {
	case string:
		return f.isSecretText(v)
	case []any:
		return slices.ContainsFunc(v, f.isSecret)
	case map[string]any:
		for name, one := range v {
			if text, isText := one.(string); isText && text != "" && !strings.HasPrefix(text, "$") && secretName().MatchString(name) || isSecretText(name) || f.isSecret(one) {
				return true
			}
			if _, isNumber := one.(float64); isNumber && secretName().MatchString(name) {
				return true
			}
		}
	}
	return false
}

func (f inFolder) isSecretText(text string) bool {
	if len(f) > 1 {
		text = strings.ReplaceAll(text, string(f), "/")
	}
	return isSecretText(text)
}

func isSecretText(text string) bool {
	if secretShapes().MatchString(text) {
		return true
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool {
		return r > 127 || r != '_' && r != '+' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) {
		if len(word) >= leastKey && isDisordered(word) {
			return true
		}
	}
	return false
}

// isDisordered reports whether a word has digits among upper and lower letters, as keys have and names have not.
func isDisordered(word string) bool {
	digits, upper, lower := 0, 0, 0
	for _, r := range word {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'A' && r <= 'Z':
			upper++
		case r >= 'a' && r <= 'z':
			lower++
		}
	}
	return digits >= 3 && upper >= 3 && lower >= 3
}
