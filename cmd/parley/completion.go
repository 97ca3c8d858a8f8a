package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// completionCommand replaces the library's command of this name, whose scripts put words on a command line as they are where
// the shell then runs what is in them.
func (p *program) completionCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "completion",
		Short: "Print a script that completes commands in a shell",
		Long: `Prints a script that completes commands, names and message numbers in a shell. What others named is quoted, and left out
where it cannot be shown as it is.`,
		Example: "  source <(parley completion bash)\n  parley completion fish > ~/.config/fish/completions/parley.fish",
		Args:    p.exactly(),
		RunE:    func(c *cobra.Command, _ []string) error { return usage(c, "missing: bash, zsh, fish or powershell") },
	}
	for _, s := range shells() {
		var bare bool
		sub := &cobra.Command{
			Use:               s.name,
			Short:             "Print the script for " + s.name,
			Example:           "  parley completion " + s.name,
			Args:              p.exactly(),
			ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(c *cobra.Command, _ []string) error {
				script, err := s.write(c.Root(), !bare)
				if err != nil {
					return err
				}
				_, err = io.WriteString(p.stdout, script)
				return err
			},
		}
		sub.Flags().BoolVar(&bare, "no-descriptions", false, "words alone")
		c.AddCommand(sub)
	}
	return c
}

// shell is a shell that completes commands by a script.
type shell struct {
	name   string
	script func(root *cobra.Command, described bool, w io.Writer) error
	mend   func(script string) string // makes the library's script quote what it does not
}

func shells() []shell {
	same := func(script string) string { return script }
	return []shell{
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

// write returns the script.
func (s shell) write(root *cobra.Command, described bool) (string, error) {
	var b bytes.Buffer
	if err := s.script(root, described, &b); err != nil {
		return "", fmt.Errorf("write the script for %s: %w", s.name, err)
	}
	return s.mend(b.String()), nil
}

// mendBash has all candidates quoted. The library's script quotes the only one that is left; of several, bash puts what they
// begin with on the command line, and the next completion would run what is in that. When bash only lists them, nothing is
// put there.
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

// mendFish quotes the words of the command line: fish gives them without their quotes, and the library's script runs them.
func mendFish(script string) string {
	return strings.ReplaceAll(script, "set -l args (commandline -opc)", "set -l args (string escape -- (commandline -opc))")
}
