package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/memcached-operator/memcached-operator/config"
)

const (
	// chartDir has the Helm chart: config/default, with expressions in place of what values set.
	chartDir = "charts/memcached-operator"
	// manifestFile is config/default in one file, which a release has as an asset.
	manifestFile = "dist/install.yaml"

	pod       = "spec.template.spec."
	container = pod + "containers.0."
)

// chartValue is a value of the chart.
type chartValue struct {
	name string
	// path is the field of the Deployment that the value replaces, and whose value is the default.
	path string
	// standard is the default without such a field. If both exist, the value adds to the field.
	standard any
	what     string
}

var chartValues = []chartValue{
	{name: "image.repository", what: "Repository of the operator's image."},
	{name: "image.tag", standard: "", what: "Tag of the image. Without tag and digest, it is the image of the chart's release."},
	{name: "image.digest", standard: "", what: "Digest of the image, such as sha256:0123…."},
	{name: "imagePullSecrets", path: pod + "imagePullSecrets", standard: []any{}, what: "Secrets for the registry of the operator's image, such as [{name: registry}]. Shards, which contain this image too, use spec.pod.imagePullSecrets."},
	{name: "watchNamespaces", standard: []any{}, what: "Namespaces that the operator serves, with Roles in these only. They must exist. Empty: all namespaces, with ClusterRoles."},
	{name: "replicas", path: "spec.replicas", what: "Pods of the operator. One is active, the others replace it when it stops."},
	{name: "resources", path: container + "resources", what: "Requests and limits. The memory limit is enough for 1,000 Memcacheds of three shards."},
	{name: "args", path: container + "args", standard: []any{}, what: "More arguments of the operator, such as --zap-log-level=debug."},
	{name: "nodeSelector", path: pod + "nodeSelector", standard: map[string]any{}, what: "Labels of the nodes for the operator's pod."},
	{name: "tolerations", path: pod + "tolerations", standard: []any{}, what: "Taints of nodes that the operator's pod tolerates."},
	{name: "affinity", path: pod + "affinity", what: "Affinity of the operator's pod. The image exists for these platforms."},
	{name: "topologySpreadConstraints", path: pod + "topologySpreadConstraints", standard: []any{}, what: "How replicas spread over nodes and zones."},
	{name: "priorityClassName", path: pod + "priorityClassName", standard: "", what: "PriorityClass of the operator's pod."},
	{name: "podLabels", path: "spec.template.metadata.labels", standard: map[string]any{}, what: "More labels of the operator's pod."},
	{name: "podAnnotations", path: "spec.template.metadata.annotations", standard: map[string]any{}, what: "More annotations of the operator's pod."},
	{name: "volumes", path: pod + "volumes", standard: []any{}, what: "Volumes, such as the Secret of the certificate in METRICS_CERT_DIR."},
	{name: "volumeMounts", path: container + "volumeMounts", standard: []any{}, what: "Where the container mounts them."},
	{name: "networkPolicy.enabled", standard: false, what: "Create a NetworkPolicy that admits clients to the operator's metrics only."},
	{name: "crds.enabled", standard: true, what: "Install and upgrade the CRDs. Helm never deletes them: that would delete all Memcacheds."},
}

// settings are environment variables of the operator. Those that config/default sets have its values as defaults, except for
// images, which are those of the chart's release until a value names another one.
var settings = []chartValue{
	{name: "ALLOWED_IMAGE_PREFIXES", what: "Prefixes of spec.pod.image that users may set. Empty allows all, here and below."},
	{name: "ALLOWED_POD_LABEL_PREFIXES", what: "Prefixes of labels that users may set on pods and Services."},
	{name: "ALLOWED_POD_ANNOTATION_PREFIXES", what: "Prefixes of annotations that users may set on pods and Services."},
	{name: "ALLOWED_PRIORITY_CLASSES", what: "Values of spec.pod.priorityClassName."},
	{name: "ALLOWED_SERVICE_ACCOUNTS", what: "ServiceAccounts that users may set."},
	{name: "ALLOWED_SERVICE_TYPES", what: "Types of the shards' Services: ClusterIP, LoadBalancer."},
	{name: "ALLOWED_SECRET_PREFIXES", what: "Prefixes of the names of Secrets that pods and stores use."},
	{name: "ALLOWED_CLIENT_PEERS", what: "Kinds of peers in spec.access.networkPolicy: PodsOfNamespace, Namespaces, Addresses."},
	{name: "ALLOW_TOLERATIONS", what: "false allows no spec.pod.tolerations."},
	{name: "ALLOW_AFFINITY", what: "false allows no spec.pod.affinity and nodeSelector."},
	{name: "MONITORING", what: "off creates no objects for Prometheus and Grafana. Empty is auto."},
	{name: "MONITORING_LABELS", what: "Labels of these objects, such as release=prometheus."},
	{name: "MONITORING_NAMESPACES", what: "Namespaces of Prometheus, whose pods can connect to the metrics of the shards."},
	{name: "MONITORING_INTERVAL", what: "Interval between two scrapes, such as 30s, at most 2m. Empty: Prometheus decides."},
	{name: "MONITORING_DASHBOARD_NAMESPACE", what: "Namespace of the dashboards. Empty: that of the operator."},
	{name: "MONITORING_TOKEN_SECRET", what: "Secret with the token by which Prometheus reads the operator's metrics."},
	{name: "MONITORING_CA_SECRET", what: "Secret with the CA of the certificate in METRICS_CERT_DIR."},
	{name: "METRICS_CERT_DIR", what: "Folder with the certificate of the metrics. Empty: the operator signs its own."},
	{name: "CLUSTER_DOMAIN", what: "Domain of the cluster. Empty: that of the operator's pod."},
	{name: "RELATED_IMAGE_MEMCACHED", what: "Image of Memcacheds that name neither image nor version. Empty: that of the chart's release."},
	{name: "DEFAULT_IMAGE_UPDATES", what: "How many Memcacheds follow another default image at a time. Empty is 1."},
	{name: "GOGC", what: "Percentage at which Go collects garbage."},
}

// manifest returns config/default with the images that are known by digest.
func manifest(root string, r release, digests map[string]string) ([]byte, error) {
	built, err := config.Build(root, "config/default", map[string]string{"controller": r.image})
	if err != nil {
		return nil, err
	}
	content, err := built.AsYaml()
	for image, digest := range digests {
		content = bytes.ReplaceAll(content, []byte("value: "+image+"\n"), []byte("value: "+image+"@"+digest+"\n"))
	}
	return content, err
}

// chart returns the generated files of the chart. Its other files are written by hand.
func chart(root string, r release, csv map[string]any, manifest []byte) (map[string][]byte, error) {
	namespaced, err := config.Build(root, "config/namespaced", nil)
	if err != nil {
		return nil, err
	}
	inNamespace := map[string]bool{} // the objects that are a ClusterRole or a binding of one otherwise
	for _, object := range namespaced.Resources() {
		inNamespace["Cluster"+object.GetKind()+object.GetName()] = true
	}
	crds, operator := &template{}, &template{}
	var values []chartValue
	for document := range strings.SplitSeq(string(manifest), "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object, func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }); err != nil {
			return nil, fmt.Errorf("reading config/default: %w", err)
		}
		kind := object["kind"].(string)
		switch meta := object["metadata"].(map[string]any); {
		case kind == "Namespace": // Helm creates it, or not
		case kind == "CustomResourceDefinition":
			meta["annotations"].(map[string]any)["helm.sh/resource-policy"] = "keep"
			crds.add(object)
		case inNamespace[kind+meta["name"].(string)]:
			operator.text.WriteString("{{- range default (list \"\") (uniq $.Values.watchNamespaces) }}\n")
			object["kind"] = operator.expression(`{{ if . }}` + strings.TrimPrefix(kind, "Cluster") + `{{ else }}` + kind + `{{ end }}`)
			meta["namespace"] = operator.expression(`{{ toJson . }}`)
			if role, found := object["roleRef"].(map[string]any); found {
				role["kind"] = operator.expression(`{{ if . }}Role{{ else }}ClusterRole{{ end }}`)
			}
			operator.add(object)
			operator.text.WriteString("{{- end }}\n")
		case kind == "Deployment":
			values = operator.deployment(object)
			operator.add(object)
		default:
			operator.add(object)
		}
	}
	files, err := chartFiles(r, csv, values)
	const head = "# Generated from config/default by \"make bundle\".\n"
	files["templates/crds.yaml"] = []byte(head + "{{- if .Values.crds.enabled }}\n" + crds.text.String() + "{{- end }}\n")
	files["templates/operator.yaml"] = []byte(head + operator.text.String())
	return files, err
}

// template is a template of Helm.
type template struct {
	text        strings.Builder
	expressions []string
}

// expression returns a text that stands for an expression in an object.
func (t *template) expression(expression string) string {
	t.expressions = append(t.expressions, expression)
	return fmt.Sprintf("<expression-%d>", len(t.expressions)-1)
}

// add adds an object, of which the release has the names and the namespace.
func (t *template) add(object map[string]any) {
	content, _ := yaml.Marshal(object) // it was read from YAML
	text := strings.ReplaceAll(string(content), "{{", `{{ "{{" }}`)
	text = strings.ReplaceAll(text, "memcached-operator-system", "{{ $.Release.Namespace }}")
	text = names.ReplaceAllString(text, "$1{{ $$.Release.Name }}-")
	// All operators of a namespace wait for one Lease. Helm rejects a second release there, since this Role is the first one's.
	text = strings.ReplaceAll(text, "{{ $.Release.Name }}-leader-election-role\n", "memcached-operator-leader-election-role\n")
	for i, e := range t.expressions {
		place := fmt.Sprintf("<expression-%d>", i)
		if strings.HasPrefix(e, "{{-") { // it is entries of a list
			place = "- " + place
		}
		text = strings.ReplaceAll(text, place, e)
	}
	t.text.WriteString("---\n" + text)
}

// names are where an object has its name, and the name of another object.
var names = regexp.MustCompile(`(?m)^( *(?:- )?(?:name|serviceAccountName): )memcached-operator-`)

// member returns the field of an object at a path, and sets it to a value unless that is nil.
func member(object any, path string, value any) any {
	first, rest, nested := strings.Cut(path, ".")
	if list, ok := object.([]any); ok {
		i, _ := strconv.Atoi(first)
		return member(list[i], rest, value)
	}
	fields := object.(map[string]any)
	now := fields[first]
	if nested {
		return member(now, rest, value)
	}
	if value != nil {
		fields[first] = value
	}
	return now
}

// deployment puts expressions into the operator's Deployment, and returns the values that these refer to.
func (t *template) deployment(object map[string]any) (values []chartValue) {
	image, _ := member(object, container+"image", nil).(string)
	end := strings.IndexAny(image[strings.LastIndex(image, "/")+1:], ":@") + strings.LastIndex(image, "/") + 1
	fmt.Fprintf(&t.text, `{{- $version := "" }}
{{- with .Values.image.tag }}{{ $version = print ":" . }}{{ end }}
{{- with .Values.image.digest }}{{ $version = print $version "@" . }}{{ end }}
{{- $image := print .Values.image.repository (default %q $version) }}
`, image[end:])
	expression := t.expression(`{{ toJson $image }}`)
	member(object, container+"image", expression)
	for _, v := range chartValues {
		if v.name == "image.repository" {
			v.standard = image[:end]
		}
		if v.path != "" {
			now := member(object, v.path, nil)
			fixed, _ := json.Marshal(now)
			format := "{{ toJson $.Values.%s }}"
			if v.standard == nil {
				v.standard = now
			} else if _, ok := now.(map[string]any); ok {
				format = "{{ merge (fromJson `" + string(fixed) + "`) $.Values.%s | toJson }}"
			} else if now != nil {
				format = "{{ concat (fromJsonArray `" + string(fixed) + "`) $.Values.%s | toJson }}"
			}
			member(object, v.path, t.expression(fmt.Sprintf(format, v.name)))
		}
		values = append(values, v)
	}

	environment, _ := member(object, container+"env", nil).([]any)
	defaults, own := map[string]any{}, ""
	for i := range environment {
		variable, _ := environment[i].(map[string]any)
		name, _ := variable["name"].(string)
		value, isLiteral := variable["value"].(string)
		switch {
		case name == "WATCH_NAMESPACE":
			variable["value"] = t.expression(`{{ uniq $.Values.watchNamespaces | join "," | quote }}`)
		case name == "RELATED_IMAGE_AGENT":
			variable["value"] = expression
		case strings.HasPrefix(name, relatedImagePrefix):
			own += " " + strconv.Quote(name)
			variable["value"] = t.expression(fmt.Sprintf("{{ default %q $.Values.settings.%s | quote }}", value, name))
		case isLiteral:
			own += " " + strconv.Quote(name)
			defaults[name] = value
			variable["value"] = t.expression("{{ join \",\" $.Values.settings." + name + " | quote }}")
		}
	}
	more := t.expression(`{{- range $name, $value := omit $.Values.settings` + own + ` }}{{ with join "," $value }}
        - name: {{ $name }}
          value: {{ quote . }}
        {{- end }}{{ end }}`)
	member(object, container+"env", append(environment, more))
	for _, v := range settings {
		v.standard = defaults[v.name]
		if v.standard == nil {
			v.standard = ""
		}
		values = append(values, chartValue{name: "settings." + v.name, standard: v.standard, what: v.what})
	}
	return values
}
