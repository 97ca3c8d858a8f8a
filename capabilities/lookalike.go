package capabilities

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// script has the letters of a script that most fonts draw like Latin ones, by these. They are from Unicode's list of
// confusable characters (UTS #39), which has thousands more that a reader can tell apart.
type script map[rune]rune

var scripts = []script{
	lookalikes("acdehijlopqsvwxyABCEHIJKMOPQSTWXY", "асԁеһіјӏорԛѕѵԝхуАВСЕНІЈКМОРԚЅТԜХҮ"), // Cyrillic
	lookalikes("acijopvyABCEHIJKMNOPTXYZ", "αϲιϳορνγΑΒϹΕΗΙͿΚΜΝΟΡΤΧΥΖ"),                   // Greek
	lookalikes("ghnoquLOSU", "ցհոօզսԼՕՏՍ"),                                               // Armenian
}

// latinOf has the Latin letters that letters of other scripts look like.
var latinOf = func() script {
	all := script{}
	for _, s := range scripts {
		for latin, other := range s {
			all[other] = latin
		}
	}
	return all
}()

func lookalikes(latin, others string) script {
	s, letters := script{}, []rune(others)
	for i, l := range []rune(latin) {
		s[l] = letters[i]
	}
	return s
}

// in returns a name with each letter replaced by the one of a script. It reports false if the script lacks one.
func (s script) in(name string) (string, bool) {
	lacks := false
	swapped := strings.Map(func(r rune) rune {
		other, ok := s[r]
		if ok {
			return other
		}
		lacks = lacks || unicode.IsLetter(r)
		return r
	}, name)
	return swapped, !lacks
}

// Lookalikes returns names that look like one and are others: those of which all letters are from one script, of the letters
// that look alike. Text in compatibility forms, such as wide letters, looks like plain text.
func Lookalikes(name string) []string {
	name = Normal(name)
	plain := strings.Map(func(r rune) rune {
		if latin, ok := latinOf[r]; ok {
			return latin
		}
		return r
	}, norm.NFKC.String(name))
	var others []string
	if plain != name {
		others = append(others, plain)
	}
	for _, s := range scripts {
		if other, ok := s.in(plain); ok && other != name {
			others = append(others, other)
		}
	}
	return others
}

// MixesScripts reports whether a word has Latin letters and such that only look like Latin ones. No language writes so.
func MixesScripts(name string) bool {
	for word := range strings.FieldsFuncSeq(Normal(name), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		isAlike := func(r rune) bool { _, ok := latinOf[r]; return ok }
		if strings.ContainsFunc(word, isAlike) && strings.ContainsFunc(word, func(r rune) bool { return unicode.Is(unicode.Latin, r) }) {
			return true
		}
	}
	return false
}
