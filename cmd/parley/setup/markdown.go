package setup

import (
	"fmt"
	"unicode/utf8"

	"parley/cmd/parley/hook"
)

// Instructions for a model are in Markdown, where these lines are comments.
const (
	wordsBegin = "<!-- >>> parley: what is between these lines is parley setup's -->"
	wordsEnd   = "<!-- <<< parley -->"
)

// askWords tell a model how to ask a person.
const askWords = "To ask the person whom you work for, call the tool `ask_user` of the MCP server `" + hook.ServerName + "`, also for a\n" +
	"choice or an approval. It reaches them when they are away. Where its result has the status pending, go on with\n" +
	"`await_answer` and the handle. No answer is not a yes.\n"

// markdownFile returns the file with the instructions in it, or without them.
func (s settings) markdownFile(path string) (File, error) {
	f, err := s.settingsFile(path)
	if err != nil || f.problem != nil {
		return f, err
	}
	if s.Remove {
		f.withoutBlock(wordsBegin, wordsEnd)
		return f, nil
	}
	f.Entered = wordsBegin + "\n" + askWords + wordsEnd + "\n"
	before, after, found, err := cutBlock(string(f.before), wordsBegin, wordsEnd)
	if err == nil && !utf8.Valid(f.before) {
		err = fmt.Errorf("it is not UTF-8")
	}
	if err != nil {
		f.problem = leftAlone(f.Path, err.Error())
		return f, nil
	}
	f.becomes(enterBlock(before, f.Entered, after, found), !found)
	return f, nil
}
