package schemaedit

import (
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
)

var (
	// readsItself matches a rule that reads an object other than by one of its fields.
	readsItself = regexp.MustCompile(`\b(self|oldSelf)\b\s*([^.\s]|$)`)
	// isPlain matches a field's name that stands in a rule as it is.
	isPlain = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*$`)
)

// slim takes out of the schemas by which compiled rules read an object the fields that
// no rule names. It changes no answer: the library copies all fields each time a rule
// reads one, which for a spec of thirty was the half of what Admit takes.
func slim(rules *cel.Validator) {
	if rules == nil {
		return
	}
	slim(rules.Items)
	slim(rules.AdditionalProperties)
	for name, below := range rules.Properties {
		slim(&below)
		rules.Properties[name] = below
	}
	if rules.Schema == nil || len(rules.Schema.Properties) == 0 || !namesFields(rules.Schema.XValidations) {
		return
	}
	slimmed := *rules.Schema
	slimmed.Properties = map[string]schema.Structural{}
	for name, field := range rules.Schema.Properties {
		if !isPlain.MatchString(name) || isNamed(name, slimmed.XValidations) {
			slimmed.Properties[name] = field
		}
	}
	rules.Schema = &slimmed
}

// namesFields says whether rules read an object by the names of its fields alone.
func namesFields(rules apiextensionsv1.ValidationRules) bool {
	for _, rule := range rules {
		if rule.OptionalOldSelf != nil || readsItself.MatchString(rule.Rule) || readsItself.MatchString(rule.MessageExpression) {
			return false
		}
	}
	return true
}

func isNamed(field string, rules apiextensionsv1.ValidationRules) bool {
	for _, rule := range rules {
		if strings.Contains(rule.Rule, field) || strings.Contains(rule.MessageExpression, field) {
			return true
		}
	}
	return false
}
