package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// output is the flag -o.
type output string

func (o *output) Set(text string) error {
	if text != "" && text != "json" && text != "yaml" {
		return errors.New("use json or yaml")
	}
	*o = output(text)
	return nil
}

func (o *output) String() string { return string(*o) }

func (o *output) Type() string { return "string" }

func (o *output) add(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "Output format: json or yaml. Default: text")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json", "yaml"}, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
}

// duration is a flag with a bounded duration.
type duration struct {
	*time.Duration
	// least and most bound it. A most of 0 is no bound.
	least, most time.Duration
}

// addDuration adds a flag. It is what value has by default.
func addDuration(cmd *cobra.Command, value *time.Duration, name string, least, most time.Duration, usage string) {
	cmd.Flags().Var(duration{value, least, most}, name, usage)
}

func (d duration) Set(text string) error {
	value, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return err
	case value < d.least || d.most > 0 && value > d.most:
		message := fmt.Sprintf("use at least %s", d.least)
		if d.most > 0 {
			message += fmt.Sprintf(" and at most %s", d.most)
		}
		return errors.New(message)
	}
	*d.Duration = value
	return nil
}

func (d duration) String() string {
	if *d.Duration == 0 {
		return "" // help shows no default
	}
	return d.Duration.String()
}

func (d duration) Type() string { return "duration" }

// seconds returns a duration in whole seconds, rounded up.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}

// shown is a screen.
type shown interface{ Text() string }

// format returns the text of a screen. Others can choose what messages in it quote, such as the image of a shard.
func (o *output) format(s shown) (string, error) {
	switch *o {
	case "json":
		text, err := json.MarshalIndent(s, "", "  ")
		return string(text) + "\n", err
	case "yaml":
		text, err := yaml.Marshal(s)
		return string(text), err
	}
	return printers.EscapeTerminal(s.Text()), nil
}
