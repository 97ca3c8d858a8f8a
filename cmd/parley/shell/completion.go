package shell

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Shell is a shell that completes commands by a script.
type Shell struct {
	Name   string
	script func(root *cobra.Command, described bool, w io.Writer) error
	mend   func(script string) string // makes the library's script quote what it does not
}

// Shells returns the shells for which there are scripts.
func Shells() []Shell {
	same := func(script string) string { return script }
	return []Shell{
		{"bash", func(root *cobra.Command, d bool, w io.Writer) error { return root.GenBashCompletionV2(w, d) }, mendBash},
		{"fish", func(root *cobra.Command, d bool, w io.Writer) error { return root.GenFishCompletion(w, d) }, mendFish},
		{"powershell", func(root *cobra.Command, d bool, w io.Writer) error {
			if d {
				return root.GenPowerShellCompletionWithDesc(w)
			}
			return root.GenPowerShellCompletion(w)
		}, same},
		{"zsh", func(root *cobra.Command, d bool, w io.Writer) error {
			if d {
				return root.GenZshCompletion(w)
			}
			return root.GenZshCompletionNoDesc(w)
		}, same},
	}
}

// Script returns the script that completes the commands below root. Without described it shows words alone.
func (s Shell) Script(root *cobra.Command, described bool) (string, error) {
	var b bytes.Buffer
	if err := s.script(root, described, &b); err != nil {
		return "", fmt.Errorf("write the script for %s: %w", s.Name, err)
	}
	return s.mend(b.String()), nil
}

// mendBash has all candidates quoted. The library's script quotes a single candidate only. Of several, bash puts their
// common beginning on the command line, and the next completion would run it. A list of candidates changes nothing there.
func mendBash(script string) string {
	return strings.ReplaceAll(script, "-F __start_parley parley", "-F __parley_start_quoted parley") + `
__parley_start_quoted()
{
    if [[ ${COMP_TYPE-} != 63 ]]; then
        local COMP_TYPE=37 # the script quotes all words when they are to be inserted one by one
    fi
    __start_parley "$@"
}
`
}

// mendFish quotes the words of the command line. Fish gives them without their quotes, and the library's script runs them.
func mendFish(script string) string {
	return strings.ReplaceAll(script, "set -l args (commandline -opc)", "set -l args (string escape -- (commandline -opc))")
}
