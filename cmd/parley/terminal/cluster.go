package terminal

import "github.com/rivo/uniseg"

// FirstCluster returns the bytes of the first character of a text as a person sees it: a letter with its marks, or an emoji
// with all that is joined to it. It is "" for an empty text.
func FirstCluster(text string) string {
	first, _, _, _ := uniseg.FirstGraphemeClusterInString(text, -1)
	return first
}

// LastCluster returns the bytes of the last character of a text, as FirstCluster does.
func LastCluster(text string) (last string) {
	for state := -1; text != ""; {
		last, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
	}
	return last
}

// Clusters returns the number of characters of a text as a person sees them.
func Clusters(text string) int { return uniseg.GraphemeClusterCount(text) }
