package command

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// output is the flag -o.
type output string

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().StringVarP((*string)(o), "output", "o", "", "Output format: json or yaml. Default: text")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// shown is a screen.
type shown interface{ Text() string }

// format returns the text of a screen.
func (o *output) format(s shown) (string, error) {
	switch *o {
	case "":
		return s.Text(), nil
	case "json":
		text, err := json.MarshalIndent(s, "", "  ")
		return string(text) + "\n", err
	case "yaml":
		text, err := yaml.Marshal(s)
		return string(text), err
	}
	return "", usageError{fmt.Errorf("--output is %q: use json or yaml", *o)}
}
