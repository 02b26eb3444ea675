package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/api/v1beta1"
)

// kinds are the types of the objects in examples and commands, by the names that kubectl takes.
var kinds = map[string]reflect.Type{}

func init() {
	for names, object := range map[string]any{
		"memcached memcacheds memc":                               v1beta1.Memcached{},
		"memcachedbackup memcachedbackups mcb":                    v1beta1.MemcachedBackup{},
		"memcachedscheduledbackup memcachedscheduledbackups mcsb": v1beta1.MemcachedScheduledBackup{},
		"memcachedrestore memcachedrestores mcr":                  v1beta1.MemcachedRestore{},
		"deployment deployments":                                  appsv1.Deployment{},
		"pod pods":                                                corev1.Pod{},
		"secret secrets":                                          corev1.Secret{},
		"persistentvolumeclaim":                                   corev1.PersistentVolumeClaim{},
		"role":                                                    rbacv1.Role{},
		"horizontalpodautoscaler":                                 autoscalingv2.HorizontalPodAutoscaler{},
		"scaledobject":                                            scaledObject{},
		"rolebinding":                                             rbacv1.RoleBinding{},
		"crd csv clusterrole clusterextension operatorcondition namespace": nil,
		"subscriptions.operators.coreos.com":                               nil,
		"clusterserviceversions.operators.coreos.com packagemanifests":     nil,
		"storageclass configmap servicemonitor prometheusrule":             nil,
		"rs": appsv1.ReplicaSet{},
	} {
		for name := range strings.FieldsSeq(names) {
			kinds[name] = nil
			if object != nil {
				kinds[name] = reflect.TypeOf(object)
			}
		}
	}
}

// scaledObject has the fields of KEDA's kind that the examples use.
type scaledObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ScaleTargetRef                   autoscalingv2.CrossVersionObjectReference `json:"scaleTargetRef"`
		MinReplicaCount, MaxReplicaCount int32
		Triggers                         []struct {
			Type     string
			Metadata map[string]string
		}
	}
}

func TestEveryExampleIsAKnownKind(t *testing.T) {
	checked := 0
	for document, text := range markdown(t) {
		blocks, _ := split(document, text)
		for _, b := range blocks {
			if b.language == "yaml" {
				checked++
				if err := checkManifest(b.text); err != nil {
					t.Errorf("%s:%d: %v", document, b.line, err)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d examples were found", checked)
	}
}

// checkManifest decodes YAML documents strictly.
func checkManifest(text string) error {
	for part := range strings.SplitSeq(text, "---\n") {
		var object struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(part), &object); err != nil {
			return fmt.Errorf("%w in\n%s", err, part)
		}
		kind := kinds[strings.ToLower(object.Kind)]
		if kind == nil {
			return fmt.Errorf("no test knows the kind %q of\n%s", object.Kind, part)
		}
		if strings.HasPrefix(object.Kind, "Memcached") && object.APIVersion != v1beta1.GroupVersion.String() {
			return fmt.Errorf("%s is of %s", object.Kind, object.APIVersion)
		}
		if err := yaml.UnmarshalStrict([]byte(part), reflect.New(kind).Interface()); err != nil {
			return fmt.Errorf("%w in\n%s", err, part)
		}
	}
	return nil
}

// call is a command that a document runs.
type call struct {
	words []string
	stdin string
}

// stub records its words and its input, and prints what a later command needs.
const stub = `#!/bin/bash
shopt -s nullglob
former=("$CALLS"/*.words)
n=$(( ${#former[@]} + 1 ))
printf '%s\0' "${0##*/}" "$@" > "$CALLS/$n.words"
for word in "$@"; do [ "$word" = - ] && cat > "$CALLS/$n.stdin"; done
[ "$1" = get ] && echo customresourcedefinition.apiextensions.k8s.io/memcacheds.cache.memcached-operator.io
exit 0
`

// stubbed are the commands of the documents.
var stubbed = []string{"kubectl", "make", "kind", "go", "git", "operator-sdk", "snapshot", "sleep", "bin/cluster", "cosign", "gh", "helm"}

var placeholder = regexp.MustCompile(`<[a-z][a-z -]*>`)

// stubs returns a folder with the commands of the documents and what their stubs use.
func stubs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range stubbed {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(stub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bash", "cat", "date", "grep"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// callsOf runs a block with bash in the folder of the stubs, in which each command records how it was called.
func callsOf(t *testing.T, dir, script string) []call {
	t.Helper()
	calls := t.TempDir()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", placeholder.ReplaceAllString(script, "PLACEHOLDER"))
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + dir, "CALLS=" + calls}
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, bytes.TrimSpace(output))
	}
	var all []call
	for n := 1; ; n++ {
		record, err := os.ReadFile(filepath.Join(calls, fmt.Sprintf("%d.words", n)))
		if err != nil {
			break
		}
		stdin, _ := os.ReadFile(filepath.Join(calls, fmt.Sprintf("%d.stdin", n))) // most have none
		all = append(all, call{strings.Split(strings.TrimSuffix(string(record), "\x00"), "\x00"), string(stdin)})
	}
	return all
}

func TestCommandsOfTheDocuments(t *testing.T) {
	var targets []string
	for _, match := range regexp.MustCompile(`(?m)^([a-z0-9 -]+):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets = append(targets, strings.Fields(match[1])...)
	}
	for _, match := range regexp.MustCompile(`\{name: "([a-z0-9-]+)"`).FindAllStringSubmatch(read(t, "hack/suite/tiers.go"), -1) {
		targets = append(targets, "test-"+match[1])
	}
	checked, dir := map[string]int{}, stubs(t)
	for document, text := range markdown(t) {
		blocks, prose := split(document, text)
		for _, match := range code.FindAllStringSubmatch(prose, -1) {
			if first, _, _ := strings.Cut(match[1], " "); (first == "kubectl" || first == "make") && !strings.Contains(match[1], "…") {
				blocks = append(blocks, block{document: document, language: "shell", text: match[1]})
			}
		}
		for _, b := range blocks {
			if b.language != "shell" {
				continue
			}
			t.Run(fmt.Sprintf("%s:%d", document, b.line), func(t *testing.T) {
				calls := callsOf(t, dir, b.text)
				if len(calls) == 0 {
					t.Errorf("it calls none of %v:\n%s", stubbed, b.text)
				}
				for _, c := range calls {
					checked[c.words[0]]++
					switch c.words[0] {
					case "make":
						for _, word := range c.words[1:] {
							if !slices.Contains(targets, word) && !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") {
								t.Errorf("the Makefile has no target %s", word)
							}
						}
					case "kubectl":
						for _, problem := range checkKubectl(c, prose) {
							t.Errorf("%s: %s", strings.Join(c.words, " "), problem)
						}
					}
				}
			})
		}
	}
	if checked["kubectl"] < 50 || checked["make"] < 20 {
		t.Errorf("only these commands were found: %v", checked)
	}
}

// verbs are those of kubectl, with whether they name objects.
var verbs = map[string]bool{
	"annotate": true, "apply": false, "create": false, "delete": true, "describe": true, "drain": false, "events": false, "exec": true, "explain": false, "get": true,
	"krew": false, "label": true, "logs": false, "memcached": false, "patch": true, "rollout": false, "run": false, "scale": true, "set": false, "wait": true,
}

// withValue are the flags whose value is the next word.
var withValue = []string{"-n", "-f", "-k", "-l", "-o", "-p", "--name"}

// pluginVerb reports whether a verb is one of the plugin.
func pluginVerb(name string) bool {
	use := regexp.MustCompile(`(Use: |change\()"` + name + `[ "]`)
	files, _ := filepath.Glob("../cmd/kubectl-memcached/internal/command/*.go")
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && use.Match(text)
	})
}

// checkKubectl returns what is wrong with the names, fields and objects of a call of kubectl in a document.
func checkKubectl(c call, prose string) (problems []string) {
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	flags := map[string][]string{}
	var positional []string
	for words := c.words[1:]; len(words) > 0 && words[0] != "--" && words[0] != "--command"; words = words[1:] {
		name, value, isLong := strings.Cut(words[0], "=")
		switch {
		case strings.HasPrefix(name, "-") && slices.Contains(withValue, name) && !isLong && len(words) > 1:
			flags[name] = append(flags[name], words[1])
			words = words[1:]
		case strings.HasPrefix(name, "-") && name != "-":
			flags[name] = append(flags[name], value)
		default:
			positional = append(positional, words[0])
		}
	}
	if len(positional) == 0 {
		return append(problems, "it has no verb")
	}
	verb, object := positional[0], ""
	namesObjects, known := verbs[verb]
	switch {
	case !known:
		problem("no test knows the verb %s", verb)
	case verb == "memcached" && (len(positional) < 2 || !pluginVerb(positional[1])):
		problem("the plugin has no such verb")
	case verb == "explain" && len(positional) > 1:
		kind, path, _ := strings.Cut(positional[1], ".")
		if err := hasField(kinds[kind], path); err != nil {
			problem("%v", err)
		}
	case verb == "events":
		object = strings.Join(flags["--for"], ",")
	case (verb == "rollout" || verb == "set") && len(positional) > 2:
		object = positional[2]
	case (namesObjects || verb == "logs" && strings.Contains(strings.Join(positional[1:], ""), "/")) && len(positional) > 1:
		object = positional[1]
	}
	for name := range strings.FieldsFuncSeq(object, func(r rune) bool { return r == ',' }) {
		name, _, _ = strings.Cut(name, "/")
		typ, known := kinds[strings.ToLower(name)]
		if !known && name != "customresourcedefinition.apiextensions.k8s.io" {
			problem("no test knows the resource %s", name)
		}
		if typ != nil {
			problems = append(problems, checkFields(typ, flags)...)
		}
	}
	for _, directory := range flags["-k"] {
		if _, path, isRemote := strings.Cut(directory, "/memcached-operator//"); isRemote {
			directory, _, _ = strings.Cut(path, "?") // TestDocumentsInstallAnExistingRelease checks the release
		}
		if _, err := os.Stat(filepath.Join(root, directory, "kustomization.yaml")); err != nil {
			problem("%v", err)
		}
	}
	for _, file := range flags["-f"] {
		if file == "-" {
			if err := checkManifest(c.stdin); err != nil {
				problem("%v", err)
			}
		} else if !strings.Contains(prose, "`"+file+"`") && file != "https://github.com/memcached-operator/memcached-operator/releases/latest/download/install.yaml" {
			problem("the document doesn't say what %s contains", file)
		}
	}
	return problems
}

// checkFields returns what is wrong with the fields, conditions and patches of a command about objects of a type.
func checkFields(typ reflect.Type, flags map[string][]string) (problems []string) {
	for _, output := range append(flags["-o"], flags["--for"]...) {
		for _, path := range jsonPaths(output) {
			if err := hasField(typ, path); err != nil {
				problems = append(problems, err.Error())
			}
		}
		if condition, is := strings.CutPrefix(output, "condition="); is && !slices.Contains(conditions, condition) {
			problems = append(problems, "there is no condition "+condition)
		}
	}
	for _, patch := range flags["-p"] {
		if err := yaml.UnmarshalStrict([]byte(patch), reflect.New(typ).Interface()); err != nil {
			problems = append(problems, fmt.Sprintf("the patch: %v", err))
		}
	}
	return problems
}

var conditions = []string{
	v1beta1.ConditionReady, v1beta1.ConditionReconciling, v1beta1.ConditionStalled, v1beta1.ConditionAvailable, v1beta1.ConditionProgressing, v1beta1.ConditionDegraded,
	v1beta1.ConditionSucceeded,
}

var expression = regexp.MustCompile(`\{(range )?(\.[^}]+)\}|\{end\}`)

// jsonPaths returns the paths of a jsonpath template.
func jsonPaths(output string) []string {
	template, is := strings.CutPrefix(output, "jsonpath=")
	if !is {
		return nil
	}
	var paths []string
	prefix := ""
	for _, match := range expression.FindAllStringSubmatch(template, -1) {
		switch {
		case match[0] == "{end}":
			prefix = ""
		case match[1] != "":
			prefix = match[2]
			paths = append(paths, prefix)
		default:
			paths = append(paths, prefix+match[2])
		}
	}
	return paths
}

// hasField returns an error if a type has no field at a path such as .status.shards[0].name.
func hasField(typ reflect.Type, path string) error {
	begin := typ
	for step := range strings.SplitSeq(strings.Trim(path, "."), ".") {
		name, index, isList := strings.Cut(step, "[")
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		field, found := jsonField(typ, name)
		if !found {
			return fmt.Errorf("%s has no field %q of %s", begin.Name(), name, path)
		}
		typ = field
		if isList {
			if typ.Kind() != reflect.Slice || index == "" {
				return fmt.Errorf("%q of %s of %s is not a list", name, path, begin.Name())
			}
			typ = typ.Elem()
		}
	}
	return nil
}

// jsonField returns the type of a field by its name in JSON.
func jsonField(typ reflect.Type, name string) (reflect.Type, bool) {
	if typ.Kind() != reflect.Struct {
		return nil, false
	}
	for _, field := range reflect.VisibleFields(typ) {
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
			return field.Type, true
		}
	}
	return nil, false
}

func TestHasFieldFindsWhatIsMissing(t *testing.T) {
	memcached := kinds["memcached"]
	for path, want := range map[string]bool{
		".status.shards[0].itemsBefore": true, ".status.servers": true, ".spec.updateStrategy.hitRatioGate.percent": true,
		".status.shard": false, ".status.shards.name": false, ".status.servers[0].name": false,
	} {
		if err := hasField(memcached, path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
}

var fieldPath = regexp.MustCompile(`^(spec|status)\.[A-Za-z0-9.\[\]]+$`)

func TestFieldsThatTheDocumentsNameExist(t *testing.T) {
	checked := 0
	for document, text := range markdown(t) {
		_, prose := split(document, text)
		for _, match := range code.FindAllStringSubmatch(prose, -1) {
			if !fieldPath.MatchString(match[1]) || match[1] == "spec.overrides" { // of an OperatorCondition
				continue
			}
			checked++
			path := strings.NewReplacer("[]", "[0]").Replace(match[1])
			var errs []string
			for _, kind := range []string{"memcached", "memcachedbackup", "memcachedscheduledbackup", "memcachedrestore"} {
				if err := hasField(kinds[kind], path); err != nil {
					errs = append(errs, err.Error())
				}
			}
			if len(errs) == 4 {
				t.Errorf("%s names `%s`: %s", document, match[1], strings.Join(errs, "; "))
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d fields were found", checked)
	}
}
